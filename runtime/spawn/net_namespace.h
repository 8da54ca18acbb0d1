// Empty net namespaces, made ahead. Stage: spawn; runs in the spawner process.
#pragma once

#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::spawn {

class NetNamespaces {
 public:
  // `ready` are made ahead; each that is taken is replaced when `refilled`.
  NetNamespaces(std::size_t ready, bool refilled) : target_(ready), refilled_(refilled) {}
  // Enters one, which is the one that is ready then, if any is wanted: cheaper than a process to
  // make it in, but there is no way back, and every child of the spawner is in it.
  void enter();
  // One that nobody else has or will get: each serves one run and dies with it.
  [[nodiscard]] Result<UniqueFd> take();
  // Makes one more if fewer than wanted are ready; true when there is still something to do.
  bool refill();

 private:
  std::size_t target_;
  bool refilled_;
  std::vector<UniqueFd> ready_;
};

}  // namespace sbx::spawn
