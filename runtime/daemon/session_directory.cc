#include "runtime/daemon/session_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "runtime/base/places.h"
#include "runtime/base/sys.h"
#include "runtime/spawn/records.h"
#include "runtime/workspace/tree.h"

namespace sbx::daemon {
namespace {

std::string fresh_name(const char* prefix) {
  return prefix + spawn::new_run_id();
}

constexpr const char* kDirectoryFix =
    "give sbxd's user the session's directory as it was and start sbxd again, or delete the "
    "session";

// Of the session's own directory, in which a path of a client's is no part: what somebody did to
// it.
Error unusable(Error error) {
  switch (error.sys_errno) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EACCES:
    case EPERM:
    case ESTALE:
      return host_lacks(std::move(error.operation), error.sys_errno,
                        "the session's directory is gone or cannot be used", kDirectoryFix);
    default:
      return error;
  }
}

Result<void> sync_directory(int session) {
  SBX_ASSIGN(const UniqueFd fd, workspace::open_inside(session, ".", O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return sys_error("fsync", "session");
  return {};
}

Result<void> switch_trees(int session, const std::string& next) {
  if (::renameat2(session, kTreeName, session, next.c_str(), RENAME_EXCHANGE) != 0) {
    return sys_error("renameat2", "workspace");
  }
  return sync_directory(session);
}

Result<workspace::Generation> make_generation(int session, int walker,
                                              const plan::WorkspaceSize& old_size,
                                              const std::string& name) {
  if (::mkdirat(session, name.c_str(), 0700) != 0) return unusable(sys_error("mkdir", "workspace"));
  SBX_ASSIGN(const UniqueFd old, open_tree(session));
  SBX_ASSIGN(const UniqueFd next, workspace::open_inside(session, name, O_RDONLY | O_DIRECTORY));
  SBX_ASSIGN(auto made, workspace::receive_generation(walker, old.get(), old_size, next.get()));
  if (made.changed) SBX_TRY(switch_trees(session, name));
  return made;
}

}  // namespace

Result<UniqueFd> open_tree(int session) {
  auto tree = workspace::open_inside(session, kTreeName, O_RDONLY | O_DIRECTORY);
  if (!tree) return unusable(std::move(tree).error());
  return tree;
}

Result<plan::WorkspaceSize> measure_tree(int session) {
  SBX_ASSIGN(const UniqueFd tree, open_tree(session));
  return workspace::measure(tree.get());
}

Result<void> touch(int session, SessionTime now) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(seconds), 0}};
  if (::utimensat(session, kRecordName, times, AT_SYMLINK_NOFOLLOW) != 0) {
    return sys_error("utimensat", kRecordName);
  }
  return {};
}

Result<SavedTree> save_tree(int session, int walker, const plan::WorkspaceSize& old_size) {
  const std::string name = fresh_name("next-");
  auto made = make_generation(session, walker, old_size, name);
  if (made) return SavedTree{*std::move(made), name};
  (void)remove_beside(session, name);  // else a leftover, for the next start
  return unexpected(name_disk_failure(std::move(made).error()));
}

Result<Upload> begin_upload(int session) {
  Upload upload;
  upload.name = fresh_name("put-");
  auto file = workspace::open_inside(session, upload.name, O_WRONLY | O_CREAT | O_EXCL, 0644);
  if (!file) return unusable(std::move(file).error());
  upload.file = *std::move(file);
  // What the umask took away: the mode is what a run will see.
  if (::fchmod(upload.file.get(), 0644) != 0) return sys_error("fchmod", "upload");
  return upload;
}

Result<workspace::SizeChange> finish_upload(int session, int file, const std::string& name,
                                            const std::string& path, std::uint64_t room_bytes,
                                            std::uint64_t room_inodes) {
  if (::fsync(file) != 0) return sys_error("fsync", "upload");
  SBX_ASSIGN(const UniqueFd tree, open_tree(session));
  return workspace::put_file(tree.get(), path, session, name, room_bytes, room_inodes);
}

Result<Deleted> delete_entry(int session, const std::string& path) {
  const std::string name = fresh_name("gone-");
  SBX_ASSIGN(const UniqueFd tree, open_tree(session));
  SBX_ASSIGN(const workspace::SizeChange change,
             workspace::take_out(tree.get(), path, session, name));
  return Deleted{change, name};
}

Result<void> remove_beside(int session, const std::string& name) {
  struct stat info{};
  if (::fstatat(session, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno == ENOENT ? Result<void>() : Result<void>(sys_error("fstatat", name));
  }
  if (S_ISDIR(info.st_mode)) return workspace::remove_tree(session, name);
  if (::unlinkat(session, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  return sys_error("unlink", name);
}

}  // namespace sbx::daemon
