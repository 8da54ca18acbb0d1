#include "agentd/loop/run_step.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "agentd/loop/clean_run.h"
#include "agentd/loop/ending_text.h"

namespace agentd::loop {

using sandbox::RunResult;
using sandbox::SandboxFailure;
using sandbox::SandboxInfo;
using sandbox::SharedInfo;
using sbx::async::Task;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

milliseconds rounded_up(double seconds) {
  return milliseconds(static_cast<milliseconds::rep>(std::ceil(seconds * 1000)));
}

// What a run would be given now, told to the model: whole seconds where the request lowers it.
double seconds_of_a_run(const Spending& spending, milliseconds usual) {
  const auto planned = spending.plan_run(usual);
  const auto* plan = std::get_if<RunPlan>(&planned);
  const milliseconds wall = plan == nullptr ? kMinRun : plan->wall;
  const double seconds = static_cast<double>(wall.count()) / 1000;
  return plan != nullptr && plan->lowered_by ? std::floor(seconds) : seconds;
}

// The same, but for the time limit; it is everybody's, and long.
SharedInfo with_wall(SharedInfo info, double seconds) {
  if (info->wall_seconds == seconds) return info;
  auto told = std::make_shared<SandboxInfo>(*info);
  told->wall_seconds = seconds;
  return told;
}

// Why the sandbox will not take these files; nullopt: it will.
std::optional<SandboxFailure> refusal_of(const std::vector<record::RequestFile>& files,
                                         const SandboxInfo& info) {
  constexpr std::uint64_t kPage = 4096;  // files are counted there in whole ones
  std::uint64_t bytes = 0;
  for (const auto& file : files) bytes += (file.size + kPage - 1) / kPage * kPage;
  if (bytes <= info.input) return std::nullopt;
  return SandboxFailure{
      .kind = SandboxFailure::Kind::kRefused,
      .detail = fmt::format("the files take {} bytes in the sandbox, and its limit (input) is {}",
                            bytes, info.input),
      .fix = "attach less, or raise input for sbxd"};
}

NotRun not_run(const SandboxFailure& failure) {
  return {.event = {.kind = Event::Kind::kSandboxFailed},
          .detail = with_fix(failure.detail, failure.fix),
          .fix = failure.fix};
}

}  // namespace

Task<LearnOutcome> RunStep::learn(const std::vector<record::RequestFile>& files) {
  LearnOutcome learned;
  sandbox::InfoOutcome outcome = co_await services_.sandbox.info(&stop_);
  if (auto* info = std::get_if<SharedInfo>(&outcome)) {
    if (const auto refusal = refusal_of(files, **info)) {
      learned = not_run(*refusal);
    } else {
      learned = with_wall(std::move(*info), seconds_of_a_run(spending_, services_.run_wall));
    }
    co_return learned;
  }
  NotRun none = not_run(std::get<SandboxFailure>(outcome));
  if (stop_.cancelled()) none.event.kind = Event::Kind::kCancelled;
  learned = std::move(none);
  co_return learned;
}

Task<RunStepOutcome> RunStep::run(std::string language, std::string code) {
  const auto planned = spending_.plan_run(services_.run_wall);
  if (const auto* reached = std::get_if<Ceiling>(&planned)) {
    NotRun none{.event = {.kind = Event::Kind::kCeilingReached, .ceiling = *reached},
                .detail = spending_.too_little(*reached)};
    co_return none;
  }
  const RunPlan plan = std::get<RunPlan>(planned);
  const auto refusal = co_await spending_.reserve_run(plan);
  if (refusal) co_return NotRun{.event = *refusal};

  sandbox::RunRequest request;
  request.language = std::move(language);
  request.code = std::move(code);
  request.files = submission_.files;
  request.wall = plan.wall;
  request.deadline = spending_.deadline();
  const auto begin = steady_clock::now();
  sandbox::RunOutcome outcome = co_await services_.sandbox.run(std::move(request), &stop_);
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  if (auto* failure = std::get_if<SandboxFailure>(&outcome)) {
    co_return give_up(plan, *failure, seconds);
  }
  Ran ran;
  ran.result = std::move(std::get<RunResult>(outcome));
  clean_run(ran.result, services_.redactor);
  ran.seconds = seconds;
  if (ran.result.status == "timeout") ran.cut_by = plan.lowered_by;
  spending_.settle_run(plan, rounded_up(ran.result.duration_seconds));
  co_return ran;
}

NotRun RunStep::give_up(RunPlan plan, const SandboxFailure& failure, double seconds) {
  using Kind = SandboxFailure::Kind;
  const bool down = failure.kind == Kind::kUnreachable || failure.kind == Kind::kSilent;
  const bool may_have_run =
      !failure.not_sent && (failure.kind == Kind::kLost || failure.kind == Kind::kCancelled ||
                            failure.kind == Kind::kSilent);
  if (may_have_run) {
    spending_.settle_run(plan, rounded_up(seconds));
  } else {
    spending_.release(std::string(to_string(failure.kind)));
  }
  NotRun none = not_run(failure);
  none.seconds = seconds;
  if (stop_.cancelled()) {
    none.event.kind = Event::Kind::kCancelled;
  } else if (!down && spending_.out_of_time()) {
    none.event = {.kind = Event::Kind::kCeilingReached, .ceiling = Ceiling::kWallSeconds};
    none.cut = may_have_run;
    none.detail = may_have_run ? "it was ended with the request's time" : "";
  }
  return none;
}

}  // namespace agentd::loop
