// The walker: serve_collection. Runs in a process of its own, forked by the single-threaded
// spawner.
#include <dirent.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/collect/collection.h"
#include "runtime/collect/wire.h"

namespace sbx::collect {
namespace {

using wire::Kind;
using wire::Reason;

constexpr std::uint64_t kResolve =
    RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV;

struct CloseDirectory {
  void operator()(DIR* directory) const { (void)::closedir(directory); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

// A directory still to be visited. `depth` is the number of directories in `path`.
struct Pending {
  std::string path;
  std::uint32_t depth = 0;
};

// The first names of a directory in byte order, and how many more there were.
struct Listing {
  std::vector<std::string> names;
  std::uint64_t beyond = 0;
};

std::chrono::nanoseconds cpu_time() {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);  // cannot fail with this clock
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Why an entry that is not a directory cannot be collected, whatever the limits.
Reason refusal_by_kind(const struct stat& info) {
  if (S_ISLNK(info.st_mode)) return Reason::kSymlink;
  if (S_ISFIFO(info.st_mode)) return Reason::kFifo;
  if (S_ISSOCK(info.st_mode)) return Reason::kSocket;
  if (!S_ISREG(info.st_mode)) return Reason::kDevice;
  return info.st_nlink == 1 ? Reason::kNone : Reason::kHardLink;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_mode == b.st_mode &&
         a.st_nlink == b.st_nlink && a.st_size == b.st_size;
}

class Walker {
 public:
  Walker(int root, int socket, const CollectLimits& limits)
      : root_(root),
        socket_(socket),
        limits_(limits),
        max_entries_(std::min(kEntriesPerFile * limits.files + kEntriesBase, kMaxNamesRead)),
        deadline_(cpu_time() + kMaxWalkTime) {}

  void run() {
    pending_.push_back({});
    while (!pending_.empty() && peer_alive_) {
      const Pending directory = std::move(pending_.front());
      pending_.pop_front();
      visit_directory(directory);
    }
    if (rest_ > 0) {
      send({.kind = Kind::kRest,
            .at_least = rest_is_minimum_ ? 1U : 0U,
            .size = limits_.files,
            .limit = rest_reasons_,
            .count = rest_},
           "");
    }
    send({.kind = Kind::kEnd}, "");
  }

 private:
  void visit_directory(const Pending& directory) {
    if (entries_ >= max_entries_ || out_of_time()) return count_rest(1, exhausted_reason());
    const std::string shown = directory.path.empty() ? "." : directory.path;
    auto fd = sys::open_beneath(root_, shown, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0,
                                kResolve);
    if (!fd) return refuse(shown, unreadable(fd.error().sys_errno));
    const DirectoryStream stream(::fdopendir(fd->get()));
    if (!stream) return refuse(shown, unreadable(errno));
    (void)fd->release();  // the stream owns it now
    const Listing listing = list(stream.get(), shown);
    for (std::size_t i = 0; i < listing.names.size() && peer_alive_; ++i) {
      if (out_of_time()) {
        count_rest(listing.names.size() - i, Reason::kOutOfTime);
        break;
      }
      visit_entry(::dirfd(stream.get()), directory, listing.names[i]);
    }
    if (listing.beyond > 0) count_rest(listing.beyond, exhausted_reason());
  }

  // Keeps the first names in byte order, as many as may still be looked at, in a heap with the last
  // of them on top: a directory of a million names costs no more memory than one of a few thousand.
  Listing list(DIR* stream, const std::string& shown) {
    Listing listing;
    const std::uint64_t room = max_entries_ - entries_;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream);
      if (entry == nullptr) {
        if (errno != 0) refuse(shown, unreadable(errno));
        break;
      }
      const std::string_view name(entry->d_name);
      if (name == "." || name == "..") continue;
      ++names_read_;
      if (names_read_ > kMaxNamesRead || (names_read_ % 1024 == 0 && out_of_time())) {
        rest_is_minimum_ = true;
        ++listing.beyond;
        break;
      }
      if (listing.names.size() == room) {
        ++listing.beyond;
        if (name >= listing.names.front()) continue;
        std::pop_heap(listing.names.begin(), listing.names.end());
        listing.names.pop_back();
      }
      listing.names.emplace_back(name);
      std::push_heap(listing.names.begin(), listing.names.end());
    }
    std::sort_heap(listing.names.begin(), listing.names.end());
    return listing;
  }

  void visit_entry(int directory_fd, const Pending& directory, const std::string& name) {
    ++entries_;
    const std::string path = directory.path.empty() ? name : directory.path + "/" + name;
    if (path.size() > kMaxPathBytes) {
      return refuse(path, {.reason = Reason::kPathTooLong, .limit = kMaxPathBytes});
    }
    struct stat info{};
    // Looked at before it is opened: opening a device can have effects.
    if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return refuse(path, unreadable(errno));
    }
    if (S_ISDIR(info.st_mode)) {
      if (directory.depth >= limits_.file_depth) {
        return refuse(path, {.reason = Reason::kTooDeep, .limit = limits_.file_depth});
      }
      pending_.push_back({path, directory.depth + 1});
      return;
    }
    if (const Reason reason = refusal_by_kind(info); reason != Reason::kNone) {
      return refuse(path, {.reason = reason, .size = info.st_nlink});
    }
    offer_file(directory_fd, name, path, info);
  }

  void offer_file(int directory_fd, const std::string& name, const std::string& path,
                  const struct stat& seen) {
    const auto size = static_cast<std::uint64_t>(seen.st_size);
    if (files_ >= limits_.files) {
      return refuse(path, {.reason = Reason::kTooManyFiles, .limit = limits_.files});
    }
    if (size > limits_.file_bytes) {
      return refuse(path,
                    {.reason = Reason::kFileTooBig, .size = size, .limit = limits_.file_bytes});
    }
    if (size > limits_.files_bytes - bytes_) {
      return refuse(path,
                    {.reason = Reason::kTotalTooBig, .size = size, .limit = limits_.files_bytes});
    }
    auto fd = sys::open_beneath(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
                                0, kResolve);
    if (!fd) return refuse(path, unreadable(fd.error().sys_errno));
    struct stat opened{};
    if (::fstat(fd->get(), &opened) != 0) return refuse(path, unreadable(errno));
    if (!is_same_file(seen, opened)) return refuse(path, {.reason = Reason::kChanged});
    ++files_;
    bytes_ += size;
    send({.kind = Kind::kFile, .size = size}, path, fd->get());
  }

  static wire::Record unreadable(int sys_errno) {
    return {.reason = Reason::kUnreadable, .sys_errno = sys_errno};
  }

  void refuse(const std::string& path, wire::Record record) {
    if (refused_ >= kMaxRefusalsListed) return count_rest(1, record.reason);
    ++refused_;
    record.kind = Kind::kRefused;
    send(record, path);
  }

  void count_rest(std::uint64_t count, Reason reason) {
    rest_ += count;
    rest_reasons_ |= wire::reason_bit(reason);
  }

  void send(const wire::Record& record, std::string_view path, int fd = -1) {
    if (peer_alive_ && !wire::send(socket_, record, path, fd)) peer_alive_ = false;
  }

  // The bound on entries follows from `files`, so that limit is the one to name.
  Reason exhausted_reason() const {
    return out_of_time() ? Reason::kOutOfTime : Reason::kTooManyFiles;
  }
  bool out_of_time() const { return cpu_time() > deadline_; }

  const int root_;
  const int socket_;
  const CollectLimits limits_;
  const std::uint64_t max_entries_;
  const std::chrono::nanoseconds deadline_;
  std::deque<Pending> pending_;
  std::uint64_t entries_ = 0;
  std::uint64_t names_read_ = 0;
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint32_t refused_ = 0;
  std::uint64_t rest_ = 0;
  std::uint64_t rest_reasons_ = 0;
  bool rest_is_minimum_ = false;
  bool peer_alive_ = true;
};

}  // namespace

void serve_collection(int directory_fd, int socket, const CollectLimits& limits) {
  try {
    Walker(directory_fd, socket, limits).run();
  } catch (...) {
    // Out of memory. Without kEnd the reader knows that the walk is not complete.
  }
}

}  // namespace sbx::collect
