#include "agentd/service/request_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "agentd/loop/driver.h"
#include "agentd/loop/ending_text.h"
#include "agentd/loop/tools_driver.h"
#include "agentd/redact/random_hex.h"
#include "agentd/service/attempt_log.h"
#include "agentd/service/clean_artifacts.h"
#include "agentd/store/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/places.h"

namespace agentd::service {

using history::Entry;
using sbx::Result;
using sbx::async::Task;
using sbx::http::Problem;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds kRetryAfter{5};
constexpr const char* kMakeFilesWritable =
    "make the artifacts directory in the state directory, or make it writable for agentd";

// The time in milliseconds, and 80 bits of chance: whoever does not know an id does not guess it.
// What is stored of requests that follow each other stands together for the time before them, in
// pages that are at hand; at places of chance each would have one of its own.
constexpr std::string_view kIdStart = "rq_";
constexpr std::size_t kIdBytes = 16;
constexpr std::size_t kIdRandomBytes = 10;

std::string new_id(std::int64_t milliseconds) {
  constexpr std::size_t kTimeDigits = 2 * (kIdBytes - kIdRandomBytes);
  const std::string time =
      fmt::format("{:0{}x}", static_cast<std::uint64_t>(milliseconds), kTimeDigits);
  return std::string(kIdStart) + time.substr(time.size() - kTimeDigits) +
         redact::random_hex(kIdRandomBytes);
}

}  // namespace

RequestService::RequestService(Parts parts)
    : parts_(parts), ended_(parts.loop), tasks_(parts.loop) {}

std::optional<Problem> RequestService::refusal(const Submitted& submitted) {
  if (closed_) {
    return Problem{.status = 503,
                   .code = sbx::http::problem_code::kShuttingDown,
                   .detail = "agentd is ending.",
                   .retry_after = kRetryAfter};
  }
  if (unsaved() > parts_.limits.running + parts_.limits.queued) {
    return Problem{.status = 500,
                   .code = "not_stored",
                   .detail = fmt::format("{} results wait for room in the store.", unsaved()),
                   .fix = "make room on the file system of the state directory",
                   .retry_after = kRetryAfter};
  }
  const bool full = running_ >= parts_.limits.running && queue_.size() >= parts_.limits.queued;
  const bool heavy = held_bytes_ + submitted.held_bytes > parts_.limits.held_bytes;
  if (!full && !heavy) return std::nullopt;
  return Problem{
      .status = 429,
      .code = "queue_full",
      .detail = full
                    ? fmt::format("{} requests are under way and {} wait.", running_, queue_.size())
                    : "The files of requests that wait take all the room that there is.",
      .retry_after = kRetryAfter};
}

Task<RequestService::SubmitOutcome> RequestService::submit(Submitted submitted, Caller caller) {
  if (auto refused = refusal(submitted)) {
    parts_.metrics.count_refused(refused->code);
    co_return *std::move(refused);
  }
  const Live live = admit(std::move(submitted), caller);
  Entry entry = entry_of(*live, live->events);
  start_next();
  if (!live->started) add_state_event(*live);
  const auto saved = co_await save(std::move(entry));
  live->standing = saved ? LiveRequest::Standing::kOnRecord : LiveRequest::Standing::kRefused;
  live->changed.notify_all();
  if (saved) {
    // Its driver, whose first reservation was committed with it, has more to wait for.
    (void)co_await parts_.loop.next_turn();
    co_return live->record.id;
  }
  sbx::log::error("a request could not be stored", {{"error", to_string(saved.error())}});
  parts_.metrics.count_refused("not_stored");
  turn_away(live);
  co_return Problem{.status = 500,
                    .code = "not_stored",
                    .detail = "The request could not be put on record: " + saved.error().detail,
                    .fix = saved.error().fix};
}

// In the queue before anything is waited for, so that the bounds hold.
RequestService::Live RequestService::admit(Submitted submitted, const Caller& caller) {
  auto live = std::make_shared<LiveRequest>(parts_.loop);
  live->record = std::move(submitted.record);
  live->record.created_ms = store::now_ms();
  live->record.id = new_id(live->record.created_ms);
  live->submission = std::move(submitted.submission);
  live->owner = caller.uid;
  live->held_bytes = submitted.held_bytes;
  held_bytes_ += live->held_bytes;
  live_.emplace(live->record.id, live);
  queue_.push_back(live);
  return live;
}

// SECURITY: what is not on record spends nothing. Its driver waits for its first reservation, which
// the store comes to after the record, and looks at `stop` before it asks the model.
void RequestService::turn_away(const Live& live) {
  live->stop.cancel();
  live_.erase(live->record.id);
  if (std::erase(queue_, live) > 0) held_bytes_ -= std::exchange(live->held_bytes, 0);
}

void RequestService::start_next() {
  while (running_ < parts_.limits.running && !queue_.empty()) {
    const Live live = queue_.front();
    queue_.pop_front();
    start(live);
  }
}

void RequestService::start(const Live& live) {
  ++running_;
  live->started = steady_clock::now();
  tasks_.spawn(work(live));
}

Task<void> RequestService::work(Live live) {
  AttemptLog attempts;
  live->record.queued = false;
  co_await drive(*live, attempts);
  // One that ends at once may be over before it is on record, and must not get there refused.
  while (live->standing == LiveRequest::Standing::kUnknown) (void)co_await live->changed.wait();
  if (live->standing == LiveRequest::Standing::kRefused) {
    co_await forget(live->record.id);
  } else {
    const bool crowded = co_await seal(live);
    (void)co_await parts_.loop.next_turn();  // who follows it hears of it before the log does
    attempts.look(live->record);
    report(live->record);
    if (crowded) co_await prune();
  }
  held_bytes_ -= std::exchange(live->held_bytes, 0);
  --running_;
  start_next();
  ended_.notify_all();
}

Task<void> RequestService::drive(LiveRequest& live, AttemptLog& attempts) {
  auto on_change = [this, &live, &attempts](const record::Record& record) {
    if (has_ended(record)) return;
    add_state_event(live);
    attempts.look(record);
    keep_attempts(live);
  };
  if (live.record.mode == record::Mode::kTools) {
    loop::ToolsDriver driver(parts_.loop_services, live.submission, live.record, live.stop,
                             on_change);
    co_await driver.run();
  } else {
    loop::Driver driver(parts_.loop_services, live.submission, live.record, live.stop, on_change);
    co_await driver.run();
  }
}

// What was paid for is on record before more is. A request of one attempt is stored no more often.
void RequestService::keep_attempts(LiveRequest& live) {
  const record::Record& record = live.record;
  const loop::Phase phase = record.state.phase;
  if (phase != loop::Phase::kGenerate && phase != loop::Phase::kRepair) return;
  if (std::exchange(live.kept_attempts, record.attempts.size()) == record.attempts.size()) return;
  take_times(live);
  auto job = [&history = parts_.history, entry = entry_of(live, live.events)] {
    return history.save(entry);
  };
  parts_.store.give(std::move(job), [id = record.id](const Result<void>& saved) {
    if (saved) return;
    sbx::log::error("an attempt could not be stored",
                    {{"request", id}, {"error", to_string(saved.error())}});
  });
}

// Puts the end on record, and tells it. True: the history is longer now than it should be.
Task<bool> RequestService::seal(Live live) {
  record::Record& record = live->record;
  live->submission = {};
  held_bytes_ -= std::exchange(live->held_bytes, 0);
  record.ended_ms = store::now_ms();
  take_times(*live);
  co_await store_artifacts(*live);
  name_lost_place(record);
  // Told when it is on record: after a death in between another end would be told.
  std::vector<LiveEvent> events = live->events;
  events.push_back(event_of(*live, "end"));
  const auto saved = co_await save(entry_of(*live, events));
  live->events = std::move(events);
  if (!saved) {
    // It stays in memory, where it can still be asked for, until there is room for it.
    sbx::log::error("a record could not be stored",
                    {{"request", record.id}, {"error", to_string(saved.error())}});
  } else {
    live_.erase(record.id);
  }
  live->sealed = true;
  if (closed_ && live->followers > 0) untold_.emplace(record.id, !record.artifacts.empty());
  live->changed.notify_all();
  co_return saved && *saved;
}

// The loop knows only that the ledger refused it.
void RequestService::name_lost_place(record::Record& record) {
  if (record.state.ending.reason != loop::Reason::kLedger) return;
  const auto there = check_place();
  if (there || record.reason_fix == there.error().fix) return;  // there, or named already
  const sbx::Error& why = there.error();
  record.reason_text = loop::with_fix(record.reason_text + ": " + to_string(why), why.fix);
  record.reason_fix = why.fix;
}

void RequestService::report(const record::Record& record) {
  parts_.metrics.count_ended(record);
  sbx::log::info("request ended", {{"request", record.id},
                                   {"state", state_name(record)},
                                   {"reason", to_string(record.state.ending.reason)},
                                   {"attempts", std::uint64_t{record.attempts.size()}},
                                   {"tokens", record.spent.tokens},
                                   {"micro_dollars", record.spent.cost.value},
                                   {"seconds", record.wall_seconds}});
}

void RequestService::add_state_event(LiveRequest& live) {
  LiveEvent event = event_of(live, "state");
  if (!live.events.empty() && live.events.back().data.text() == event.data.text()) return;
  live.events.push_back(std::move(event));
  // What waits for nothing is told with what comes of it, which spares followers a wake.
  if (live.record.state.phase != loop::Phase::kEvaluate) live.changed.notify_all();
}

// Whether the history is longer now than it should be.
Task<Result<bool>> RequestService::save(Entry entry) {
  if (auto there = check_place(); !there) co_return std::move(there).error();
  auto job = [&history = parts_.history, limits = parts_.limits,
              entry = std::move(entry)]() -> Result<bool> {
    SBX_TRY(history.save(entry));
    return history.is_over(limits.history, limits.artifact_bytes);
  };
  auto saved = co_await parts_.store.write(job);
  stores_records_ = saved.has_value();
  // There is room: also for what had none.
  if (saved && !saving_again_ && unsaved() > 0) tasks_.spawn(save_what_failed());
  co_return saved;
}

Task<void> RequestService::store_artifacts(LiveRequest& live) {
  if (live.record.artifacts.empty()) co_return;
  live.changed.notify_all();  // this takes its time
  // Of the service nothing: the pools may outlive it.
  auto cleaning = [&redactor = parts_.redactor,
                   artifacts = std::move(live.record.artifacts)]() mutable {
    return clean_artifacts(std::move(artifacts), redactor);
  };
  live.record.artifacts = co_await parts_.pool.run(cleaning);
  const auto written = co_await write_files(live);
  if (written) co_return;
  sbx::Error why = sbx::name_disk_failure(written.error());
  if (why.fix.empty()) why.fix = kMakeFilesWritable;
  live.record.artifacts.clear();
  // A result without its files is none.
  if (live.record.state.ending.reason == loop::Reason::kPassed) {
    live.record.state.ending = {.reason = loop::Reason::kInternal};
    live.record.reason_text = "the files of its result could not be stored: ";
  } else {
    live.record.reason_text += "; its files could not be stored: ";
  }
  live.record.reason_text = loop::with_fix(live.record.reason_text + to_string(why), why.fix);
  live.record.reason_fix = why.fix;
  sbx::log::error("artifacts could not be stored",
                  {{"request", live.record.id}, {"error", to_string(why)}});
}

Task<void> RequestService::prune() {
  auto job = [&history = parts_.history, &files = parts_.artifacts, &book = parts_.book,
              limits = parts_.limits]() -> Result<std::size_t> {
    SBX_ASSIGN(const auto gone, history.prune(limits.history, limits.artifact_bytes));
    for (const std::string& id : gone) {
      files.remove(id);
      SBX_TRY(book.forget("request/" + id + "/"));
    }
    return gone.size();
  };
  const auto pruned = co_await parts_.store.run(job);
  if (!pruned) {
    sbx::log::warning("old requests could not be removed", {{"error", to_string(pruned.error())}});
  }
}

// What the driver of a request that was turned away had reserved, and has released.
Task<void> RequestService::forget(std::string id) {
  auto job = [&book = parts_.book, id = std::move(id)] {
    return book.forget("request/" + id + "/");
  };
  const auto forgotten = co_await parts_.store.write(job);
  if (!forgotten) {
    sbx::log::warning("a request that was refused is still in the ledger",
                      {{"error", to_string(forgotten.error())}});
  }
}

Task<RequestService::Cancelled> RequestService::cancel(std::string id, Caller caller) {
  const Live found = live(id, caller);
  if (!found) {
    const auto known = co_await stored(std::move(id), caller);
    co_return known ? Cancelled::kEndedBefore : Cancelled::kUnknown;
  }
  if (has_ended(found->record)) co_return Cancelled::kEndedBefore;
  // One that waits is started to find that it is stopped, in its turn or now.
  found->stop.cancel();
  if (std::erase(queue_, found) > 0) start(found);
  co_return Cancelled::kNow;
}

Task<void> RequestService::tend(ledger::Ledger& ledger) {
  auto due = sbx::async::after(parts_.limits.tend_every);
  for (;;) {
    const auto again = sbx::async::after(parts_.limits.retry_every);
    (void)co_await parts_.loop.sleep_until(std::min(due, again));
    const bool is_due = steady_clock::now() >= due;
    if (is_due) due = sbx::async::after(parts_.limits.tend_every);
    if (ledger.unwritten() > 0) (void)co_await ledger.make_up();  // or the next time
    if (const auto there = check_place(); !there) continue;
    if (!saving_again_ && unsaved() > 0) co_await save_what_failed();
    if (!stores_files_ && writing_files_ == 0) co_await try_files_again();
    if (!is_due) continue;
    const auto released = co_await ledger.release_dead_owners();
    if (!released) {
      sbx::log::warning("reservations of the dead could not be released",
                        {{"error", to_string(released.error())}});
      continue;
    }
    parts_.metrics.count_released(*released);
  }
}

void RequestService::stop_all() {
  for (const auto& [id, live] : live_) live->stop.cancel();
}

Task<sbx::async::Wake> RequestService::idle(sbx::async::Deadline deadline) {
  while (running_ > 0 || !queue_.empty()) {
    const sbx::async::Wake wake = co_await ended_.wait(deadline);
    if (wake != sbx::async::Wake::kReady) co_return wake;
  }
  co_return sbx::async::Wake::kReady;
}

bool RequestService::is_id(std::string_view text) {
  return text.size() == kIdStart.size() + 2 * kIdBytes && text.starts_with(kIdStart) &&
         text.find_first_not_of("0123456789abcdef", kIdStart.size()) == std::string_view::npos;
}

}  // namespace agentd::service
