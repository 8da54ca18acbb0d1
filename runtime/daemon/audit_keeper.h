// AuditKeeper: what goes on around the audit file besides the runs: the way to the disk, and the
// lines that it refused. Stage: daemon, the loop's thread.
#pragma once

#include <chrono>

#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/async/work_pool.h"
#include "runtime/daemon/audit_log.h"
#include "runtime/daemon/readiness.h"

namespace sbx::daemon {

class AuditKeeper {
 public:
  // All are borrowed. `sync_period` 0: each run forces its own line to the disk.
  AuditKeeper(async::Loop& loop, async::WorkPool& pool, AuditLog& audit, Readiness& readiness,
              std::chrono::seconds sync_period)
      : loop_(loop), pool_(pool), audit_(audit), readiness_(readiness), sync_period_(sync_period) {}
  AuditKeeper(const AuditKeeper&) = delete;
  AuditKeeper& operator=(const AuditKeeper&) = delete;

  // Forces what was written to the disk, for ever.
  [[nodiscard]] async::Task<void> sync();
  // Tries lines that are kept again, for ever. The next run would too, but may be long in coming.
  [[nodiscard]] async::Task<void> write_kept();
  // The last attempt. False, with a word in the log, when lines are lost.
  [[nodiscard]] bool leave();

 private:
  async::Loop& loop_;
  async::WorkPool& pool_;
  AuditLog& audit_;
  Readiness& readiness_;
  std::chrono::seconds sync_period_;
};

}  // namespace sbx::daemon
