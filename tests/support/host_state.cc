#include "tests/support/host_state.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <time.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "runtime/base/sys.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxHashed = 1024 * 1024;

// FNV-1a: enough to see that somebody wrote.
std::uint64_t digest(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

std::string owner_and_mode(const struct stat& info) {
  return fmt::format("mode {:o} owner {}:{}", info.st_mode, info.st_uid, info.st_gid);
}

void add_device(const fs::path& path, Things& things) {
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return;
  std::string line = fmt::format("device {} {} numbers {:x}", path.string(), owner_and_mode(info),
                                 S_ISBLK(info.st_mode) || S_ISCHR(info.st_mode) ? info.st_rdev : 0);
  std::error_code no_link;
  const fs::path target = fs::read_symlink(path, no_link);
  if (!no_link) line += " -> " + target.string();
  things.insert(std::move(line));
}

// Not into what is mounted below it: pts, shm and mqueue have visitors.
void add_devices(const fs::path& directory, Things& things) {
  struct stat top{};
  if (::lstat(directory.c_str(), &top) != 0) return;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    add_device(entry.path(), things);
    struct stat info{};
    const bool descend = ::lstat(entry.path().c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                         info.st_dev == top.st_dev;
    if (descend) add_devices(entry.path(), things);
  }
}

enum class Contents { kHashed, kNotRead };

void add_files(const fs::path& directory, Contents contents, Things& things) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    struct stat info{};
    if (::lstat(entry.path().c_str(), &info) != 0) continue;
    std::string line =
        fmt::format("file {} {} size {} changed {}.{}", entry.path().string(), owner_and_mode(info),
                    info.st_size, info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
    if (contents == Contents::kHashed && S_ISREG(info.st_mode)) {
      const auto bytes = sys::read_file(entry.path(), kMaxHashed);
      if (bytes) line += fmt::format(" digest {:x}", digest(*bytes));
    }
    things.insert(std::move(line));
  }
}

void add_text(const std::string& path, Things& things) {
  const auto text = sys::read_file(path, kMaxHashed);
  if (text) things.insert(fmt::format("{} {}", path, *text));
}

// Names alone: how often a module is used changes by itself.
void add_modules(Things& things) {
  std::ifstream modules("/proc/modules");
  for (std::string line; std::getline(modules, line);) {
    things.insert("module " + line.substr(0, line.find(' ')));
  }
}

std::chrono::nanoseconds read_clock(clockid_t clock) {
  timespec time{};
  (void)::clock_gettime(clock, &time);  // cannot fail with these clocks
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

Things host_state() {
  Things things;
  add_devices("/dev", things);
  add_files("/etc", Contents::kHashed, things);
  for (const char* const directory : {"/usr/bin", "/usr/sbin"}) {
    add_files(directory, Contents::kNotRead, things);
  }
  for (const char* const name :
       {"kernel/core_pattern", "kernel/hostname", "kernel/domainname", "kernel/modprobe",
        "kernel/sysrq", "kernel/randomize_va_space", "kernel/pid_max", "vm/overcommit_memory",
        "vm/swappiness", "fs/suid_dumpable", "net/ipv4/ip_forward"}) {
    add_text(std::string("/proc/sys/") + name, things);
  }
  add_text("/proc/swaps", things);
  add_modules(things);
  return things;
}

std::chrono::milliseconds clock_offset() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(read_clock(CLOCK_REALTIME) -
                                                               read_clock(CLOCK_MONOTONIC));
}

Things difference(const Things& before, const Things& after) {
  Things changed;
  for (const std::string& line : before) {
    if (!after.contains(line)) changed.insert("- " + line);
  }
  for (const std::string& line : after) {
    if (!before.contains(line)) changed.insert("+ " + line);
  }
  return changed;
}

}  // namespace sbx::test
