#include "runtime/collect/output_directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "runtime/base/scope_exit.h"
#include "runtime/base/sys.h"
#include "runtime/collect/names.h"

namespace sbx::collect {
namespace {

constexpr std::uint64_t kBeneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
constexpr mode_t kFileMode = 0644;       // less the caller's umask
constexpr mode_t kDirectoryMode = 0755;  // the same

bool lacks_tmpfile(int sys_errno) {
  // open(2): EOPNOTSUPP from the file system; EISDIR from a kernel or a FUSE that ignores the flag.
  return sys_errno == EOPNOTSUPP || sys_errno == EISDIR;
}

Error refused(std::string detail) {
  Error error = invalid(std::move(detail));
  error.stage = "output directory";
  return error;
}

Result<UniqueFd> open_directory(int parent, const std::string& name) {
  return sys::open_beneath(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, kBeneath);
}

// Walks or makes the directories of `path` (without the last component) below `root`.
Result<UniqueFd> open_parent(int root, std::string_view path) {
  SBX_ASSIGN(UniqueFd current, open_directory(root, "."));
  for (std::size_t start = 0, slash = path.find('/'); slash != std::string_view::npos;
       start = slash + 1, slash = path.find('/', start)) {
    const std::string name(path.substr(start, slash - start));
    if (::mkdirat(current.get(), name.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
      return sys_error("mkdir", name);
    }
    auto next = open_directory(current.get(), name);
    if (!next) {
      const int cause = next.error().sys_errno;
      if (cause == ELOOP || cause == ENOTDIR) {
        return refused(fmt::format("{} is there and is not a directory", render_path(name)));
      }
      return next;
    }
    current = *std::move(next);
  }
  return current;
}

Result<void> copy_bytes(int from, int to, std::uint64_t size) {
  std::array<char, 64 * 1024> chunk;
  std::uint64_t done = 0;
  while (done < size) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(chunk.size(), size - done));
    const ssize_t got = ::pread(from, chunk.data(), wanted, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys_error("pread");
    if (got == 0) return refused("changed while it was collected");
    SBX_TRY(sys::write_all(to, {chunk.data(), static_cast<std::size_t>(got)}));
    done += static_cast<std::uint64_t>(got);
  }
  return {};
}

// What stands at the name now: nothing, a regular file that may be replaced, or what may not.
enum class Existing { kNothing, kRegular };
Result<Existing> look_at(int parent, const std::string& name) {
  struct stat info{};
  if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return Existing::kNothing;
    return sys_error("fstatat", name);
  }
  if (S_ISREG(info.st_mode)) return Existing::kRegular;
  const char* what = S_ISLNK(info.st_mode)   ? "a symbolic link"
                     : S_ISDIR(info.st_mode) ? "a directory"
                                             : "a special file";
  return refused(fmt::format("{} is there under that name and is not replaced", what));
}

std::string temporary_name() {
  std::array<unsigned char, 8> random{};
  // Does not fail for so few bytes; O_EXCL and linkat guard against a name that exists anyway.
  [[maybe_unused]] const ssize_t got = ::getrandom(random.data(), random.size(), 0);
  std::string name = ".sbx-";
  for (const unsigned char byte : random) name += fmt::format("{:02x}", byte);
  return name;
}

// linkat(2) by AT_EMPTY_PATH would need CAP_DAC_READ_SEARCH; this way needs /proc.
int link_unnamed(int fd, int parent, const char* name) {
  const std::string source = "/proc/self/fd/" + std::to_string(fd);
  return ::linkat(AT_FDCWD, source.c_str(), parent, name, AT_SYMLINK_FOLLOW);
}

// No call gives an unnamed file a name that is taken, so replacing passes through a temporary name
// for two adjacent calls. A child that ignores all signals makes them: killing this process, also
// with SIGKILL, does not stop it in between. It only calls what is safe after fork(2).
Result<void> replace_through_child(int fd, int parent, const std::string& name) {
  const std::string temporary = temporary_name();
  const std::string source = "/proc/self/fd/" + std::to_string(fd);
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = ::fork();
  if (child == 0) {
    int failure = 0;
    if (::linkat(AT_FDCWD, source.c_str(), parent, temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      failure = errno;
    } else if (::renameat(parent, temporary.c_str(), parent, name.c_str()) != 0) {
      failure = errno;
      (void)::unlinkat(parent, temporary.c_str(), 0);
    }
    ::_exit(failure);  // errno values fit an exit status
  }
  const int fork_errno = errno;
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = fork_errno;
  if (child < 0) return sys_error("fork");
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return sys_error("waitpid");
  }
  errno = WIFEXITED(status) ? WEXITSTATUS(status) : EINTR;
  if (errno != 0) return sys_error("rename", name);
  return {};
}

// The usual way: written without a name, then named, so that nothing half-written is ever seen.
Result<void> save_unnamed(UniqueFd unnamed, int parent, const std::string& name, Existing existing,
                          const CollectedFile& file, int from) {
  SBX_TRY(copy_bytes(from, unnamed.get(), file.size));
  if (existing == Existing::kRegular) {
    return replace_through_child(unnamed.get(), parent, name);
  }
  if (link_unnamed(unnamed.get(), parent, name.c_str()) != 0) return sys_error("linkat", name);
  return {};
}

// File systems without O_TMPFILE: a new name is written in place and removed on failure; an
// existing one is replaced by rename. Only here can a kill leave something: a file cut short, or
// `.sbx-…`.
Result<void> save_named(int parent, const std::string& name, Existing existing,
                        const CollectedFile& file, int from) {
  const std::string target = existing == Existing::kRegular ? temporary_name() : name;
  SBX_ASSIGN(const UniqueFd to,
             sys::open_beneath(parent, target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kFileMode,
                               kBeneath));
  ScopeExit remove([&] { (void)::unlinkat(parent, target.c_str(), 0); });
  SBX_TRY(copy_bytes(from, to.get(), file.size));
  if (target != name && ::renameat(parent, target.c_str(), parent, name.c_str()) != 0) {
    return sys_error("rename", name);
  }
  remove.release();
  return {};
}

Result<void> save(int root, const CollectedFile& file, int from) {
  if (!is_plain_relative_path(file.raw_path)) return refused("not a plain relative path");
  SBX_ASSIGN(const UniqueFd parent, open_parent(root, file.raw_path));
  const std::string name = file.raw_path.substr(file.raw_path.rfind('/') + 1);
  SBX_ASSIGN(const Existing existing, look_at(parent.get(), name));
  auto unnamed = sys::open_beneath(parent.get(), ".", O_TMPFILE | O_WRONLY, kFileMode, kBeneath);
  if (unnamed) {
    return save_unnamed(*std::move(unnamed), parent.get(), name, existing, file, from);
  }
  if (!lacks_tmpfile(unnamed.error().sys_errno)) return std::move(unnamed).error();
  return save_named(parent.get(), name, existing, file, from);
}

// Why it failed, where the directory itself is the reason: a removed one has no name left
// (stat(2)), and what the kernel says of it depends on the file system.
Error not_saved(int root, const std::string& path, Error error) {
  struct stat info{};
  if (::fstat(root, &info) != 0 || info.st_nlink != 0) return error;
  return refused(fmt::format("{} was removed while the program ran", render_path(path)));
}

// Makes a file that is gone at once, as save() would: access(2) does not tell of a file system that
// is read-only, has no room, or takes no files (proc, sysfs). 0, or why it cannot be.
int try_to_make_a_file(int directory) {
  const auto unnamed = sys::open_beneath(directory, ".", O_TMPFILE | O_WRONLY, kFileMode, kBeneath);
  if (unnamed) return 0;
  if (!lacks_tmpfile(unnamed.error().sys_errno)) return unnamed.error().sys_errno;
  const std::string name = temporary_name();
  const auto named = sys::open_beneath(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                       kFileMode, kBeneath);
  if (!named) return named.error().sys_errno;
  return ::unlinkat(directory, name.c_str(), 0) == 0 ? 0 : errno;
}

Error not_usable(const std::string& path, int sys_errno) {
  Error error = refused(path + " cannot be written");
  error.sys_errno = sys_errno;
  error.fix = "give a directory that you may write to, or one to be made whose parent exists";
  return error;
}

}  // namespace

OutputDirectory::OutputDirectory(std::string path, UniqueFd fd)
    : path_(std::move(path)), fd_(std::move(fd)) {}

Result<OutputDirectory> OutputDirectory::open(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    return not_usable(path, errno);
  }
  // The path itself is the caller's word, so links in it are followed.
  auto fd = sys::open(path, O_RDONLY | O_DIRECTORY);
  if (!fd) return not_usable(path, fd.error().sys_errno);
  if (const int cause = try_to_make_a_file(fd->get())) return not_usable(path, cause);
  return OutputDirectory(path, *std::move(fd));
}

Result<void> OutputDirectory::check(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) {
    SBX_TRY(open(path));
    return {};
  }
  if (errno != ENOENT) return not_usable(path, errno);
  const std::string trimmed = path.substr(0, path.find_last_not_of('/') + 1);
  const std::size_t slash = trimmed.rfind('/');
  const std::string parent = slash == std::string::npos ? "." : trimmed.substr(0, slash + 1);
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    return not_usable(path, errno);
  }
  return {};
}

FileSink OutputDirectory::sink() const {
  // The descriptor's number and not `this`: the object may be moved meanwhile.
  return [path = path_, root = fd_.get()](CollectedFile& file, int fd) -> Result<void> {
    if (auto saved = save(root, file, fd); !saved) {
      return not_saved(root, path, std::move(saved).error());
    }
    file.saved_as = path + (path.ends_with('/') ? "" : "/") + file.path;
    return {};
  };
}

}  // namespace sbx::collect
