#include "agentd/loop/model_step.h"

#include <utility>

#include "agentd/loop/ending_text.h"

namespace agentd::loop {

using providers::Completion;
using providers::ProviderError;
using providers::Trouble;
using sbx::async::Task;
using std::chrono::steady_clock;

namespace {

NoReply ceiling(Ceiling reached) {
  return {.event = {.kind = Event::Kind::kCeilingReached, .ceiling = reached}};
}

// Without a connection in time nobody is reached.
bool is_about_time(Trouble trouble) {
  return trouble == Trouble::kTimeout || trouble == Trouble::kUnreachable;
}

}  // namespace

Task<ModelOutcome> ModelStep::ask(std::vector<providers::Message> messages,
                                  std::vector<providers::Tool> tools, providers::RecordingKey key,
                                  Brings brings) {
  const auto planned =
      spending_.plan_call(prompts::token_bound(messages, tools), services_.max_tokens);
  if (const auto* reached = std::get_if<Ceiling>(&planned)) co_return ceiling(*reached);
  const CallPlan plan = std::get<CallPlan>(planned);
  std::optional<RunPlan> run;
  if (brings == Brings::kRun) {
    const auto run_planned = spending_.plan_run(services_.run_wall);
    // A program that cannot be run is not paid for.
    if (const auto* reached = std::get_if<Ceiling>(&run_planned)) {
      NoReply none = ceiling(*reached);
      none.detail = spending_.too_little(*reached);
      co_return none;
    }
    run = std::get<RunPlan>(run_planned);
  }
  const auto refusal = co_await spending_.reserve_call(plan, run);
  if (refusal) co_return NoReply{.event = *refusal};
  if (stop_.cancelled()) {
    spending_.release("cancelled");
    NoReply none{.event = {.kind = Event::Kind::kCancelled}};
    co_return none;
  }

  providers::CompletionRequest request;
  request.messages = std::move(messages);
  request.tools = std::move(tools);
  request.max_tokens = plan.max_tokens;
  request.key = std::move(key);
  request.deadline = spending_.deadline();
  const auto begin = steady_clock::now();
  providers::CompletionResult result =
      co_await services_.provider.complete(std::move(request), &stop_);
  const double seconds = std::chrono::duration<double>(steady_clock::now() - begin).count();
  if (auto* error = std::get_if<ProviderError>(&result)) {
    co_return give_up(plan, *error, seconds);
  }
  ModelReply reply;
  reply.completion = std::move(std::get<Completion>(result));
  reply.seconds = seconds;
  reply.charge = spending_.settle_call(plan, reply.completion.usage);
  co_return reply;
}

NoReply ModelStep::give_up(CallPlan plan, const ProviderError& error, double seconds) {
  std::optional<record::Attempt> billed;
  if (error.may_have_cost) {
    billed.emplace();
    record::Error why{std::string(to_string(error.trouble)), error.detail};
    if (stop_.cancelled()) {
      billed->outcome = record::Outcome::kCancelled;
      billed->error = std::move(why);
    } else {
      billed->fail(FailureClass::kProvider, std::move(why));
    }
    billed->model_seconds = seconds;
    billed->model_tries = error.tries;
    billed->charge = spending_.settle_call(plan, std::nullopt);
  } else {
    spending_.release(std::string(to_string(error.trouble)));
  }
  NoReply none{.event = {.kind = Event::Kind::kProviderFailed},
               .detail = with_fix(error.detail, error.fix),
               .fix = error.fix};
  if (stop_.cancelled()) {
    none.event.kind = Event::Kind::kCancelled;
  } else if (is_about_time(error.trouble) && spending_.out_of_time()) {
    none = ceiling(Ceiling::kWallSeconds);
  }
  none.billed = std::move(billed);
  return none;
}

void add_billed(record::Record& record, NoReply& none) {
  if (!none.billed) return;
  record::Attempt& made = record.attempts.emplace_back(*std::move(none.billed));
  made.n = record.state.attempt + 1;
}

}  // namespace agentd::loop
