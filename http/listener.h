// Listener: a listening socket, made or adopted, and the file that belongs to it.
//
// Made by main() before the loop runs; blocking calls, but none that waits. The Server takes it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::http {

inline constexpr int kListenBacklog = 512;

struct UnixSocketOptions {
  std::string path{};  // absolute; its directory exists and is writable by no stranger
  mode_t mode = 0600;
  std::optional<gid_t> group{};  // owner group of the socket file
};

class Listener {
 public:
  // Binds `path`. A socket file that nobody listens on is replaced; a live one, or a file that is
  // no socket, is kHost with the fix. Two daemons that start at once are kept apart by a lock on
  // `<path>.lock`, which is held as long as the Listener lives. Nobody can connect before mode and
  // group are set.
  [[nodiscard]] static Result<Listener> unix_socket(const UnixSocketOptions& options);

  // Takes over a listening stream socket, Unix or TCP; sets CLOEXEC and O_NONBLOCK. kHost for
  // anything else.
  [[nodiscard]] static Result<Listener> adopt(UniqueFd fd);

  // A numeric address, IPv4 or IPv6. Port 0: the kernel's choice, see port().
  [[nodiscard]] static Result<Listener> tcp(const std::string& address, std::uint16_t port);

  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&&) = delete;
  // Closes, and removes the files that unix_socket() made, if they are still its own.
  ~Listener();

  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] bool is_unix() const { return is_unix_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }       // 0: not TCP
  [[nodiscard]] const std::string& name() const { return name_; }  // for logs

 private:
  Listener() = default;

  UniqueFd fd_;
  UniqueFd lock_;     // of unix_socket()
  std::string path_;  // to remove; empty: nothing
  dev_t device_ = 0;  // of the socket file,
  ino_t inode_ = 0;   // so that a successor's is not removed
  bool is_unix_ = false;
  std::uint16_t port_ = 0;
  std::string name_;
};

// Closes what this process inherited beyond the standard streams, but for what systemd passed: for
// the first line of a daemon's main(). Whoever started it (as root perhaps) may have had files open
// that the daemon must not have.
[[nodiscard]] Result<void> close_inherited_descriptors();

// The descriptors that systemd passed to this process (sd_listen_fds(3): LISTEN_PID, LISTEN_FDS),
// CLOEXEC. None when LISTEN_PID is not this process. Once: the variables are removed.
[[nodiscard]] Result<std::vector<UniqueFd>> systemd_descriptors();

}  // namespace sbx::http
