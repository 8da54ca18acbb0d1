// Thin wrappers over system calls: errno becomes an Error, EINTR is retried, CLOEXEC is always set.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::sys {

[[nodiscard]] Result<UniqueFd> open(const std::string& path, int flags, mode_t mode = 0);
[[nodiscard]] Result<UniqueFd> open_at(int directory, const std::string& path, int flags,
                                       mode_t mode = 0);
// openat2(2), Linux 5.6. `resolve` is a set of RESOLVE_* flags.
[[nodiscard]] Result<UniqueFd> open_beneath(int directory, const std::string& path, int flags,
                                            mode_t mode, std::uint64_t resolve);

// Without waiting, whatever is there: anything but a regular file (a FIFO, a device, a directory)
// is kInvalid. Of /proc and cgroupfs the files are regular.
[[nodiscard]] Result<UniqueFd> open_regular(int directory, const std::string& path, int flags,
                                            mode_t mode = 0);

// Whole contents of a regular file; kInvalid detail when longer than `limit`.
[[nodiscard]] Result<std::string> read_file(const std::string& path, std::size_t limit);
[[nodiscard]] Result<std::string> read_all(int fd, std::size_t limit);
[[nodiscard]] Result<void> write_all(int fd, std::string_view bytes);
// Opens an existing file and writes `value` in one call (proc, cgroupfs).
[[nodiscard]] Result<void> write_file(const std::string& path, std::string_view value);

// {read end, write end}, O_CLOEXEC | `flags`.
[[nodiscard]] Result<std::pair<UniqueFd, UniqueFd>> pipe(int flags = 0);
// A SOCK_SEQPACKET pair.
[[nodiscard]] Result<std::pair<UniqueFd, UniqueFd>> seqpacket_pair();
// The lowest free number at or above `lowest`.
[[nodiscard]] Result<UniqueFd> duplicate_above(int fd, int lowest);
[[nodiscard]] Result<void> set_nonblocking(int fd, bool on);

// A sealed, executable or data memfd holding `bytes` (memfd_create(2), F_ADD_SEALS).
[[nodiscard]] Result<UniqueFd> sealed_memfd(const char* name, std::span<const std::uint8_t> bytes,
                                            bool executable);

// Sends or receives one packet with descriptors (SCM_RIGHTS).
inline constexpr std::size_t kMaxPacketFds = 32;
[[nodiscard]] Result<void> send_packet(int socket, std::span<const std::uint8_t> bytes,
                                       std::span<const int> fds);
struct Packet {
  std::size_t size = 0;       // 0: the peer closed
  std::vector<UniqueFd> fds;  // CLOEXEC
};
// nullopt when it would block (`MSG_DONTWAIT` in flags).
[[nodiscard]] Result<std::optional<Packet>> receive_packet(int socket,
                                                           std::span<std::uint8_t> buffer,
                                                           int flags = 0);

// Blocks until poll(2) tells of `events`, or of an error or the end, on `fd`: true; false when
// `patience` is over.
[[nodiscard]] Result<bool> ready_in_time(int fd, short events, std::chrono::milliseconds patience);

// pidfd_send_signal(2). ESRCH (already gone) is success.
[[nodiscard]] Result<void> pidfd_signal(int pidfd, int signal);

// True when fd lies on a file system of this magic (fstatfs).
[[nodiscard]] bool has_magic(int fd, long magic);

// What a symbolic link holds (readlink(2)); empty when there is none at `path`.
[[nodiscard]] std::string link_target(const std::string& path);

// kHost, with the fix, where /proc is missing or was mounted for another pid namespace: there a
// number names another process than it does here. SECURITY: to be asked before anything is written
// by number below /proc.
[[nodiscard]] Result<void> check_own_proc();

// The error of one who had no room left on a disk, or no more of it for himself.
[[nodiscard]] bool is_full(int sys_errno);

}  // namespace sbx::sys
