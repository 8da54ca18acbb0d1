// AuditLog: the one open audit file of a daemon, appended to. Stage: daemon, the loop's thread.
//
// One JSON line a run, in one write(2), at once: the death of sbxd loses none that append() took.
// Its owner forces what was written to the disk; until then a power failure can cost it. The file
// only grows: moving it away and starting anew is the operator's, with sbxd stopped
// (docs/operations.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/daemon/audit_chain.h"

namespace sbx::daemon {

class AuditLog {
 public:
  // Makes `directory`/audit.jsonl and audit.jsonl.head (0600) when missing, and continues the
  // chain: a torn line, or a head that does not agree with the file, gets its marker. kHost when
  // they cannot be written.
  [[nodiscard]] static Result<AuditLog> open(const std::string& directory);

  // What open() found wrong with the end of the file, for the log; empty: nothing.
  [[nodiscard]] const std::string& found() const { return found_; }

  // Appends one event: JSON members without braces. When the disk refuses it, the line is kept and
  // tried again by the next call; while one is kept, healthy() is false and no run may start.
  [[nodiscard]] Result<void> append(std::string_view members);
  // Tries again to write the lines that are kept. kHost too when the file, or its head, is not
  // where open() found it: moved away or removed, it grows unseen. Microseconds while nothing is
  // wrong. healthy() is what the last append() and check() found.
  [[nodiscard]] Result<void> check();
  [[nodiscard]] bool healthy() const { return pending_.empty() && !misplaced_; }

  // For sync on another thread: fdatasync(2) of file() and head().
  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] int head() const { return head_.get(); }
  [[nodiscard]] bool unsynced() const { return unsynced_; }
  void mark_synced() { unsynced_ = false; }

  [[nodiscard]] std::uint64_t lines() const { return last_ ? last_->seq : 0; }

 private:
  AuditLog() = default;
  [[nodiscard]] Result<void> recover();
  [[nodiscard]] Result<void> write_pending();

  std::string path_;
  UniqueFd file_;
  UniqueFd head_;
  std::optional<AuditLink> last_;
  std::string pending_;  // lines with their ends, the first perhaps without its beginning
  bool unsynced_ = false;
  bool misplaced_ = false;
  std::string found_;
};

}  // namespace sbx::daemon
