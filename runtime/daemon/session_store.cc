#include "runtime/daemon/session_store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>

#include "runtime/base/places.h"
#include "runtime/base/scope_exit.h"
#include "runtime/base/sys.h"
#include "runtime/daemon/places.h"
#include "runtime/daemon/session_directory.h"
#include "runtime/spawn/records.h"
#include "runtime/workspace/tree.h"

namespace sbx::daemon {
namespace {

using workspace::open_inside;

constexpr const char* kExpiredName = "expired";
constexpr const char* kLockName = ".lock";
constexpr std::string_view kNewPrefix = ".new-";
constexpr std::string_view kGonePrefix = ".gone-";
constexpr const char* kFix = "give sbxd's user a directory of his own: sbxd --state-dir DIR";

Result<void> make_directory(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0700) != 0) return sys_error("mkdir", name);
  return {};
}

Result<void> sync(int directory, const char* what) {
  SBX_ASSIGN(const UniqueFd fd, open_inside(directory, ".", O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return sys_error("fsync", what);
  return {};
}

// Under a name of its own, then renamed: the old file or the new one, never a part.
Result<void> write_durably(int directory, const std::string& name, std::string_view text) {
  const std::string temporary = "put-" + spawn::new_run_id();
  SBX_ASSIGN(const UniqueFd file,
             open_inside(directory, temporary, O_WRONLY | O_CREAT | O_EXCL, 0600));
  ScopeExit remove([&] { (void)::unlinkat(directory, temporary.c_str(), 0); });
  SBX_TRY(sys::write_all(file.get(), text));
  if (::fsync(file.get()) != 0) return sys_error("fsync", name);
  if (::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0) {
    return sys_error("rename", name);
  }
  remove.release();
  return sync(directory, name.c_str());
}

Result<std::string> read_small(int directory, const std::string& name, struct stat& info) {
  SBX_ASSIGN(const UniqueFd file, open_inside(directory, name, O_RDONLY));
  if (::fstat(file.get(), &info) != 0) return sys_error("fstat", name);
  return sys::read_all(file.get(), kMaxRecordBytes);
}

Result<std::vector<std::string>> names_in(int directory) {
  SBX_ASSIGN(UniqueFd fd, open_inside(directory, ".", O_RDONLY | O_DIRECTORY));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return sys_error("fdopendir");
  (void)fd.release();  // the stream owns it now
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return sys_error("readdir");
    if (entry == nullptr) break;
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// A directory of ours that somebody has shut can be opened again, without following a link.
Result<void> make_passable(int directory) {
  struct stat info{};
  if (::fstat(directory, &info) != 0) return sys_error("fstat");
  if ((info.st_mode & S_IRWXU) == S_IRWXU) return {};
  // fchmod(2) takes no O_PATH.
  const std::string itself = "/proc/self/fd/" + std::to_string(directory);
  if (::chmod(itself.c_str(), 0700) != 0) return sys_error("chmod");
  return {};
}

// Each tree by itself: below the session's directory its longest paths would be too long.
Result<void> remove_session(int top, const std::string& name) {
  {
    const auto session = open_inside(top, name, O_PATH | O_DIRECTORY);
    if (!session) {
      // Nothing, or what somebody has put in its place: a file, a link.
      const int failed = session.error().sys_errno;
      const bool is_none = failed == ENOENT || failed == ENOTDIR || failed == ELOOP;
      return is_none ? remove_beside(top, name) : Result<void>(session.error());
    }
    SBX_TRY(make_passable(session->get()));
    SBX_ASSIGN(const auto names, names_in(session->get()));
    for (const std::string& each : names) {
      const auto tree = open_inside(session->get(), each, O_PATH | O_DIRECTORY);
      if (tree) SBX_TRY(make_passable(tree->get()));
      SBX_TRY(remove_beside(session->get(), each));
    }
  }
  if (::unlinkat(top, name.c_str(), AT_REMOVEDIR) != 0) return sys_error("rmdir", name);
  return {};
}

// Switching trees needs renameat2(2) with RENAME_EXCHANGE, which some file systems (of a network,
// above all) do not have: better known now than after a run.
Result<void> check_exchange(int top, const std::string& shown) {
  const std::string one = std::string(kNewPrefix) + spawn::new_run_id();
  const std::string other = std::string(kNewPrefix) + spawn::new_run_id();
  const ScopeExit remove([&] {
    (void)::unlinkat(top, one.c_str(), AT_REMOVEDIR);
    (void)::unlinkat(top, other.c_str(), AT_REMOVEDIR);
  });
  for (const std::string& name : {one, other}) {
    if (::mkdirat(top, name.c_str(), 0700) != 0) return host_lacks("mkdir", errno, shown, kFix);
  }
  if (::renameat2(top, one.c_str(), top, other.c_str(), RENAME_EXCHANGE) == 0) return {};
  return host_lacks("renameat2(RENAME_EXCHANGE)", errno,
                    "the file system of " + shown + " cannot exchange two directories",
                    "keep the state directory on ext4, XFS, Btrfs or tmpfs: sbxd --state-dir DIR");
}

Error in_use(const std::string& directory) {
  return host_lacks("flock", EWOULDBLOCK, directory + " is in use by another sbxd",
                    "stop it, or give this one a --state-dir of its own");
}

}  // namespace

// SECURITY: root may call it, in a directory of the service's user: nothing is made, and a link or
// anything but a file is not opened.
Result<void> SessionStore::refuse_in_use(const std::string& directory) {
  const std::string name = directory + "/" + kLockName;
  const auto lock = sys::open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  struct stat info{};
  // What is wrong with it, open() says.
  if (!lock || ::fstat(lock->get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  if (::flock(lock->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return in_use(directory);
  }
  return {};
}

Result<SessionStore> SessionStore::open(const std::string& directory) {
  auto top = sys::open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!top) return host_lacks("open", top.error().sys_errno, directory, kFix);
  auto lock = open_inside(top->get(), kLockName, O_RDWR | O_CREAT, 0600);
  if (!lock) {
    return host_lacks("open", lock.error().sys_errno, directory + "/" + kLockName, kFix);
  }
  if (const int failed = lock_alone(lock->get()); failed != 0) {
    if (failed == EWOULDBLOCK) return in_use(directory);
    return host_lacks("flock", failed, directory, kFix);
  }
  // Another that failed to start may have taken it back.
  struct stat held{};
  struct stat named{};
  if (::fstat(lock->get(), &held) != 0 ||
      ::fstatat(top->get(), kLockName, &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      held.st_ino != named.st_ino) {
    return in_use(directory);
  }
  SessionStore store(directory, *std::move(top), *std::move(lock));
  ScopeExit take_back([&] { store.take_back(); });
  const int inside = store.top_.get();
  SBX_TRY(check_exchange(inside, directory));
  if (::mkdirat(inside, kExpiredName, 0700) != 0 && errno != EEXIST) {
    return host_lacks("mkdir", errno, directory + "/" + kExpiredName, kFix);
  }
  SBX_ASSIGN(store.expired_, open_inside(inside, kExpiredName, O_RDONLY | O_DIRECTORY));
  take_back.release();
  return store;
}

// What cannot be removed is no harm: a start makes it where it is not there.
void SessionStore::take_back() const {
  (void)::unlinkat(top_.get(), kExpiredName, AT_REMOVEDIR);
  const auto names = names_in(top_.get());
  if (names && *names == std::vector<std::string>{kLockName}) {
    (void)::unlinkat(top_.get(), kLockName, 0);
  }
}

Result<void> SessionStore::check_there() const {
  struct stat open{};
  struct stat named{};
  if (::fstat(top_.get(), &open) != 0) return sys_error("fstat", path_);
  const int failed = ::lstat(path_.c_str(), &named) == 0 ? 0 : errno;
  if (failed != 0 && failed != ENOENT && failed != ENOTDIR) {
    return name_disk_failure(host_lacks(
        "stat", failed, path_,
        failed == EACCES ? "let sbxd's user pass the directories above it: chmod +x the one that "
                           "is shut, which `namei -l " +
                               path_ + "` shows"
                         : "start sbxd again when it can be reached"));
  }
  if (failed != 0 || open.st_dev != named.st_dev || open.st_ino != named.st_ino) {
    return host_lacks("stat", 0, path_ + " is not the directory any more that sbxd opened",
                      "move it back, or start sbxd again: it begins a new one");
  }
  // "." needs the right to pass the directory itself.
  if (::faccessat(top_.get(), ".", W_OK | X_OK, 0) == 0) return {};
  return name_disk_failure(host_lacks("access", errno, path_, "chmod 700 " + path_));
}

Result<std::uint64_t> SessionStore::count() const {
  SBX_ASSIGN(const auto names, names_in(top_.get()));
  return static_cast<std::uint64_t>(
      std::count_if(names.begin(), names.end(), [&](const std::string& name) {
        return is_session_id(name) &&
               ::faccessat(expired_.get(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) != 0;
      }));
}

Result<SessionStore::Loaded> SessionStore::load() const {
  Loaded loaded;
  SBX_TRY(load_tombstones(loaded));
  SBX_ASSIGN(const auto names, names_in(top_.get()));
  std::set<std::string> buried;
  for (const Tombstone& tombstone : loaded.tombstones) buried.insert(tombstone.id);
  for (const std::string& name : names) {
    if (name == kExpiredName || name == kLockName) continue;
    if (name.starts_with(kNewPrefix) || name.starts_with(kGonePrefix) || buried.count(name) > 0) {
      loaded.leftovers.push_back({"", name});
      continue;
    }
    auto session =
        is_session_id(name) ? load_session(name) : Result<StoredSession>(invalid("not a session"));
    if (!session) {
      loaded.complaints.push_back(name + ": " + to_string(session.error()));
      continue;
    }
    const auto beside = names_in(session->directory.get());
    if (!beside) {
      loaded.complaints.push_back(name + ": " + to_string(beside.error()));
      continue;
    }
    for (const std::string& each : *beside) {
      if (each != kTreeName && each != kRecordName) loaded.leftovers.push_back({name, each});
    }
    loaded.sessions.push_back(*std::move(session));
  }
  return loaded;
}

Result<StoredSession> SessionStore::load_session(const std::string& id) const {
  StoredSession session;
  SBX_ASSIGN(session.directory, open_inside(top_.get(), id, O_PATH | O_DIRECTORY));
  struct stat info{};
  SBX_ASSIGN(const std::string text, read_small(session.directory.get(), kRecordName, info));
  SBX_ASSIGN(session.record, parse_session_record(text));
  if (session.record.id != id) return invalid("the record is of another session");
  SBX_TRY(open_tree(session.directory.get()));
  session.last_used = SessionTime(std::chrono::seconds(info.st_mtim.tv_sec));
  return session;
}

Result<void> SessionStore::load_tombstones(Loaded& loaded) const {
  SBX_ASSIGN(const auto names, names_in(expired_.get()));
  for (const std::string& name : names) {
    if (!is_session_id(name)) {
      (void)::unlinkat(expired_.get(), name.c_str(), 0);  // one in the making
      continue;
    }
    struct stat info{};
    const auto text = read_small(expired_.get(), name, info);
    auto tombstone = text ? parse_tombstone(*text) : Result<Tombstone>(text.error());
    if (tombstone && tombstone->id == name) {
      loaded.tombstones.push_back(*std::move(tombstone));
    } else {
      loaded.complaints.push_back(std::string(kExpiredName) + "/" + name + " is no tombstone");
    }
  }
  return {};
}

Result<StoredSession> SessionStore::create(const SessionRecord& record, SessionTime now) const {
  SBX_TRY(check_there());
  const std::string making = std::string(kNewPrefix) + record.id;
  SBX_TRY(make_directory(top_.get(), making));
  ScopeExit remove([&] { (void)remove_session(top_.get(), making); });
  StoredSession session{record, now, UniqueFd()};
  SBX_ASSIGN(session.directory, open_inside(top_.get(), making, O_PATH | O_DIRECTORY));
  const int directory = session.directory.get();
  SBX_TRY(make_directory(directory, kTreeName));
  SBX_TRY(write_durably(directory, kRecordName, to_text(record)));
  SBX_TRY(touch(directory, now));
  if (::renameat(top_.get(), making.c_str(), top_.get(), record.id.c_str()) != 0) {
    return sys_error("rename", record.id);
  }
  remove.release();
  SBX_TRY(sync(top_.get(), "sessions"));
  return session;
}

Result<void> SessionStore::rewrite(int session, const SessionRecord& record) const {
  struct stat info{};
  if (::fstatat(session, kRecordName, &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return sys_error("fstatat", kRecordName);
  }
  SBX_TRY(write_durably(session, kRecordName, to_text(record)));
  return touch(session, SessionTime(std::chrono::seconds(info.st_mtim.tv_sec)));
}

Result<Leftover> SessionStore::set_aside(const std::string& id) const {
  SBX_TRY(check_there());
  std::string gone = std::string(kGonePrefix) + id;
  // Whoever removed it before us leaves nothing to set aside.
  if (::renameat(top_.get(), id.c_str(), top_.get(), gone.c_str()) != 0 && errno != ENOENT) {
    return sys_error("rename", id);
  }
  SBX_TRY(sync(top_.get(), "sessions"));
  return Leftover{"", std::move(gone)};
}

Result<void> SessionStore::bury(const Tombstone& tombstone) const {
  SBX_TRY(check_there());
  return write_durably(expired_.get(), tombstone.id, to_text(tombstone));
}

Result<void> SessionStore::forget(const std::string& tombstone) const {
  if (::unlinkat(expired_.get(), tombstone.c_str(), 0) != 0 && errno != ENOENT) {
    return sys_error("unlink", tombstone);
  }
  return {};
}

Result<void> SessionStore::remove(const Leftover& leftover) const {
  if (leftover.session.empty()) return remove_session(top_.get(), leftover.name);
  SBX_ASSIGN(const UniqueFd session,
             open_inside(top_.get(), leftover.session, O_PATH | O_DIRECTORY));
  return remove_beside(session.get(), leftover.name);
}

}  // namespace sbx::daemon
