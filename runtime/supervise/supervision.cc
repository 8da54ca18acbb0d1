#include "runtime/supervise/supervision.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/base/sys.h"
#include "runtime/supervise/step_failure.h"

namespace sbx::supervise {
namespace {

using std::chrono::milliseconds;

// SIGKILL to pid 1 takes 10–60 ms; past this something in the kernel hangs, and we say so.
constexpr milliseconds kKillPatience{20'000};
constexpr milliseconds kShortestCpuCheck{10};
constexpr std::size_t kReadChunk = 64 * 1024;
// A flooding payload must not keep the loop from its deadlines.
constexpr int kReadsPerStep = 16;

bool is_ready(const std::vector<pollfd>& ready, int fd) {
  if (fd < 0) return false;
  return std::any_of(ready.begin(), ready.end(),
                     [&](const pollfd& entry) { return entry.fd == fd && entry.revents != 0; });
}

void want(std::vector<pollfd>& fds, int fd, short events) {
  if (fd >= 0) fds.push_back({fd, events, 0});
}

}  // namespace

Supervision::Supervision(spawn::Child child, SupervisionOptions options)
    : child_(std::move(child)),
      options_(std::move(options)),
      report_(std::move(child_.report)),
      out_(options_.plan->policy.limits.stdout_bytes, options_.on_stdout),
      err_(options_.plan->policy.limits.stderr_bytes, options_.on_stderr),
      fill_(std::move(child_.fill), &options_.plan->fill, std::move(options_.fill_rest)),
      stdin_(std::move(child_.in), std::move(options_.stdin_text), options_.stdin_source),
      wall_deadline_(child_.launched + options_.plan->policy.limits.wall_seconds) {
  if (options_.plan->policy.limits.cpu_seconds && child_.cgroup != nullptr) {
    next_cpu_check_ = child_.launched + kShortestCpuCheck;
  }
  // Small programs and inputs fit the pipe: they are there before init asks.
  fill_.step();
}

void Supervision::add_interest(std::vector<pollfd>& fds) const {
  if (ended()) return;
  want(fds, child_.control.get(), POLLIN);
  want(fds, report_.fd(), POLLIN);
  want(fds, child_.out.get(), POLLIN);
  want(fds, child_.err.get(), POLLIN);
  want(fds, fill_.fd(), POLLOUT);
  want(fds, stdin_.sink_fd(), POLLOUT);
  want(fds, stdin_.source_fd(), POLLIN);
  // Without the spawner to tell of init's end, the pidfd does.
  if (!child_.control) want(fds, pidfd_.get(), POLLIN);
  if (killed_ || kill_wanted_) return;
  want(fds, options_.cancel, POLLIN);
  if (child_.cgroup == nullptr) return;
  for (const cgroup::EventFd& event : child_.cgroup->event_fds()) {
    want(fds, event.fd, event.events);
  }
}

Supervision::Clock::time_point Supervision::next_deadline() const {
  const Clock::time_point launch = launch_deadline();
  if (killed_ || kill_wanted_) return std::min(kill_deadline_, launch);
  return std::min({wall_deadline_, next_cpu_check_, launch});
}

Supervision::Clock::time_point Supervision::launch_deadline() const {
  return phase_ == Phase::kLaunching ? child_.launched + spawn::kAnswerPatience
                                     : Clock::time_point::max();
}

void Supervision::step(const std::vector<pollfd>& ready) {
  if (ended()) return;
  if (is_ready(ready, options_.cancel)) cancel();
  if (is_ready(ready, fill_.fd())) fill_.step();
  if (is_ready(ready, stdin_.sink_fd()))
    stdin_.write_some();
  else if (is_ready(ready, stdin_.source_fd()))
    stdin_.read_some();
  if (is_ready(ready, child_.out.get())) drain_output(child_.out, out_);
  if (is_ready(ready, child_.err.get())) drain_output(child_.err, err_);
  if (is_ready(ready, report_.fd())) take_records();
  if (!killed_ && child_.cgroup != nullptr) {
    for (const cgroup::EventFd& event : child_.cgroup->event_fds()) {
      if (is_ready(ready, event.fd) && child_.cgroup->oom_happened()) on_oom();
    }
  }
  const bool lost_spawner_and_init = !child_.control && (!pidfd_ || is_ready(ready, pidfd_.get()));
  if (is_ready(ready, child_.control.get()))
    take_answers();
  else if (lost_spawner_and_init)
    finish();
  if (!ended()) check_deadlines();
}

void Supervision::take_answers() {
  while (!ended() && child_.control) {
    spawn::AnswerPacket answer;
    auto received = sys::receive_packet(child_.control.get(),
                                        {reinterpret_cast<std::uint8_t*>(&answer), sizeof answer},
                                        MSG_DONTWAIT);
    if (received && !*received) return;
    if (!received || (*received)->size != sizeof answer) {
      // The spawner died. Init follows by its death signal, unless it had not armed it yet: by
      // ours.
      Error error;
      error.operation = spawn::kSpawnerOperation;
      error.detail = received ? "the spawner ended during the run"
                              : "its answer could not be taken: " + to_string(received.error());
      fail(std::move(error));
      child_.control.reset();
      kill();
      if (!pidfd_) finish();
      return;
    }
    take_answer(answer, std::move((*received)->fds));
  }
}

void Supervision::take_answer(const spawn::AnswerPacket& answer, std::vector<UniqueFd> fds) {
  switch (answer.kind) {
    case spawn::AnswerKind::kLaunched:
      if (!fds.empty()) pidfd_ = std::move(fds[0]);
      phase_ = Phase::kRunning;
      if (kill_wanted_) kill();
      return;
    case spawn::AnswerKind::kFailed: {
      Error error;
      error.stage = "spawn";
      error.operation.assign(answer.operation,
                             ::strnlen(answer.operation, sizeof answer.operation));
      error.sys_errno = answer.error;
      fail(std::move(error));
      finish();
      return;
    }
    case spawn::AnswerKind::kEnded:
      ending_.init_wait_status = answer.status;
      output_empty_ = answer.output_empty != 0;
      finish();
      return;
  }
}

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
      ending_.hostile = SeenCall{record.arch, record.nr, 1};
      ending_.denied_counts_are_final = record.error == 0;
      hurry_the_end();  // init killed everything before it said so
      return;
    case plan::RecordKind::kEnded:
      // A failed exec has said more already than its exit code does.
      if (!ending_.payload_wait_status) ending_.payload_wait_status = record.status;
      ending_.denied_counts_are_final = record.error == 0;
      if (ending_.background_killed) hurry_the_end();  // by init, before it said so
      return;
    case plan::RecordKind::kInformation:
      take_information(record);
      return;
  }
}

void Supervision::take_failed_step(const plan::Record& record) {
  if (const auto status = exec_failure_status(record)) {
    // The program the caller named is not there, or is none: a result, as a shell would give it.
    err_.add(exec_failure_text(options_.plan->argv.front(), record));
    ending_.payload_wait_status = *status;
    return;
  }
  // The lifeline is closed: that a step sees it is our doing.
  if (kill_wanted_) return;
  fail(step_error(record));
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
      ending_.lock_calls = record.count;
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

void Supervision::drain_output(UniqueFd& pipe, Capture& capture) {
  // Not initialised: of its pages only those are touched that bytes arrive in.
  std::array<char, kReadChunk> buffer;
  for (int i = 0; i < kReadsPerStep; ++i) {
    const ssize_t got = ::read(pipe.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return;  // EAGAIN
    if (got == 0) {
      pipe.reset();
      return;
    }
    capture.add({buffer.data(), static_cast<std::size_t>(got)});
    if (options_.plan->policy.limits.output_kills && capture.over_limit() && !killed_) {
      ending_.output_exceeded = true;
      kill();
      return;
    }
  }
}

// The request lies there still. Should the spawner go on, it clones an init whose lifeline is
// closed and whose group is gone: the end of it at once.
void Supervision::give_up_launch() {
  fail(spawn::spawner_silent(spawn::kSpawnerOperation, child_.spawner));
  kill();
  finish();
}

void Supervision::check_deadlines() {
  const Clock::time_point now = Clock::now();
  if (now >= launch_deadline()) return give_up_launch();
  if (killed_ || kill_wanted_) {
    if (now < kill_deadline_) return;
    Error error;
    error.operation = "kill";
    error.detail = "processes of the run did not end after SIGKILL";
    fail(std::move(error));
    finish();
    return;
  }
  if (now >= wall_deadline_) {
    ending_.wall_expired = true;
    kill();
    return;
  }
  if (now >= next_cpu_check_) check_cpu(now);
}

// The next check comes when the limit could be reached at the earliest.
void Supervision::check_cpu(Clock::time_point now) {
  const auto limit = std::chrono::duration_cast<std::chrono::microseconds>(
      *options_.plan->policy.limits.cpu_seconds);
  const auto used = child_.cgroup->cpu_usec();
  if (!used) {
    fail(used.error());
    kill();
    return;
  }
  const std::chrono::microseconds spent{static_cast<std::int64_t>(*used)};
  if (spent >= limit) {
    ending_.cpu_expired = true;
    kill();
    return;
  }
  const auto rate = std::max<std::int64_t>(1, options_.plan->host_cpus);
  const auto earliest = std::chrono::duration_cast<milliseconds>(limit - spent) / rate;
  next_cpu_check_ = now + std::max(kShortestCpuCheck, earliest);
}

// v2: the kernel has killed the whole payload, or cgroup.kill does; init lives and reports. v1 has
// no group kill: the end of pid 1 takes the rest along.
void Supervision::on_oom() {
  if (!child_.cgroup->kill()) return kill();
  hurry_the_end();
}

// Once init has its SIGKILL, with which all inside end, and not before: what a throttled process
// does next, be it to die, waits for its group's quota. Only time is gained, so a failure is none.
void Supervision::hurry_the_end() {
  if (child_.cgroup != nullptr) (void)child_.cgroup->lift_cpu_limit();
}

void Supervision::kill() {
  kill_deadline_ = Clock::now() + kKillPatience;
  kill_wanted_ = true;
  child_.lifeline.reset();  // also reaches an init whose pidfd is still on its way
  if (!pidfd_ || killed_) return;
  killed_ = true;
  if (auto signalled = sys::pidfd_signal(pidfd_.get(), SIGKILL); !signalled) {
    return fail(std::move(signalled).error());
  }
  hurry_the_end();
}

void Supervision::cancel() {
  if (ended() || killed_ || kill_wanted_) return;
  ending_.cancelled = true;
  kill();
}

// The first failure is the cause; later ones follow from it.
void Supervision::fail(Error error) {
  if (ending_.failure) return;
  if (error.stage.empty()) error.stage = "supervise";
  ending_.failure = std::move(error);
}

// Everything inside is dead: what the pipes hold is all there will be.
void Supervision::finish() {
  ending_.total = Clock::now() - child_.launched;
  take_records();
  while (child_.out) {
    const std::uint64_t before = out_.total();
    drain_output(child_.out, out_);
    if (out_.total() == before) break;
  }
  while (child_.err) {
    const std::uint64_t before = err_.total();
    drain_output(child_.err, err_);
    if (err_.total() == before) break;
  }
  if (!ending_.exec_reached && !ending_.failure && !killed_ && !kill_wanted_) {
    Error error;
    error.operation = "sbx-init";
    error.detail = "it ended during set-up without a report, wait status " +
                   std::to_string(ending_.init_wait_status.value_or(-1));
    fail(std::move(error));
  }
  if (child_.cgroup != nullptr) {
    if (auto usage = child_.cgroup->usage()) {
      ending_.usage = *usage;
    } else {
      fail(std::move(usage).error());
    }
  }
  phase_ = Phase::kEnded;
}

Ending Supervision::take_ending() {
  ending_.out = out_.take();
  ending_.err = err_.take();
  return std::move(ending_);
}

}  // namespace sbx::supervise
