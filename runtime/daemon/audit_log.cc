#include "runtime/daemon/audit_log.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/scope_exit.h"
#include "runtime/base/sys.h"
#include "runtime/daemon/places.h"

namespace sbx::daemon {
namespace {

// The last line and a torn one behind it fit, as the daemon writes none that is longer.
constexpr std::size_t kTail = 2 * kMaxAuditLine + 2;
// What a run may need, and by how much room is made at least.
constexpr off_t kRoom = kMaxAuditLine + 1;

std::string now_text() {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);  // fails for a bad clock only
  return log::utc_time(std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000);
}

Error disk_refuses(std::string operation, int sys_errno, const std::string& path) {
  const bool full = sys_errno == ENOSPC || sys_errno == EDQUOT;
  return host_lacks(std::move(operation), sys_errno, path,
                    full ? "make room on the disk of sbxd's state directory"
                         : "see what the kernel's log says of its disk");
}

constexpr const char* kMoveAway = "move it away, or give another --state-dir";

Result<void> check_own(const UniqueFd& fd, const std::string& path, uid_t owner) {
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return sys_error("fstat", path);
  if (S_ISREG(info.st_mode) && info.st_uid == owner) return {};
  return host_lacks("open", 0, path + " is not a file of sbxd's user", kMoveAway);
}

Error locked(int sys_errno, const std::string& path) {
  if (sys_errno != EWOULDBLOCK) return host_lacks("flock", sys_errno, path, kMoveAway);
  return host_lacks("flock", sys_errno, path + " is in use by another sbxd",
                    "stop that one, or give this one a --state-dir of its own");
}

// Only this daemon writes it: no link, nobody else's file.
Result<UniqueFd> open_own(const std::string& path, int flags) {
  auto opened = sys::open(path, flags | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0600);
  if (!opened) {
    return host_lacks("open", opened.error().sys_errno, path, kMoveAway);
  }
  SBX_TRY(check_own(*opened, path, ::geteuid()));
  return opened;
}

Result<std::string> read_tail(int fd) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return sys_error("fstat", "audit");
  const auto size = static_cast<std::size_t>(info.st_size);
  std::string tail(std::min(size, kTail), '\0');
  const std::size_t start = size - tail.size();
  std::size_t done = 0;
  while (done < tail.size()) {
    const ssize_t got =
        ::pread(fd, tail.data() + done, tail.size() - done, static_cast<off_t>(start + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return sys_error("pread", "audit");
    done += static_cast<std::size_t>(got);
  }
  return tail;
}

const AuditLink kNoLine{0, std::string(kNoHash)};

bool is_at(int fd, const std::string& path) {
  struct stat open{};
  struct stat there{};
  return ::fstat(fd, &open) == 0 && ::lstat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

// An empty file of ours is as none.
void remove_if_empty(const UniqueFd& file, const std::string& path) {
  struct stat info{};
  if (file && ::fstat(file.get(), &info) == 0 && info.st_size == 0) (void)::unlink(path.c_str());
}

// The last whole line of `tail`, and what is behind it.
struct LastLine {
  std::string_view line;  // empty: none
  std::string_view torn;
};
LastLine find_last(std::string_view tail) {
  const std::string_view open = tail.substr(tail.rfind('\n') + 1);  // npos + 1 is 0
  if (parse_audit_line(open)) return {open, {}};
  std::string_view rest = tail;
  while (true) {
    const std::size_t end = rest.rfind('\n');
    if (end == std::string_view::npos) return {{}, tail};
    const std::size_t before = rest.substr(0, end).rfind('\n');
    const std::size_t start = before == std::string_view::npos ? 0 : before + 1;
    const std::string_view line = rest.substr(start, end - start);
    if (parse_audit_line(line)) return {line, tail.substr(end + 1)};
    if (start == 0) return {{}, tail};
    rest = rest.substr(0, start);
  }
}

// Why the head and the end of the file, as the last sbxd left them, do not agree; empty: they do,
// as far as the tail shows. The file may be one line ahead: the head is written after each.
std::string disagreement(std::string_view tail, std::string_view head_file, std::uint64_t known) {
  const auto head = parse_head(head_file);
  if (!head && !head_file.empty()) return "the head file is damaged";
  if (!head) return known > 0 ? "the head file is missing" : "";
  if (head->seq > known) {
    return fmt::format("lines up to {} are missing; the file ends at {}", head->seq, known);
  }
  if (known - head->seq > kMaxBeyondHead) {
    return fmt::format("{} lines stand beyond {}, the last that the head file knows",
                       known - head->seq, head->seq);
  }
  while (!tail.empty()) {
    const std::string_view line = tail.substr(0, tail.find('\n'));
    tail.remove_prefix(std::min(tail.size(), line.size() + 1));
    const auto place = parse_audit_line(line);
    if (!place || place->seq != head->seq) continue;
    if (link_of(place->seq, line).hash == head->hash) return {};
    return fmt::format("line {} is not what the head file says of it", head->seq);
  }
  return {};
}

}  // namespace

// SECURITY: root may call it, in a directory of the service's user: as of
// SessionStore::refuse_in_use().
Result<void> AuditLog::refuse_unusable(const std::string& directory, uid_t owner) {
  for (const char* const end : {"", ".head"}) {
    const std::string path = directory + "/audit.jsonl" + end;
    const auto file = sys::open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (!file && file.error().sys_errno == ENOENT) continue;
    // Root without its rights, where the file is the user's: he will be told what there is to tell.
    if (!file && file.error().sys_errno == EACCES && owner != ::geteuid()) continue;
    if (!file) return host_lacks("open", file.error().sys_errno, path, kMoveAway);
    SBX_TRY(check_own(*file, path, owner));
    if (*end != '\0') continue;  // the head is never locked
    if (::flock(file->get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return locked(EWOULDBLOCK, path);
    }
  }
  return {};
}

Result<AuditLog> AuditLog::open(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return host_lacks("mkdir", errno, directory, "make the state directory writable");
  }
  AuditLog log;
  const std::string path = log.path_ = directory + "/audit.jsonl";
  SBX_ASSIGN(log.file_, open_own(path, O_RDWR | O_APPEND));
  // Two writers would break the chain. Another that failed to start may have taken the file back.
  if (const int failed = lock_alone(log.file_.get()); failed != 0) return locked(failed, path);
  if (!is_at(log.file_.get(), path)) return locked(EWOULDBLOCK, path);
  ScopeExit take_back([&] {
    remove_if_empty(log.head_, path + ".head");
    remove_if_empty(log.file_, path);
  });
  SBX_ASSIGN(log.head_, open_own(path + ".head", O_RDWR));
  SBX_TRY(log.recover());
  take_back.release();
  return log;
}

// The head alone has something in it from the start.
void AuditLog::take_back() const {
  if (last_) return;
  (void)::unlink((path_ + ".head").c_str());
  (void)::unlink(path_.c_str());
}

Result<void> AuditLog::recover() {
  SBX_ASSIGN(const std::string tail, read_tail(file_.get()));
  const LastLine end = find_last(tail);
  if (!end.line.empty()) last_ = link_of(parse_audit_line(end.line)->seq, end.line);
  std::string_view torn = end.torn;
  // All that is written below, or nothing: a piece of it would look like somebody else's.
  if (!torn.empty()) SBX_TRY(make_room());
  if (!tail.empty() && tail.back() != '\n') {
    std::string line_end = "\n";
    SBX_TRY(write_line(line_end));
  } else if (!torn.empty()) {
    torn.remove_suffix(1);
  }
  const auto text = sys::read_all(head_.get(), 4096);
  if (!text) {
    return host_lacks("read", text.error().sys_errno, path_ + ".head: " + text.error().detail,
                      kMoveAway);
  }
  const auto head = parse_head(*text);
  // Before the markers: each of them moves the head on.
  std::string differs = disagreement(tail, *text, lines());
  if (differs.empty() && !begins_line(torn, last_)) {
    differs = "what is behind the last line is no beginning of one";
  }
  if (differs.empty() && (!head || head->seq < lines())) {
    if (head) found_ = fmt::format("line {} stands beyond the head file", lines());
    SBX_TRY(write_head(last_.value_or(kNoLine)));  // from the start there is one, and has its room
  }
  if (!torn.empty()) {
    found_ += fmt::format("{}{} bytes of a line that was cut short", found_.empty() ? "" : "; ",
                          torn.size());
    SBX_TRY(append(torn_marker(torn)));
  }
  if (!differs.empty()) {
    found_ += (found_.empty() ? "" : "; ") + differs;
    SBX_TRY(append(gap_marker(head.value_or(kNoLine))));
  }
  return {};
}

Result<void> AuditLog::append(std::string_view members) {
  std::string line = audit_line(last_, now_text(), members);
  last_ = link_of(last_ ? last_->seq + 1 : 1, line);
  kept_.push_back({std::move(line) + '\n', *last_});
  return write_kept();
}

Result<void> AuditLog::check() {
  SBX_TRY(write_kept());
  misplaced_ = !is_at(file_.get(), path_) || !is_at(head_.get(), path_ + ".head");
  if (misplaced_) {
    return host_lacks("stat", 0, path_ + " or its .head is not the file any more that sbxd writes",
                      "move both back, or start sbxd again: it begins new ones");
  }
  auto room = make_room();
  full_ = !room;
  return room;
}

// The head follows each line, so that the death of sbxd leaves it behind by one at most.
Result<void> AuditLog::write_kept() {
  for (;;) {
    if (head_due_) SBX_TRY(write_head(*head_due_));
    head_due_.reset();
    if (kept_.empty()) return {};
    SBX_TRY(write_line(kept_.front().text));
    head_due_ = std::move(kept_.front().link);
    kept_.pop_front();
  }
}

// What of it is written is taken from its beginning.
Result<void> AuditLog::write_line(std::string& text) {
  while (!text.empty()) {
    const ssize_t put = ::write(file_.get(), text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return disk_refuses("write", errno, path_);
    text.erase(0, static_cast<std::size_t>(put));
    unsynced_ = true;
  }
  return {};
}

// In its place, which takes no new room from file systems that overwrite.
Result<void> AuditLog::write_head(const AuditLink& link) {
  const std::string text = head_text(link);
  const ssize_t put = ::pwrite(head_.get(), text.data(), text.size(), 0);
  if (put == static_cast<ssize_t>(text.size())) return {};
  return disk_refuses("pwrite", put < 0 ? errno : ENOSPC, path_ + ".head");
}

Result<void> AuditLog::make_room() {
  if (!sets_aside_) return {};
  struct stat info{};
  if (::fstat(file_.get(), &info) != 0) return sys_error("fstat", path_);
  const off_t needed = info.st_size + static_cast<off_t>(rooms_.use_count()) * kRoom;
  if (needed <= room_end_) return {};
  const off_t end = needed + kRoom;  // a call for many lines
  int failed = 0;
  do {
    failed = ::fallocate(file_.get(), FALLOC_FL_KEEP_SIZE, info.st_size, end - info.st_size) == 0
                 ? 0
                 : errno;
  } while (failed == EINTR);
  sets_aside_ = failed != EOPNOTSUPP && failed != ENOSYS;
  if (failed != 0 && sets_aside_) return disk_refuses("fallocate", failed, path_);
  room_end_ = end;
  return {};
}

}  // namespace sbx::daemon
