#include "runtime/workspace/generation.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <string_view>
#include <utility>

#include "runtime/base/sys.h"
#include "runtime/collect/collection.h"
#include "runtime/collect/names.h"
#include "runtime/workspace/copy.h"
#include "runtime/workspace/tree.h"
#include "runtime/workspace/wire.h"

namespace sbx::workspace {
namespace {

using wire::Kind;
using wire::Reason;

constexpr mode_t kOwnerFile = 0600;
constexpr mode_t kOwnerDirectory = 0700;
// Up to so many new files and directories are written out one by one; more, with all that the file
// system has not written yet, at once.
constexpr std::size_t kFewNew = 8;

std::string reason_text(const wire::Record& record) {
  switch (record.reason) {
    case Reason::kFifo:
      return "named pipe";
    case Reason::kSocket:
      return "socket";
    case Reason::kDevice:
      return "device or other special file";
    case Reason::kPathTooLong:
      return fmt::format("path of more than {} bytes or {} components", kMaxPathBytes, kMaxDepth);
    case Reason::kUnreadable:
      return fmt::format("cannot be read: {}", std::strerror(record.sys_errno));
    case Reason::kNone:
      break;
  }
  return "refused";
}

// An errno that is about this entry and not about the disk. ENOENT: its directory was refused.
bool is_about_entry(int sys_errno) {
  for (const int about : {EEXIST, EILSEQ, EINVAL, ENAMETOOLONG, EFBIG, EMLINK, ENOENT, ENOTDIR}) {
    if (sys_errno == about) return true;
  }
  return false;
}

// The file system has no further name for this file, or for any: a copy will do.
bool is_no_link_for_it(int sys_errno) {
  return sys_errno == EMLINK || sys_errno == EPERM || sys_errno == EOPNOTSUPP;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

class Receiver {
 public:
  Receiver(int old, int next) : next_(next), old_places_(old), next_places_(next) {}

  // True when the walk is complete.
  Result<bool> take(const wire::Message& message, const std::vector<UniqueFd>& fds) {
    const std::string path(message.path);
    switch (message.record.kind) {
      case Kind::kEnd:
        return true;
      case Kind::kRefused:
        refuse(path, reason_text(message.record));
        return false;
      case Kind::kDirectory:
        return finish(path, take_directory(path, message.record.mode));
      case Kind::kSymlink:
        return finish(path, take_symlink(path, std::string(message.target)));
      case Kind::kFile:
        if (fds.size() != 1) return invalid("walker packet without its descriptor");
        return finish(path, take_file(path, fds.front().get()));
    }
    return false;
  }

  Result<Generation> finish_generation(const plan::WorkspaceSize& old_size) {
    // As many entries, and each the same as one of the old tree: the same tree.
    generation_.changed = different_ || generation_.size.inodes != old_size.inodes;
    if (generation_.changed) SBX_TRY(make_durable());
    if (refused_beyond_ > 0) {
      generation_.refused.push_back({".", fmt::format("{} more entries", refused_beyond_)});
    }
    return std::move(generation_);
  }

 private:
  // Nothing is left below `next_` of an entry that failed.
  Result<bool> finish(const std::string& path, Result<void> taken) {
    if (taken) {
      ++generation_.size.inodes;
      return false;
    }
    const int cause = taken.error().sys_errno;
    if (!is_about_entry(cause)) {
      return unexpected(std::move(taken).error().with_context(collect::render_path(path)));
    }
    refuse(path, fmt::format("cannot be kept: {}", std::strerror(cause)));
    return false;
  }

  void refuse(const std::string& path, std::string reason) {
    if (generation_.refused.size() >= collect::kMaxRefusalsListed) {
      ++refused_beyond_;
      return;
    }
    generation_.refused.push_back({collect::render_path(path), std::move(reason)});
  }

  Result<void> take_directory(const std::string& path, mode_t mode) {
    mode |= kOwnerDirectory;
    SBX_ASSIGN(const int parent, next_places_.holding(path));
    const std::string name = last_component(path);
    if (::mkdirat(parent, name.c_str(), kOwnerDirectory) != 0) return sys_error("mkdir");
    SBX_ASSIGN(const UniqueFd made, open_inside(parent, name, O_RDONLY | O_DIRECTORY));
    if (::fchmod(made.get(), mode) != 0) return sys_error("fchmod");
    struct stat was{};
    different_ |= !look_at_old(path, was) || !S_ISDIR(was.st_mode) || (was.st_mode & 0777U) != mode;
    note_new(path);
    return {};
  }

  Result<void> take_symlink(const std::string& path, const std::string& target) {
    SBX_ASSIGN(const int parent, next_places_.holding(path));
    if (::symlinkat(target.c_str(), parent, last_component(path).c_str()) != 0) {
      return sys_error("symlink");
    }
    generation_.size.bytes += link_bytes(target.size());
    different_ |= !is_old_symlink(path, target);
    return {};
  }

  Result<void> take_file(const std::string& path, int file) {
    struct stat info{};
    if (::fstat(file, &info) != 0) return sys_error("fstat");
    if (!S_ISREG(info.st_mode)) return invalid("the walker sent something that is no file");
    if (info.st_nlink > 1) {
      const auto first = first_names_.find(info.st_ino);
      if (first != first_names_.end()) return take_further_name(path, first->second);
    }
    SBX_TRY(keep_or_copy(path, file, info));
    SBX_ASSIGN(const std::uint64_t bytes,
               data_bytes(file, static_cast<std::uint64_t>(info.st_size)));
    generation_.size.bytes += bytes;
    if (info.st_nlink > 1) first_names_.emplace(info.st_ino, path);
    return {};
  }

  Result<void> take_further_name(const std::string& path, const std::string& first) {
    SBX_ASSIGN(const Place there, find_place(next_, first));
    SBX_ASSIGN(const int parent, next_places_.holding(path));
    if (::linkat(there.directory.get(), there.name.c_str(), parent, last_component(path).c_str(),
                 0) != 0) {
      return sys_error("link");
    }
    struct stat is{};
    struct stat was{};
    const bool known =
        ::fstatat(there.directory.get(), there.name.c_str(), &is, AT_SYMLINK_NOFOLLOW) == 0 &&
        look_at_old(path, was);
    different_ |= !known || is.st_ino != was.st_ino;
    return {};
  }

  Result<void> keep_or_copy(const std::string& path, int file, const struct stat& info) {
    const mode_t mode = (info.st_mode & 0777U) | kOwnerFile;
    SBX_ASSIGN(const bool same, is_old_file(path, file, info, mode));
    SBX_ASSIGN(const int parent, next_places_.holding(path));
    const std::string name = last_component(path);
    if (same) {
      SBX_ASSIGN(const int old_parent, old_places_.holding(path));
      if (::linkat(old_parent, name.c_str(), parent, name.c_str(), 0) == 0) return {};
      if (!is_no_link_for_it(errno)) return sys_error("link");
    }
    different_ = true;
    SBX_ASSIGN(const UniqueFd made,
               open_inside(parent, name, O_WRONLY | O_CREAT | O_EXCL, kOwnerFile));
    auto copied = copy_file(file, made.get(), info, mode);
    if (!copied) {
      // A refused entry leaves nothing; after any other error the whole generation goes.
      (void)::unlinkat(parent, name.c_str(), 0);
      return copied;
    }
    note_new(path);
    return {};
  }

  // The old generation's entry of that path, if there is one.
  bool look_at_old(const std::string& path, struct stat& was) {
    const auto parent = old_places_.holding(path);
    return parent &&
           ::fstatat(*parent, last_component(path).c_str(), &was, AT_SYMLINK_NOFOLLOW) == 0;
  }

  bool is_old_symlink(const std::string& path, const std::string& target) {
    struct stat was{};
    if (!look_at_old(path, was) || !S_ISLNK(was.st_mode)) return false;
    const auto parent = old_places_.holding(path);
    std::array<char, kMaxPathBytes + 1> old_target;
    if (!parent) return false;
    const ssize_t size =
        ::readlinkat(*parent, last_component(path).c_str(), old_target.data(), old_target.size());
    return size >= 0 &&
           target == std::string_view(old_target.data(), static_cast<std::size_t>(size));
  }

  Result<bool> is_old_file(const std::string& path, int file, const struct stat& info,
                           mode_t mode) {
    struct stat was{};
    if (!look_at_old(path, was) || !S_ISREG(was.st_mode) || was.st_size != info.st_size ||
        (was.st_mode & 0777U) != mode || !same_time(was.st_mtim, info.st_mtim)) {
      return false;
    }
    if (is_another_files(was, info)) return false;
    SBX_ASSIGN(const int parent, old_places_.holding(path));
    SBX_ASSIGN(const UniqueFd old, open_inside(parent, last_component(path), O_RDONLY));
    return same_content(old.get(), file, static_cast<std::uint64_t>(info.st_size));
  }

  // Two names of one old file that are two files now must not become one again, however alike.
  bool is_another_files(const struct stat& was, const struct stat& info) {
    if (was.st_nlink == 1) return false;
    return kept_.emplace(was.st_ino, info.st_ino).first->second != info.st_ino;
  }

  void note_new(const std::string& path) {
    if (new_.size() <= kFewNew) new_.push_back(path);
  }

  Result<void> make_durable() {
    SBX_ASSIGN(const UniqueFd top, open_inside(next_, ".", O_RDONLY | O_DIRECTORY));
    if (new_.size() > kFewNew) {
      // Linux 5.8: tells of errors that writing out had.
      if (::syncfs(top.get()) != 0) return sys_error("syncfs");
      return {};
    }
    for (const std::string& path : new_) {
      SBX_ASSIGN(const UniqueFd file, open_inside(next_, path, O_RDONLY));
      if (::fsync(file.get()) != 0) return sys_error("fsync", collect::render_path(path));
    }
    if (::fsync(top.get()) != 0) return sys_error("fsync");
    return {};
  }

  int next_;
  Directories old_places_, next_places_;
  Generation generation_;
  bool different_ = false;
  std::uint64_t refused_beyond_ = 0;
  std::map<ino_t, std::string> first_names_;  // of files with several, by their inode in the tmpfs
  std::map<ino_t, ino_t> kept_;               // old files with several names: who has them now
  std::vector<std::string> new_;              // up to kFewNew + 1
};

Result<void> await_packet(int socket, std::chrono::milliseconds patience) {
  SBX_ASSIGN(const bool told, sys::ready_in_time(socket, POLLIN, patience));
  if (told) return {};
  errno = ETIMEDOUT;
  return sys_error("walker", "it tells nothing");
}

}  // namespace

Result<Generation> receive_generation(int socket, int old, const plan::WorkspaceSize& old_size,
                                      int next, std::chrono::milliseconds patience) {
  Receiver receiver(old, next);
  std::array<std::uint8_t, wire::kMaxPacket> buffer;
  for (;;) {
    SBX_TRY(await_packet(socket, patience));
    SBX_ASSIGN(auto packet, sys::receive_packet(socket, buffer));
    if (!packet || packet->size == 0) return invalid("the walker ended before the walk did");
    SBX_ASSIGN(const wire::Message message, wire::parse(std::span(buffer).first(packet->size)));
    SBX_ASSIGN(const bool complete, receiver.take(message, packet->fds));
    if (complete) return receiver.finish_generation(old_size);
  }
}

}  // namespace sbx::workspace
