#include "runtime/supervise/supervision.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"

namespace sbx::supervise {
namespace {

using std::chrono::milliseconds;

// SIGKILL to pid 1 takes 10–60 ms; past this something in the kernel hangs, and we say so.
constexpr milliseconds kKillPatience{20'000};
// How often a run that should be ending looks whether the spawner is known to be silent by now.
constexpr milliseconds kSilenceLook{1'000};
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
      stdin_(std::move(child_.in), std::move(options_.stdin_text), options_.stdin_source) {
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
  if (is_killed()) return;
  want(fds, options_.cancel, POLLIN);
  if (child_.cgroup == nullptr) return;
  for (const cgroup::EventFd& event : child_.cgroup->event_fds()) {
    want(fds, event.fd, event.events);
  }
}

Supervision::Clock::time_point Supervision::next_deadline() const {
  const Clock::time_point launch = launch_deadline();
  // A spawner that falls silent wakes nobody.
  const Clock::time_point look = is_ending() && child_.spawner_silent != nullptr
                                     ? Clock::now() + kSilenceLook
                                     : Clock::time_point::max();
  const Clock::time_point end = std::min({kill_deadline_, launch, look});
  if (is_killed()) return end;
  if (payload_is_over()) return std::min(wall_deadline_, end);
  return std::min({wall_deadline_, next_cpu_check_, end});
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
      // The spawner died.
      Error error;
      error.operation = spawn::kSpawnerOperation;
      error.detail = received ? "the spawner ended during the run"
                              : "its answer could not be taken: " + to_string(received.error());
      return lose_spawner(std::move(error));
    }
    take_answer(answer, std::move((*received)->fds));
  }
}

// Who is not there to tell of init's end: its pidfd does. Init follows a dead spawner by its death
// signal, unless it had not armed it yet: by ours.
void Supervision::lose_spawner(Error error) {
  fail(std::move(error));
  child_.control.reset();
  kill();
  if (!pidfd_) finish();
}

void Supervision::give_up_spawner() {
  take_answers();  // its last word may have come meanwhile
  if (ended() || !child_.control) return;
  lose_spawner(spawn::spawner_silent(spawn::kSpawnerOperation, child_.spawner));
}

void Supervision::take_answer(const spawn::AnswerPacket& answer, std::vector<UniqueFd> fds) {
  switch (answer.kind) {
    case spawn::AnswerKind::kLaunched:
      if (!fds.empty()) pidfd_ = std::move(fds[0]);
      phase_ = Phase::kRunning;
      // Not from when the spawner was asked: how long it took is no fault of the program.
      wall_deadline_ = Clock::now() + options_.plan->policy.limits.wall_seconds;
      if (kill_wanted_) kill();
      return;
    case spawn::AnswerKind::kFailed: {
      Error error;
      error.stage = "spawn";
      error.operation.assign(answer.operation,
                             ::strnlen(answer.operation, sizeof answer.operation));
      error.sys_errno = answer.error;
      fail(name_scarcity(std::move(error)));
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
  if (is_ending() && child_.control && spawner_is_silent()) return give_up_spawner();
  if (now >= kill_deadline_) return give_up_end();
  if (is_killed()) return;
  if (now >= wall_deadline_) return end_at_wall_limit();
  if (now >= next_cpu_check_) check_cpu(now);
}

// What should have ended by itself is killed, and has as long again.
void Supervision::give_up_end() {
  pollfd init{pidfd_.get(), POLLIN, 0};
  const bool init_is_dead = pidfd_ && ::poll(&init, 1, 0) > 0;
  if (init_is_dead && child_.control) return give_up_spawner();
  if (!is_killed()) return kill();
  Error error;
  error.operation = "kill";
  error.detail = "processes of the run did not end after SIGKILL";
  fail(std::move(error));
  finish();
}

// What init told before counts first, however late it is read: a program that had ended by then did
// not run into the limit. (Output is other evidence: what is read late was written before the end.)
// What is left of the run ends here in any case.
void Supervision::end_at_wall_limit() {
  take_records();
  ending_.wall_expired = !payload_is_over();
  kill();
}

// What a program has used by its end counts, however late that is heard of. The next check comes
// when the limit could be reached at the earliest.
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
  if (payload_is_over()) {
    next_cpu_check_ = Clock::time_point::max();
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

// Of what init has killed, and of init, which goes by itself.
void Supervision::expect_the_end() {
  if (!is_killed()) kill_deadline_ = Clock::now() + kKillPatience;
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
  if (ended() || is_killed()) return;
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
  const Clock::time_point now = Clock::now();
  take_records();
  ending_.total = std::max(std::min(payload_ended_, now), child_.launched) - child_.launched;
  ending_.setup = std::min(ending_.setup, ending_.total);  // which may have been heard of late
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
  if (!ending_.exec_reached && !ending_.failure && !is_killed()) {
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
