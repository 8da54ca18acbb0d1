#include "runtime/daemon/audit_keeper.h"

#include <unistd.h>

#include <cstdint>

#include "runtime/base/log.h"

namespace sbx::daemon {
namespace {

using async::Task;
using std::chrono::seconds;

constexpr seconds kRetryPeriod{1};

}  // namespace

Task<void> AuditKeeper::sync() {
  if (sync_period_ == seconds(0)) co_return;
  for (;;) {
    (void)co_await loop_.sleep_until(async::after(sync_period_));
    if (!audit_.unsynced()) continue;
    audit_.mark_synced();
    auto job = [file = audit_.file(), head = audit_.head()] {
      return ::fdatasync(file) == 0 && ::fdatasync(head) == 0;
    };
    const bool synced = co_await pool_.run(job);
    if (!synced) log::error("the audit file cannot be forced to the disk");
  }
}

Task<void> AuditKeeper::write_kept() {
  for (;;) {
    (void)co_await loop_.sleep_until(async::after(kRetryPeriod));
    const std::size_t kept = audit_.kept();
    if (kept == 0) continue;
    (void)readiness_.check_audit();
    if (audit_.kept() > 0) continue;
    log::info("the audit file took the lines that were kept", {{"lines", std::uint64_t{kept}}});
  }
}

bool AuditKeeper::leave() {
  if (audit_.kept() == 0) return true;
  const auto usable = audit_.check();
  const std::size_t lost = audit_.kept();
  if (lost == 0) return true;
  log::error("audit lines are lost: the disk did not take them",
             {{"lines", std::uint64_t{lost}},
              {"error", usable ? std::string() : to_string(usable.error())}});
  return false;
}

}  // namespace sbx::daemon
