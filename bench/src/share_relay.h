// Stands between agentd and sbxd and tells how long sbxd, and how long it itself, had each request.
//
// A process of its own, so that it never waits for the client that measures; it ends with that one.
// It passes requests on one after another. What it takes to be woken, and to send the answer once
// it has told, counts as agentd's.
#pragma once

#include <sys/types.h>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::bench {

struct Taken {
  double sbxd = 0, relay = 0;  // milliseconds
};

// Killed and reaped by the destructor. Why it ended before that is on stderr.
class ShareRelay {
 public:
  // Listens at `path` when this returns. The caller has one thread.
  [[nodiscard]] static Result<ShareRelay> start(const std::string& path, const std::string& sbxd);
  ShareRelay(ShareRelay&& other) noexcept;
  ShareRelay& operator=(ShareRelay&&) = delete;
  ~ShareRelay();

  [[nodiscard]] Result<Taken> taken();  // since the last call; does not block

 private:
  ShareRelay(pid_t pid, UniqueFd told) : pid_(pid), told_(std::move(told)) {}

  pid_t pid_;
  UniqueFd told_;
};

}  // namespace sbx::bench
