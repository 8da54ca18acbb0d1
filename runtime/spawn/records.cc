#include "runtime/spawn/records.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/base/sys.h"

namespace sbx::spawn {
namespace {

constexpr std::string_view kSuffix = ".json";

std::string default_path() {
  if (::geteuid() == 0) return "/run/sbx";
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/' && ::access(runtime, W_OK) == 0) {
    return std::string(runtime) + "/sbx";
  }
  return "/tmp/sbx-" + std::to_string(::geteuid());
}

// SECURITY: /tmp is everybody's. The directory is opened without following a link, and must be
// ours.
Result<UniqueFd> open_own_directory(int parent, const std::string& path) {
  if (::mkdirat(parent, path.c_str(), 0700) != 0) {
    if (errno != EEXIST) {
      return host_lacks("mkdir", errno, path, "make it a directory that you can write");
    }
  } else if (::fchmodat(parent, path.c_str(), 0700, 0) != 0) {  // whatever the umask took away
    return sys_error("chmod", path);
  }
  auto fd = sys::open_at(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) {
    return host_lacks("open", fd.error().sys_errno, path + " is not a directory of yours",
                      "remove it, or set runtime_dir in runtime.toml");
  }
  struct stat info{};
  if (::fstat(fd->get(), &info) != 0) return sys_error("fstat", path);
  if (info.st_uid != ::geteuid() || (info.st_mode & 0022) != 0) {
    return host_lacks("open", EPERM, path + " belongs to or is writable by somebody else",
                      "remove it, or set runtime_dir in runtime.toml");
  }
  return fd;
}

std::string record_json(const std::string& id) {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  return "{\"id\":\"" + id + "\",\"pid\":" + std::to_string(::getpid()) +
         ",\"started\":" + std::to_string(now.tv_sec) + "}\n";
}

std::string hexadecimal(std::uint64_t value) {
  char digits[17];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, 16);
  return {digits, end};
}

bool lock(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0;
}

}  // namespace

Result<RuntimeDirectory> RuntimeDirectory::open(const std::string& configured) {
  const std::string path = configured.empty() ? default_path() : configured;
  SBX_ASSIGN(const UniqueFd top, open_own_directory(AT_FDCWD, path));
  SBX_ASSIGN(UniqueFd runs, open_own_directory(top.get(), "runs"));
  SBX_ASSIGN(UniqueFd ids, open_own_directory(top.get(), "ids"));
  return RuntimeDirectory(path, std::move(runs), std::move(ids));
}

RuntimeDirectory::RuntimeDirectory(std::string path, UniqueFd runs, UniqueFd ids)
    : path_(std::move(path)), runs_(std::move(runs)), ids_(std::move(ids)) {
  struct stat info{};
  // On an open descriptor of ours this cannot fail; zeros would only make sweeping more careful.
  (void)::fstat(runs_.get(), &info);
  tag_ = hexadecimal(info.st_dev) + "." + hexadecimal(info.st_ino) + "-";
}

std::string RuntimeDirectory::group_name(std::string_view record) const {
  return tag_ + std::string(record);
}

bool RuntimeDirectory::is_dead_group(std::string_view group) const {
  if (!group.starts_with(tag_)) return false;
  group.remove_prefix(tag_.size());
  return is_dead(group);
}

bool RuntimeDirectory::is_dead(std::string_view record) const {
  const std::string name = std::string(record) + std::string(kSuffix);
  const auto fd = sys::open_at(runs_.get(), name, O_RDONLY | O_NOFOLLOW);
  if (!fd) return fd.error().sys_errno == ENOENT;
  return lock(fd->get());
}

int RuntimeDirectory::remove_dead_records() const {
  auto again = sys::open_at(runs_.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!again) return 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(again->get()), ::closedir);
  if (!dir) return 0;
  (void)again->release();  // fdopendir owns it now
  int removed = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    const auto fd = sys::open_at(runs_.get(), entry->d_name, O_RDONLY | O_NOFOLLOW);
    if (fd && lock(fd->get()) && ::unlinkat(runs_.get(), entry->d_name, 0) == 0) ++removed;
  }
  return removed;
}

Result<Record> Record::create(const RuntimeDirectory& directory, const std::string& id) {
  const int runs = directory.runs_fd();
  SBX_ASSIGN(UniqueFd fd, sys::open_at(runs, ".", O_TMPFILE | O_RDWR, 0600));
  if (::fchmod(fd.get(), 0600) != 0) return sys_error("fchmod", "run record");
  if (!lock(fd.get())) return sys_error("flock", "run record");
  SBX_TRY(sys::write_all(fd.get(), record_json(id)));
  const std::string from = "/proc/self/fd/" + std::to_string(fd.get());
  const std::string name = id + std::string(kSuffix);
  if (::linkat(AT_FDCWD, from.c_str(), runs, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return sys_error("linkat", "run record " + name);
  }
  return Record(id, runs, std::move(fd));
}

Record::~Record() {
  if (!fd_ || runs_ < 0) return;
  // A failure leaves an unlocked record, which the next start removes.
  (void)::unlinkat(runs_, (id_ + std::string(kSuffix)).c_str(), 0);
}

Result<IdLease> lease_id(const RuntimeDirectory& directory, std::uint32_t count) {
  if (count <= 1) return IdLease{};
  const std::uint32_t end = std::max(2U, count / 2);
  for (std::uint32_t index = 1; index < end; ++index) {
    SBX_ASSIGN(UniqueFd fd, sys::open_at(directory.ids_fd(), std::to_string(index),
                                         O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    if (!lock(fd.get())) continue;
    // A file made under a strange umask would shut its own owner out the next time.
    if (::fchmod(fd.get(), 0600) != 0) return sys_error("fchmod", "id lock");
    return IdLease{index, std::move(fd)};
  }
  return host_lacks("lease_id", EAGAIN,
                    "all " + std::to_string(end - 1) + " ids for runs are in use",
                    "wait for a run to end, or give the user more subordinate ids");
}

std::string new_run_id() {
  std::uint64_t value = 0;
  // getrandom(2) of 8 bytes cannot fail or be short once the pool is initialised.
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id(16, '0');
  for (std::size_t i = 0; i < id.size(); ++i, value >>= 4) id[i] = kDigits[value & 15];
  return id;
}

}  // namespace sbx::spawn
