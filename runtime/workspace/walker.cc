#include "runtime/workspace/walker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "runtime/workspace/tree.h"
#include "runtime/workspace/wire.h"

namespace sbx::workspace {
namespace {

using wire::Kind;
using wire::Reason;

Reason refusal_by_kind(mode_t mode) {
  if (S_ISFIFO(mode)) return Reason::kFifo;
  return S_ISSOCK(mode) ? Reason::kSocket : Reason::kDevice;
}

// An error of a visit is always the peer's end.
class Walker final : public Visitor {
 public:
  explicit Walker(int socket) : socket_(socket) {}

  Result<void> visit(const Entry& entry) override {
    const mode_t mode = entry.info.st_mode;
    if (S_ISDIR(mode)) {
      return wire::send(socket_, {.kind = Kind::kDirectory, .mode = mode & 0777U}, entry.path);
    }
    if (S_ISREG(mode)) return visit_file(entry);
    if (S_ISLNK(mode)) return visit_symlink(entry);
    return wire::send(socket_, {.kind = Kind::kRefused, .reason = refusal_by_kind(mode)},
                      entry.path);
  }

  Result<void> unreadable(const std::string& path, int sys_errno) override {
    if (sys_errno == ENAMETOOLONG) {
      return wire::send(socket_, {.kind = Kind::kRefused, .reason = Reason::kPathTooLong}, path);
    }
    const std::string& shown = path.empty() ? kTop : path;
    return wire::send(
        socket_, {.kind = Kind::kRefused, .reason = Reason::kUnreadable, .sys_errno = sys_errno},
        shown);
  }

 private:
  Result<void> visit_file(const Entry& entry) {
    const auto file = open_inside(entry.directory, entry.name, O_RDONLY);
    if (!file) return unreadable(entry.path, file.error().sys_errno);
    return wire::send(socket_, {.kind = Kind::kFile}, entry.path, {}, file->get());
  }

  Result<void> visit_symlink(const Entry& entry) {
    char target[kMaxPathBytes + 1];
    const ssize_t size = ::readlinkat(entry.directory, entry.name.c_str(), target, sizeof target);
    if (size < 0) return unreadable(entry.path, errno);
    return wire::send(socket_, {.kind = Kind::kSymlink}, entry.path,
                      {target, static_cast<std::size_t>(size)});
  }

  static inline const std::string kTop = ".";
  int socket_;
};

}  // namespace

void serve_walk(int directory, int socket) {
  try {
    Walker walker(socket);
    // Without kEnd the reader knows that the walk is not complete.
    if (walk(directory, walker)) (void)wire::send(socket, {}, {});
  } catch (...) {
    // Out of memory: the same.
  }
}

}  // namespace sbx::workspace
