// What the attacks of selftest look for outside. Stage: edge (sbx-run).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::cli {

// A file and a listening socket in a directory of the caller's, an abstract socket and a TCP port
// that listen, a System V queue. Owns them; gone with it. The directory is locked for as long
// (flock), and the queue's key follows from its name: what a SIGKILL leaves is found, and known to
// be nobody's, by the next prepare().
class ControlGround {
 public:
  // Removes what dead ones of this user left. `words`: what must not be read inside of the caller,
  // beside what the ground adds itself.
  [[nodiscard]] static Result<ControlGround> prepare(const std::vector<std::string>& words = {});
  ControlGround(ControlGround&& other) noexcept;
  ControlGround& operator=(ControlGround&&) = delete;
  ~ControlGround();

  // An argument with its names replaced: "@canary" (the file), "@path" (the socket), "@node" (a
  // path where nothing is), "@socket" (the abstract name), "@tcp" (address and port), "@queue" (the
  // key),
  // "@words" (as the probe's `words` takes them).
  [[nodiscard]] std::string resolve(std::string_view argument) const;
  // Stands in the control's environment, so that there is a word to be found.
  [[nodiscard]] const std::string& directory() const { return directory_; }

 private:
  ControlGround() = default;
  [[nodiscard]] Result<void> make_directory();
  [[nodiscard]] Result<void> make_queue();
  [[nodiscard]] Result<void> listen();
  std::string directory_;
  UniqueFd lock_;  // the directory
  std::string socket_name_;
  std::string tcp_address_;
  std::string words_;
  int queue_ = -1;
  int queue_key_ = 0;
  UniqueFd path_socket_, abstract_socket_, tcp_socket_;
};

}  // namespace sbx::cli
