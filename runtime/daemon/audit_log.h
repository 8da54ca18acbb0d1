// AuditLog: the one open audit file of a daemon, appended to. Stage: daemon, the loop's thread.
//
// One JSON line a run, in one write(2), at once: the death of sbxd loses none that append() wrote.
// Its owner forces what was written to the disk; until then a power failure can cost it. The file
// only grows: moving it away and starting anew is the operator's, with sbxd stopped
// (docs/operations.md).
//
// Room comes before the run: check() has the file system set aside, behind the end of the file,
// what the lines of all runs under way and of one more can take, so that a full disk refuses the
// run and not its line. A file system that cannot (EOPNOTSUPP), and an error of the disk itself,
// leave lines that append() keeps.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/daemon/audit_chain.h"

namespace sbx::daemon {

class AuditLog {
 public:
  // kHost when open() would refuse what is there for `owner`, or another sbxd has it now. For
  // whoever has much to do before open(), which alone is sure.
  [[nodiscard]] static Result<void> refuse_unusable(const std::string& directory, uid_t owner);
  // Makes `directory`/audit.jsonl and audit.jsonl.head (0600) when missing, and continues the
  // chain: a torn line, or a head that does not agree with the file, gets its marker. kHost when
  // they cannot be written.
  [[nodiscard]] static Result<AuditLog> open(const std::string& directory);

  // A start failed: of a log without a line nothing remains. Nobody may use it then.
  void take_back() const;

  // What open() found wrong with the end of the file, for the log; empty: nothing.
  [[nodiscard]] const std::string& found() const { return found_; }

  // Appends one event: JSON members without braces. When the disk refuses it, the line is kept,
  // and lost with sbxd; the next call tries again.
  [[nodiscard]] Result<void> append(std::string_view members);
  // Tries again to write what is kept, and makes sure of room for the line of one more run. kHost
  // too when the file, or its head, is not where open() found it: moved away or removed, it grows
  // unseen. Microseconds while nothing is wrong. No run may start unless healthy(): that is what
  // the last append() and check() found.
  [[nodiscard]] Result<void> check();
  [[nodiscard]] bool healthy() const {
    return kept_.empty() && !head_due_ && !misplaced_ && !full_;
  }

  // The room of a run under way: taken right after check(), given up once its line is appended.
  using Room = std::shared_ptr<const void>;
  [[nodiscard]] Room take_room() const { return rooms_; }

  // For sync on another thread: fdatasync(2) of file() and head().
  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] int head() const { return head_.get(); }
  [[nodiscard]] bool unsynced() const { return unsynced_; }
  void mark_synced() { unsynced_ = false; }

  // In the file; and those that the disk has not taken.
  [[nodiscard]] std::uint64_t lines() const { return (last_ ? last_->seq : 0) - kept_.size(); }
  [[nodiscard]] std::size_t kept() const { return kept_.size(); }

 private:
  struct Line {
    std::string text;  // with its end; of the first that is kept, what is not written yet
    AuditLink link;
  };

  AuditLog() = default;
  [[nodiscard]] Result<void> recover();
  [[nodiscard]] Result<void> write_kept();
  [[nodiscard]] Result<void> write_line(std::string& text);
  [[nodiscard]] Result<void> write_head(const AuditLink& link);
  [[nodiscard]] Result<void> make_room();

  std::string path_;
  UniqueFd file_;
  UniqueFd head_;
  std::optional<AuditLink> last_;  // of what was appended
  std::deque<Line> kept_;
  std::optional<AuditLink> head_due_;  // what the head is to say, and does not yet
  std::shared_ptr<const void> rooms_ = std::make_shared<char>();  // its other owners are runs
  off_t room_end_ = 0;  // up to where the file system has set room aside
  bool sets_aside_ = true;
  bool unsynced_ = false;
  bool misplaced_ = false;
  bool full_ = false;
  std::string found_;
};

}  // namespace sbx::daemon
