#include "agentd/render/png_pixels.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <png.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "runtime/base/deadline.h"
#include "runtime/base/sys.h"
#include "runtime/base/unique_fd.h"

namespace agentd::render {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr rlim_t kMaxMemory = 512UL << 20;
constexpr std::size_t kMaxPixelBytes =
    static_cast<std::size_t>(kMaxPictureSide) * kMaxPictureSide * 3;

struct Size {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};

#if defined(__x86_64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArch = AUDIT_ARCH_AARCH64;
#else
#error "name this architecture's AUDIT_ARCH constant"
#endif

// What decoding needs, once everything is open.
constexpr std::array kAllowed = {SYS_read,   SYS_write,      SYS_brk,         SYS_mmap,
                                 SYS_munmap, SYS_mremap,     SYS_madvise,     SYS_futex,
                                 SYS_exit,   SYS_exit_group, SYS_rt_sigreturn};

bool shut_in() {
  const rlimit memory{kMaxMemory, kMaxMemory};
  const rlimit seconds{kPatience.count(), kPatience.count()};
  if (::setrlimit(RLIMIT_AS, &memory) != 0 || ::setrlimit(RLIMIT_CPU, &seconds) != 0) return false;
  constexpr auto kCount = static_cast<std::uint8_t>(kAllowed.size());
  std::array<sock_filter, kAllowed.size() + 6> filter{};
  std::size_t n = 0;
  filter[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch));
  filter[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArch, 1, 0);
  filter[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  filter[n++] = BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr));
  for (std::uint8_t i = 0; i < kCount; ++i) {
    filter[n++] = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(kAllowed[i]),
                           static_cast<std::uint8_t>(kCount - i), 0);
  }
  filter[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  filter[n++] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_fprog program{static_cast<unsigned short>(n), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool write_bytes(int fd, const void* bytes, std::size_t size) {
  const auto* at = static_cast<const char*>(bytes);
  while (size > 0) {
    const ssize_t count = ::write(fd, at, size);
    if (count <= 0) return false;
    at += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

// The child. Never returns.
[[noreturn]] void decode(const std::string& file, int out) {
  constexpr int kBroken = 1;
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || !shut_in()) ::_exit(kBroken);
  if (::png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) ::_exit(kBroken);
  const auto side = static_cast<std::uint32_t>(kMaxPictureSide);
  if (image.width == 0 || image.height == 0 || image.width > side || image.height > side) {
    ::_exit(kBroken);
  }
  image.format = PNG_FORMAT_RGB;
  std::vector<std::uint8_t> rgb(PNG_IMAGE_SIZE(image));
  const png_color white{255, 255, 255};
  if (::png_image_finish_read(&image, &white, rgb.data(), 0, nullptr) == 0) ::_exit(kBroken);
  const Size size{image.width, image.height};
  const bool sent =
      write_bytes(out, &size, sizeof size) && write_bytes(out, rgb.data(), rgb.size());
  ::_exit(sent ? 0 : kBroken);
}

// Everything until the end, or nothing when it takes too long or is too much.
std::string read_within_patience(int fd) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  std::string bytes;
  std::array<char, 65536> buffer{};
  for (;;) {
    pollfd polled{fd, POLLIN, 0};
    const int ready = ::poll(&polled, 1, sbx::poll_timeout(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return {};
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(buffer.data(), static_cast<std::size_t>(count));
    if (bytes.size() > kMaxPixelBytes + sizeof(Size)) return {};
  }
}

}  // namespace

std::optional<Pixels> png_pixels(const std::string& file) {
  auto pipe = sbx::sys::pipe();
  if (!pipe) return std::nullopt;
  const pid_t child = ::fork();
  if (child < 0) return std::nullopt;
  if (child == 0) decode(file, pipe->second.get());
  pipe->second.reset();
  const std::string bytes = read_within_patience(pipe->first.get());
  (void)::kill(child, SIGKILL);  // it has ended, or is to
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  Size size;
  if (bytes.size() < sizeof size) return std::nullopt;
  std::memcpy(&size, bytes.data(), sizeof size);
  const auto side = static_cast<std::uint32_t>(kMaxPictureSide);
  if (size.width == 0 || size.height == 0 || size.width > side || size.height > side) {
    return std::nullopt;
  }
  Pixels pixels{static_cast<int>(size.width), static_cast<int>(size.height), {}};
  pixels.rgb.assign(bytes.begin() + sizeof size, bytes.end());
  const std::size_t wanted = std::size_t{size.width} * size.height * 3;
  if (pixels.rgb.size() != wanted) return std::nullopt;
  return pixels;
}

}  // namespace agentd::render
