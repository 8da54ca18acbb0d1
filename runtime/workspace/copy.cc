#include "runtime/workspace/copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/workspace/tree.h"

namespace sbx::workspace {
namespace {

using Chunk = std::array<char, 64 * 1024>;

// As much as there is up to `size` bytes; 0 at the file's end.
Result<std::size_t> read_at(int fd, char* to, std::size_t size, std::uint64_t offset) {
  for (;;) {
    const ssize_t got = ::pread(fd, to, size, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) return sys_error("pread");
  }
}

Result<void> write_at(int fd, const char* from, std::size_t size, std::uint64_t offset) {
  while (size > 0) {
    const ssize_t put = ::pwrite(fd, from, size, static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return sys_error("pwrite");
    from += put;
    size -= static_cast<std::size_t>(put);
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

Result<void> copy_extent(int from, int to, Extent extent) {
  Chunk chunk;
  while (extent.size > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(extent.size, chunk.size()));
    SBX_ASSIGN(const std::size_t got, read_at(from, chunk.data(), part, extent.offset));
    if (got == 0) return invalid("a file became shorter while it was copied");
    SBX_TRY(write_at(to, chunk.data(), got, extent.offset));
    extent.offset += got;
    extent.size -= got;
  }
  return {};
}

Result<bool> same_extent(int a, int b, Extent extent) {
  Chunk of_a;
  Chunk of_b;
  while (extent.size > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(extent.size, of_a.size()));
    SBX_ASSIGN(const std::size_t got_a, read_at(a, of_a.data(), part, extent.offset));
    SBX_ASSIGN(const std::size_t got_b, read_at(b, of_b.data(), part, extent.offset));
    if (got_a == 0 || got_a != got_b) return false;
    if (std::memcmp(of_a.data(), of_b.data(), got_a) != 0) return false;
    extent.offset += got_a;
    extent.size -= got_a;
  }
  return true;
}

}  // namespace

Result<void> copy_file(int from, int to, const struct stat& info, mode_t mode) {
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (::ftruncate(to, info.st_size) != 0) return sys_error("ftruncate");
  for (std::uint64_t offset = 0;;) {
    SBX_ASSIGN(const Extent extent, next_data(from, offset, size));
    if (extent.size == 0) break;
    SBX_TRY(copy_extent(from, to, extent));
    offset = extent.offset + extent.size;
  }
  const timespec times[2] = {{0, UTIME_OMIT}, info.st_mtim};
  if (::fchmod(to, mode) != 0) return sys_error("fchmod");
  if (::futimens(to, times) != 0) return sys_error("futimens");
  return {};
}

Result<bool> same_content(int a, int b, std::uint64_t size) {
  for (std::uint64_t offset = 0;;) {
    SBX_ASSIGN(const Extent of_a, next_data(a, offset, size));
    SBX_ASSIGN(const Extent of_b, next_data(b, offset, size));
    if (of_a.size != of_b.size) return false;
    if (of_a.size == 0) return true;
    if (of_a.offset != of_b.offset) return false;
    SBX_ASSIGN(const bool same, same_extent(a, b, of_a));
    if (!same) return false;
    offset = of_a.offset + of_a.size;
  }
}

}  // namespace sbx::workspace
