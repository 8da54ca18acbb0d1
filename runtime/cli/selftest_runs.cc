#include "runtime/cli/selftest_runs.h"

#include <dirent.h>
#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "runtime/base/sys.h"
#include "runtime/cli/probe_program.h"
#include "runtime/cli/selftest_control.h"

namespace sbx::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kAtOnce = 4;
constexpr std::size_t kMaxCommandLine = 64 * 1024;

// Processes of the host that have this word in their command line; -1 where none can be seen.
int count_marked(const std::string& mark) {
  const std::string word = '\0' + mark + '\0';
  const std::unique_ptr<DIR, int (*)(DIR*)> processes(::opendir("/proc"), ::closedir);
  if (!processes) return -1;
  int count = 0;
  while (const dirent* const entry = ::readdir(processes.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    const auto file =
        sys::open(std::string("/proc/") + entry->d_name + "/cmdline", O_RDONLY | O_CLOEXEC);
    if (!file) continue;  // it has ended
    const auto words = sys::read_all(file->get(), kMaxCommandLine);
    if (words && words->find(word) != std::string::npos) ++count;
  }
  return count;
}

// "memory=32M pids=16"
Result<void> lay_over(policy::Limits& limits, std::string_view text) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    const std::size_t equals = word.find('=');
    SBX_TRY(policy::set_limit(limits, word.substr(0, equals), word.substr(equals + 1)));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
  }
  return {};
}

// One run of a case: the attack, or its control.
struct Job {
  const RunCase* attack = nullptr;
  std::string_view argument, limits;
  bool cancelled = false;
};

class Flight {
 public:
  Flight(std::size_t place, const Job& job)
      : place_(place), job_(job), mark_(fmt::format("sbx-selftest-run-{}-{}", ::getpid(), place)) {}
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;

  [[nodiscard]] std::size_t place() const { return place_; }
  [[nodiscard]] Run* run() { return run_.get(); }

  void start(Sandbox& sandbox, policy::Policy policy, const Ceilings& ceilings, int cancel_fd) {
    auto started = begin(sandbox, policy, ceilings, cancel_fd);
    if (started) return;
    seen_.trouble = to_string(started.error());
    // Any other refusal is none that excuses the case.
    seen_.refused = !ceilings.allow(policy.limits);
  }

  // True while there is more to come.
  bool step(const std::vector<pollfd>& ready) {
    run_->step(ready);
    if (job_.cancelled && is_up_ && !run_->done()) {
      job_.cancelled = false;
      run_->cancel();
    }
    return !run_->done();
  }

  RunSeen take() {
    if (!run_) return std::move(seen_);
    seen_.outcome = run_->take_outcome();
    run_.reset();
    if (is_up_) seen_.alive_after = count_marked(mark_);
    return std::move(seen_);
  }

 private:
  Result<void> begin(Sandbox& sandbox, policy::Policy& policy, const Ceilings& ceilings,
                     int cancel_fd) {
    SBX_TRY(lay_over(policy.limits, kRunCaseLimits));
    ceilings.lower(policy.limits);
    SBX_TRY(lay_over(policy.limits, job_.limits));
    RunHooks hooks;
    hooks.cancel_fd = cancel_fd;
    hooks.on_stdout = [this](std::string_view bytes) { hear(bytes); };
    SBX_ASSIGN(run_, sandbox.start(policy, probe_request(job_.attack->act, job_.argument, mark_),
                                   std::move(hooks)));
    return {};
  }

  void hear(std::string_view bytes) {
    if (is_up_ || !bytes.starts_with("up\n")) return;
    is_up_ = true;
    seen_.alive_during = count_marked(mark_);
  }

  std::size_t place_;
  Job job_;
  std::string mark_;
  std::unique_ptr<Run> run_;
  RunSeen seen_;
  bool is_up_ = false;
};

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

// Waits for any of them, then steps all: what is not ready has nothing to do.
void step_all(std::vector<std::unique_ptr<Flight>>& flights, std::vector<RunSeen>& seen) {
  std::vector<pollfd> all;
  std::vector<std::size_t> counts;
  Clock::time_point deadline = Clock::time_point::max();
  for (const auto& flight : flights) {
    const std::vector<pollfd>& interest = flight->run()->interest();
    counts.push_back(interest.size());
    all.insert(all.end(), interest.begin(), interest.end());
    deadline = std::min(deadline, flight->run()->next_deadline());
  }
  const bool never = deadline == Clock::time_point::max();
  if (::poll(all.data(), all.size(), never ? 1000 : milliseconds_until(deadline)) < 0) {
    for (pollfd& entry : all) entry.revents = 0;
  }
  auto at = all.begin();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto end = at + static_cast<std::ptrdiff_t>(counts[i]);
    if (!flights[i]->step({at, end})) {
      seen[flights[i]->place()] = flights[i]->take();
      flights[i].reset();
    }
    at = end;
  }
  std::erase(flights, nullptr);
}

std::vector<RunSeen> run_all(Sandbox& sandbox, const policy::Policy& policy,
                             const Ceilings& ceilings, const std::vector<Job>& jobs,
                             int cancel_fd) {
  std::vector<RunSeen> seen(jobs.size());
  std::vector<std::unique_ptr<Flight>> flights;
  for (std::size_t next = 0; next < jobs.size() || !flights.empty();) {
    if (is_cancelled(cancel_fd)) next = jobs.size();
    while (next < jobs.size() && flights.size() < kAtOnce) {
      auto flight = std::make_unique<Flight>(next, jobs[next]);
      flight->start(sandbox, policy, ceilings, cancel_fd);
      if (flight->run() != nullptr) {
        flights.push_back(std::move(flight));
      } else {
        seen[next] = flight->take();
      }
      ++next;
    }
    if (!flights.empty()) step_all(flights, seen);
  }
  return seen;
}

bool lacks_layer(const RunCase& attack, const std::vector<std::string>& missing) {
  return std::find(missing.begin(), missing.end(), attack.layer) != missing.end();
}

std::optional<Observation> attack_outside(const RunCase& attack, const ControlGround& ground,
                                          int cancel_fd) {
  AttackCase outside{};
  outside.act = attack.outside;
  outside.control_argument = attack.control_argument;
  outside.control = Control::kThrowAway;
  return run_control(outside, ground, cancel_fd);
}

}  // namespace

plan::Request probe_request(std::string_view act, std::string_view argument,
                            std::string_view mark) {
  plan::Request request;
  const auto program = probe_program();
  request.files.push_back(
      {"sbx-probe", std::string(reinterpret_cast<const char*>(program.data()), program.size())});
  request.argv = {"/input/sbx-probe", std::string(act), std::string(argument)};
  if (!mark.empty()) request.argv.emplace_back(mark);
  return request;
}

bool is_cancelled(int cancel_fd) {
  pollfd asked{cancel_fd, POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}

std::vector<RunCaseResult> attack_by_runs(Sandbox& sandbox, const policy::Policy& policy,
                                          const Ceilings& ceilings, const ControlGround& ground,
                                          const std::vector<std::string>& missing, int cancel_fd) {
  std::vector<Job> jobs;
  for (const RunCase& attack : run_cases()) {
    if (lacks_layer(attack, missing)) continue;
    jobs.push_back({&attack, attack.argument, attack.limits, attack.cancelled});
    if (attack.outside.empty()) {
      jobs.push_back({&attack, attack.control_argument, attack.control_limits, false});
    }
  }
  std::vector<RunSeen> seen = run_all(sandbox, policy, ceilings, jobs, cancel_fd);
  if (is_cancelled(cancel_fd)) return {};
  std::vector<RunCaseResult> results;
  auto next = seen.begin();
  for (const RunCase& attack : run_cases()) {
    if (lacks_layer(attack, missing)) {
      results.push_back({&attack, CaseState::kFail,
                         fmt::format("no {}: this limit does not hold", attack.layer), "not run"});
      continue;
    }
    const RunSeen& inside = *next++;
    RunControl control;
    if (attack.outside.empty()) {
      control.run = std::move(*next++);
    } else {
      control.outside = attack_outside(attack, ground, cancel_fd);
    }
    results.push_back(
        {&attack, judge_run(attack, inside, control), describe(inside), describe(control)});
  }
  return results;
}

}  // namespace sbx::cli
