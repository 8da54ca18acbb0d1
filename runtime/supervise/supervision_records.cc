// What init's report pipe says, as facts of the ending.
#include <algorithm>

#include "runtime/supervise/step_failure.h"
#include "runtime/supervise/supervision.h"

namespace sbx::supervise {

void Supervision::take_records() {
  for (const plan::Record& record : report_.read()) take_record(record);
}

void Supervision::take_record(const plan::Record& record) {
  switch (record.kind) {
    case plan::RecordKind::kStepFailed:
      take_failed_step(record);
      return;
    case plan::RecordKind::kAboutToExec:
      ending_.exec_reached = true;
      ending_.setup = Clock::now() - child_.launched;
      return;
    case plan::RecordKind::kDenied: {
      for (SeenCall& call : ending_.denied) {
        if (call.nr == record.nr && call.arch == record.arch) {
          call.count = std::max(call.count, record.count);
          return;
        }
      }
      if (ending_.denied.size() < 64) {
        ending_.denied.push_back({record.arch, record.nr, record.count});
      }
      return;
    }
    case plan::RecordKind::kHostile:
      take_clock(record);
      ending_.hostile = SeenCall{record.arch, record.nr, 1};
      ending_.denied_counts_are_final = record.error == 0;
      hurry_the_end();  // init killed everything before it said so
      expect_the_end();
      return;
    case plan::RecordKind::kEnded:
      take_clock(record);
      // A failed exec has said more already than its exit code does.
      if (!ending_.payload_wait_status) ending_.payload_wait_status = record.status;
      ending_.denied_counts_are_final = record.error == 0;
      if (ending_.background_killed) hurry_the_end();  // by init, before it said so
      expect_the_end();
      if (!is_killed() && next_cpu_check_ != Clock::time_point::max()) check_cpu(Clock::now());
      return;
    case plan::RecordKind::kWallLimit:
      take_clock(record);
      ending_.wall_expired = true;
      ending_.denied_counts_are_final = record.error == 0;
      hurry_the_end();  // init killed everything before it said so
      expect_the_end();
      return;
    case plan::RecordKind::kInformation:
      take_information(record);
      return;
  }
}

// Init is in our time namespace; only what it starts is in another.
void Supervision::take_clock(const plan::Record& record) {
  if (record.count == 0) return;
  payload_ended_ = Clock::time_point(std::chrono::nanoseconds(record.count));
}

void Supervision::take_failed_step(const plan::Record& record) {
  if (auto error = interpreter_error(*options_.plan, record)) return fail(*std::move(error));
  if (const auto status = exec_failure_status(record)) {
    // The program the caller named is not there, or is none: a result, as a shell would give it.
    err_.add(exec_failure_text(options_.plan->argv.front(), record));
    ending_.payload_wait_status = *status;
    return;
  }
  // The lifeline is closed: that a step sees it is our doing.
  if (kill_wanted_) return;
  fail(step_error(*options_.plan, record));
}

void Supervision::take_information(const plan::Record& record) {
  switch (record.step) {
    case plan::Step::kFactStorage: {
      // Init says each once; more would be a lie, and without an end.
      if (ending_.storage.size() > options_.plan->tmpfs.size()) return;
      const bool shm = record.nr >= options_.plan->tmpfs.size();
      const plan::TmpfsMount& mount = shm ? options_.plan->shm : options_.plan->tmpfs[record.nr];
      ending_.storage.push_back(
          {mount.limit, record.count, static_cast<std::uint64_t>(record.status)});
      return;
    }
    case plan::Step::kFactNetwork:
      ending_.packets_without_route = record.count;
      return;
    case plan::Step::kFactBackground:
      ending_.background_killed = true;
      return;
    case plan::Step::kFactRecordLocks:
      ending_.lock_limit = record.count;
      return;
    case plan::Step::kFactUnlisted:
      ending_.denied_unlisted = std::max(ending_.denied_unlisted, record.count);
      return;
    default:
      break;
  }
  if (ending_.layer_failures.size() >= static_cast<std::size_t>(plan::Step::kCount)) return;
  if (const auto layer = policy::layer_from_name(plan::step_layer(record.step))) {
    ending_.layer_failures.push_back({*layer, plan::step_name(record.step), record.error});
  }
}

}  // namespace sbx::supervise
