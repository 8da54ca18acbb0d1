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
#include <optional>
#include <system_error>
#include <vector>

#include "runtime/base/own_limits.h"
#include "runtime/base/places.h"
#include "runtime/base/sys.h"

namespace sbx::spawn {
namespace {

constexpr std::string_view kSuffix = ".json";
constexpr const char* kSystemPath = "/run/sbx";
constexpr const char* kSharedPrefix = "/tmp/sbx-";

std::string default_path() {
  if (::geteuid() == 0) return kSystemPath;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/' && ::access(runtime, W_OK) == 0) {
    return std::string(runtime) + "/sbx";
  }
  return kSharedPrefix + std::to_string(::geteuid());
}

// How what lies in the way is mended, as one line. In /tmp it may be another user's, whom only root
// can put away.
std::string fix_for(const std::string& path) {
  if (path.starts_with(kSharedPrefix)) {
    return "sudo rm -r " + path + " # or set runtime_dir in runtime.toml to a directory of yours";
  }
  return "remove " + path + ", or set runtime_dir in runtime.toml to a directory of yours";
}

// SECURITY: /tmp is everybody's. The directory is opened without following a link, and must be
// ours. `shown` is its whole path.
Result<UniqueFd> open_own_directory(int parent, const std::string& name, const std::string& shown) {
  auto fd = sys::open_at(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) {
    return host_lacks("open", fd.error().sys_errno, shown + " is not a directory of yours",
                      fix_for(shown));
  }
  struct stat info{};
  if (::fstat(fd->get(), &info) != 0) return sys_error("fstat", shown);
  if (info.st_uid != ::geteuid() || (info.st_mode & 0022) != 0) {
    return host_lacks("open", EPERM, shown + " belongs to or is writable by somebody else",
                      fix_for(shown));
  }
  return fd;
}

// That `path`, a directory of ours, does not take a file, with what to do: but for what we have too
// little of ourselves, whoever starts us has the fix.
Error cannot_write(Error error, const std::string& path) {
  error.detail = path;
  error = name_disk_failure(std::move(error));
  if (!error.fix.empty() || !scarcity_fix(error.sys_errno).empty()) return error;
  return host_lacks(std::move(error.operation), error.sys_errno, std::move(error.detail),
                    "let the caller write it, or set runtime_dir in runtime.toml to another");
}

Result<UniqueFd> make_own_directory(int parent, const std::string& name, const std::string& shown,
                                    mode_t mode = 0700) {
  if (::mkdirat(parent, name.c_str(), mode) != 0) {
    if (errno != EEXIST) {
      return name_disk_failure(
          host_lacks("mkdir", errno, shown, "make it a directory that you can write"));
    }
  } else if (::fchmodat(parent, name.c_str(), mode, 0) != 0) {  // whatever the umask took away
    return sys_error("chmod", shown);
  }
  return open_own_directory(parent, name, shown);
}

// What make_own_directory() would find. True when the directory is there: it is opened as `found`.
Result<bool> look_at_directory(int parent, const std::string& name, const std::string& shown,
                               UniqueFd& found) {
  struct stat info{};
  if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
    return false;
  }
  SBX_ASSIGN(found, open_own_directory(parent, name, shown));
  return true;
}

// Field 22 of /proc/self/stat; the name in field 2 may hold blanks, and ends at the last ')'.
std::string own_start_ticks() {
  const auto stat = sys::read_file("/proc/self/stat", 4096);
  if (!stat) return "0";
  std::string_view rest = std::string_view(*stat).substr(stat->rfind(')') + 1);
  for (int field = 3; field <= 22; ++field) {
    rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  }
  return std::string(rest.substr(0, rest.find(' ')));
}

std::string record_json(const std::string& id, const std::string& owner) {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  return "{\"id\":\"" + id + "\"," + owner + ",\"started\":" + std::to_string(now.tv_sec) + "}\n";
}

std::string hexadecimal(std::uint64_t value) {
  char digits[17];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, 16);
  return {digits, end};
}

bool lock(int fd) {
  return ::flock(fd, LOCK_EX | LOCK_NB) == 0;
}

// A file without a name, ours alone and locked.
Result<UniqueFd> write_unnamed(int directory, std::string_view content) {
  SBX_ASSIGN(UniqueFd fd, sys::open_at(directory, ".", O_TMPFILE | O_RDWR, 0600));
  if (::fchmod(fd.get(), 0600) != 0) return sys_error("fchmod");
  if (!lock(fd.get())) return sys_error("flock");
  SBX_TRY(sys::write_all(fd.get(), content));
  return fd;
}

Result<UniqueFd> write_record(const RuntimeDirectory& directory, const std::string& id) {
  const int runs = directory.runs_fd();
  SBX_ASSIGN(UniqueFd fd, write_unnamed(runs, record_json(id, directory.owner())));
  const std::string from = "/proc/self/fd/" + std::to_string(fd.get());
  const std::string name = id + std::string(kSuffix);
  if (::linkat(AT_FDCWD, from.c_str(), runs, name.c_str(), AT_SYMLINK_FOLLOW) != 0) {
    return sys_error("linkat");
  }
  return fd;
}

Result<void> check_takes_files(int directory, const std::string& path) {
  if (auto fd = write_unnamed(directory, "{}\n"); !fd) {
    return cannot_write(std::move(fd).error(), path);
  }
  return {};
}

// SECURITY: what lies in the directory was put there by whatever runs as this user. Only a regular
// file of his, under no link, is a record or an id's lock; the rest is never waited for, and left.
Result<UniqueFd> open_own_file(int parent, const std::string& name, int flags, mode_t mode = 0) {
  SBX_ASSIGN(UniqueFd fd, sys::open_regular(parent, name, flags | O_NOFOLLOW, mode));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return sys_error("fstat", name);
  if (info.st_uid != ::geteuid()) return invalid(name + " belongs to somebody else");
  return fd;
}

// What open_own_file() says of a thing that is there and is no file of ours.
bool is_something_else(const Error& error) {
  return error.code == ErrorCode::kInvalid || error.sys_errno == EISDIR ||
         error.sys_errno == ELOOP || error.sys_errno == ENXIO;
}

// Ids for runs are those below it, for sessions those from it on.
std::uint32_t end_of_run_ids(std::uint32_t count) {
  return std::max(2U, count / 2);
}

// None when somebody else holds it, or when something else than a lock lies there.
Result<std::optional<IdLease>> try_lease(const RuntimeDirectory& directory, std::uint32_t index) {
  auto fd = open_own_file(directory.ids_fd(), std::to_string(index), O_RDWR | O_CREAT, 0600);
  if (!fd) {
    if (is_something_else(fd.error())) return std::optional<IdLease>();
    return cannot_write(std::move(fd).error(), directory.path() + "/ids");
  }
  if (!lock(fd->get())) return std::optional<IdLease>();
  // A file made under a strange umask would shut its own owner out the next time.
  if (::fchmod(fd->get(), 0600) != 0) return sys_error("fchmod", "id lock");
  return std::optional<IdLease>(IdLease{index, *std::move(fd)});
}

}  // namespace

// SECURITY: with a slash at its end a path is followed whatever the flags say.
std::string RuntimeDirectory::path_for(const std::string& configured) {
  return without_end_slash(configured.empty() ? default_path() : configured);
}

Result<RuntimeDirectory> RuntimeDirectory::open(const std::string& configured) {
  const std::string path = path_for(configured);
  // What is in it is nobody else's. The way through it to the service's socket is everybody's.
  const mode_t mode = path == kSystemPath ? 0755 : 0700;
  SBX_ASSIGN(const UniqueFd top, make_own_directory(AT_FDCWD, path, path, mode));
  SBX_ASSIGN(UniqueFd runs, make_own_directory(top.get(), "runs", path + "/runs"));
  SBX_ASSIGN(UniqueFd ids, make_own_directory(top.get(), "ids", path + "/ids"));
  return RuntimeDirectory(path, std::move(runs), std::move(ids));
}

Result<void> RuntimeDirectory::check(const std::string& configured) {
  const std::string path = path_for(configured);
  const auto can_hold = [](const std::string& parent, const std::string& made) -> Result<void> {
    if (::access(parent.c_str(), W_OK | X_OK) != 0) {
      return host_lacks("access", errno, parent + ", where " + made + " would be made",
                        "set runtime_dir in runtime.toml to a directory that you can make");
    }
    SBX_ASSIGN(const UniqueFd fd, sys::open(parent, O_PATH | O_DIRECTORY));
    return check_takes_files(fd.get(), parent);
  };
  UniqueFd top;
  SBX_ASSIGN(const bool is_there, look_at_directory(AT_FDCWD, path, path, top));
  if (!is_there) return can_hold(path.substr(0, std::max<std::size_t>(path.rfind('/'), 1)), path);
  UniqueFd runs;
  UniqueFd ids;
  SBX_ASSIGN(const bool has_runs, look_at_directory(top.get(), "runs", path + "/runs", runs));
  SBX_ASSIGN(const bool has_ids, look_at_directory(top.get(), "ids", path + "/ids", ids));
  if (!has_runs || !has_ids) return can_hold(path, path + (has_runs ? "/ids" : "/runs"));
  const RuntimeDirectory directory(path, std::move(runs), std::move(ids));
  SBX_ASSIGN(const Record record, Record::create(directory, new_run_id()));
  return check_takes_files(directory.ids_fd(), path + "/ids");  // an id's lock, while the record is
}

RuntimeDirectory::RuntimeDirectory(std::string path, UniqueFd runs, UniqueFd ids)
    : path_(std::move(path)), runs_(std::move(runs)), ids_(std::move(ids)) {
  struct stat info{};
  // On an open descriptor of ours this cannot fail; zeros would only make sweeping more careful.
  (void)::fstat(runs_.get(), &info);
  tag_ = hexadecimal(info.st_dev) + "." + hexadecimal(info.st_ino) + "-";
  owner_ = "\"pid\":" + std::to_string(::getpid()) + ",\"pid_started\":" + own_start_ticks();
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
  const auto fd = open_own_file(runs_.get(), name, O_RDONLY);
  if (!fd) return fd.error().sys_errno == ENOENT;
  return lock(fd->get());
}

Result<void> RuntimeDirectory::check_there() const {
  for (const UniqueFd* const part : {&runs_, &ids_}) {
    struct stat info{};
    if (::fstat(part->get(), &info) != 0) return sys_error("fstat", path_);
    if (info.st_nlink > 0) continue;
    return host_lacks("records", 0, path_ + " was removed while it was in use",
                      "start this anew, and keep what cleans up from " + path_ +
                          ", or name another place with runtime_dir in runtime.toml");
  }
  return {};
}

std::vector<std::string> RuntimeDirectory::remove_dead_records() const {
  std::vector<std::string> removed;
  auto again = sys::open_at(runs_.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!again) return removed;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(again->get()), ::closedir);
  if (!dir) return removed;
  (void)again->release();  // fdopendir owns it now
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (!name.ends_with(kSuffix)) continue;
    const auto fd = open_own_file(runs_.get(), entry->d_name, O_RDONLY);
    if (fd && lock(fd->get()) && ::unlinkat(runs_.get(), entry->d_name, 0) == 0) {
      removed.emplace_back(name.substr(0, name.size() - kSuffix.size()));
    }
  }
  return removed;
}

Result<Record> Record::create(const RuntimeDirectory& directory, const std::string& id) {
  auto fd = write_record(directory, id);
  if (!fd) return cannot_write(std::move(fd).error(), directory.path() + "/runs");
  return Record(id, directory.runs_fd(), *std::move(fd));
}

Record::~Record() {
  if (!fd_ || runs_ < 0) return;
  // A failure leaves an unlocked record, which the next start removes.
  (void)::unlinkat(runs_, (id_ + std::string(kSuffix)).c_str(), 0);
}

Result<IdLease> lease_id(const RuntimeDirectory& directory, std::uint32_t count,
                         std::uint32_t first) {
  if (count <= 1) return IdLease{};
  const std::uint32_t end = end_of_run_ids(count);
  for (std::uint32_t tried = 0; tried + 1 < end; ++tried) {
    const std::uint32_t index = 1 + (first - 1 + tried) % (end - 1);
    SBX_ASSIGN(auto lease, try_lease(directory, index));
    if (lease) return *std::move(lease);
  }
  return host_lacks("lease_id", EAGAIN,
                    "all " + std::to_string(end - 1) + " ids for runs are in use",
                    "wait for a run to end, or give the user more subordinate ids");
}

Result<IdLease> lease_session_id(const RuntimeDirectory& directory, std::uint32_t count,
                                 std::uint32_t wanted) {
  if (count <= 1) return IdLease{};
  const std::uint32_t first = end_of_run_ids(count);
  if (wanted >= first && wanted < count) {
    SBX_ASSIGN(auto lease, try_lease(directory, wanted));
    if (lease) return *std::move(lease);
  }
  for (std::uint32_t index = first; index < count; ++index) {
    SBX_ASSIGN(auto lease, try_lease(directory, index));
    if (lease) return *std::move(lease);
  }
  return host_lacks("lease_session_id", EAGAIN,
                    "all " + std::to_string(count - first) + " ids for sessions are in use",
                    "delete sessions, or give the user more subordinate ids");
}

Result<IdLease> IdPool::take(std::uint32_t count) {
  if (count > 1 && !idle_.empty()) {
    IdLease lease = std::move(idle_.back());
    idle_.pop_back();
    return lease;
  }
  SBX_ASSIGN(IdLease lease, lease_id(*directory_, count, next_));
  next_ = lease.index + 1;
  return lease;
}

void IdPool::give(IdLease lease) {
  if (lease.lock) idle_.push_back(std::move(lease));
}

std::string new_run_id() {
  std::uint64_t value = 0;
  // getrandom(2) of 8 bytes cannot fail or be short once the pool is initialised; where a filter
  // refuses it, no id would be anybody's own.
  while (::getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id(16, '0');
  for (std::size_t i = 0; i < id.size(); ++i, value >>= 4) id[i] = kDigits[value & 15];
  return id;
}

}  // namespace sbx::spawn
