#include "agentd/providers/http_provider.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "agentd/providers/answer.h"
#include "runtime/base/scope_exit.h"

namespace agentd::providers {

// A token takes some 300 bytes of a stream. What is kept of it has bounds of its own (wire.h).
constexpr std::size_t kMaxAnswerBytes = 64U << 20;
constexpr std::size_t kMaxListBytes = 4U << 20;
constexpr std::chrono::milliseconds kReachTime{3'000};
constexpr std::chrono::milliseconds kReachAge{2'000};  // an older answer is asked for again
constexpr int kStatusOk = 200;
constexpr int kNotFound = 404;
constexpr int kNotAllowed = 405;

using sbx::async::Cancellation;
using sbx::async::Deadline;
using sbx::async::Task;
using sbx::async::Wake;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct HttpProvider::Try {
  Verdict verdict;
};

HttpProvider::HttpProvider(sbx::async::Loop& loop, sbx::http::AsyncClient& client,
                           std::unique_ptr<Wire> wire, HttpProviderOptions options)
    : loop_(loop),
      client_(client),
      wire_(std::move(wire)),
      options_(std::move(options)),
      reach_ended_(loop) {}

namespace {

// Between two tries, of which none was answered.
CompletionResult cancelled(int tries) {
  return ProviderError{
      .trouble = Trouble::kCancelled, .detail = "the call was cancelled", .tries = tries};
}

// How long to wait before the next try; nullopt: not at all, give up.
std::optional<milliseconds> pause(const Verdict& verdict, const RetryPolicy& policy, int tries,
                                  double random, Deadline deadline) {
  if (!verdict.retry || tries >= policy.tries) return std::nullopt;
  milliseconds wait = backoff(policy, tries + 1, random);
  if (verdict.retry_after) {
    if (*verdict.retry_after > policy.retry_after) return std::nullopt;
    wait = std::max<milliseconds>(wait, *verdict.retry_after);
  }
  if (deadline != sbx::async::kNoDeadline && steady_clock::now() + wait >= deadline) {
    return std::nullopt;
  }
  return wait;
}

// Why there was no other try, where a person would wonder.
std::string why_no_more(const Verdict& verdict, const RetryPolicy& policy, int tries) {
  const auto& error = std::get<ProviderError>(verdict.result);
  if (!verdict.retry) {
    const bool billed = error.may_have_cost && error.trouble != Trouble::kCancelled;
    return billed ? "; not asked again, since this call may have been charged" : "";
  }
  std::string text;
  if (verdict.retry_after) {
    text = fmt::format("; it wants a pause of {} s", verdict.retry_after->count());
  }
  if (tries >= policy.tries) return text + fmt::format("; asked {} times", tries);
  if (verdict.retry_after && *verdict.retry_after > policy.retry_after) {
    return text + fmt::format(", and at most {} s are waited", policy.retry_after.count() / 1000);
  }
  return text + "; the request's time leaves none for another try";
}

}  // namespace

Task<CompletionResult> HttpProvider::complete(CompletionRequest request,
                                              const Cancellation* cancellation) {
  const std::string body = wire_->body(request, options_.wire);
  for (int tries = 1;; ++tries) {
    Try one = co_await try_once(body, request.max_tokens, request.deadline, cancellation);
    if (auto* completion = std::get_if<Completion>(&one.verdict.result)) {
      completion->tries = tries;
      co_return std::move(one.verdict.result);
    }
    auto& error = std::get<ProviderError>(one.verdict.result);
    error.tries = tries;
    const auto wait =
        pause(one.verdict, options_.retry, tries, options_.random(), request.deadline);
    if (!wait) {
      error.detail += why_no_more(one.verdict, options_.retry, tries);
      co_return std::move(one.verdict.result);
    }
    const Wake wake = co_await loop_.sleep_until(steady_clock::now() + *wait, cancellation);
    if (wake == Wake::kCancelled) co_return cancelled(tries);
  }
}

// However many ask, the server has one call of ours at a time.
Task<Reach> HttpProvider::reach(const Cancellation* cancellation) {
  while (reaching_) {
    const Wake wake = co_await reach_ended_.wait(sbx::async::kNoDeadline, cancellation);
    if (wake == Wake::kCancelled) co_return Reach{};  // nobody reads it
  }
  if (reach_ && steady_clock::now() - reached_at_ < kReachAge) co_return *reach_;
  reaching_ = true;
  const sbx::ScopeExit over([this] {
    reaching_ = false;
    reach_ended_.notify_all();
  });
  Reach reach = co_await list_models(cancellation);
  if (cancellation == nullptr || !cancellation->cancelled()) {
    reach_ = reach;
    reached_at_ = steady_clock::now();
  }
  co_return reach;
}

// Who has the list has taken the key; a server without one is reached all the same.
Task<Reach> HttpProvider::list_models(const Cancellation* cancellation) {
  Answer answer(wire_->accumulator());
  sbx::http::ClientRequest request;
  request.url = options_.base_url + "/models";
  for (auto& [name, value] : wire_->headers(options_.key)) request.headers.add(name, value);
  request.body_bytes = kMaxListBytes;
  request.connect_timeout = kReachTime;
  request.timeout = kReachTime;
  request.on_data = [&answer](const sbx::http::ClientResponse& head, std::string_view bytes) {
    return answer.data(head, bytes);
  };
  const sbx::http::ClientResult result = co_await client_.perform(std::move(request), cancellation);
  Reach reach;
  if (const auto* head = std::get_if<sbx::http::ClientResponse>(&result)) {
    const int status = head->status;
    reach.answers = status == kStatusOk || status == kNotFound || status == kNotAllowed;
    reach.detail = status == kStatusOk ? "answers" : "answers, but has no list of models";
    if (reach.answers) co_return reach;
  }
  const auto* error = std::get_if<sbx::http::ClientError>(&result);
  if (error != nullptr && error->kind == sbx::http::ClientError::Kind::kTimeout) {
    reach.detail =
        fmt::format("{} did not answer within {} s", options_.base_url,
                    std::chrono::duration_cast<std::chrono::seconds>(kReachTime).count());
    reach.fix = "see whether the server works, and check base_url";
    co_return reach;
  }
  const Verdict verdict = answer.judge(result, options_.base_url);
  if (const auto* why = std::get_if<ProviderError>(&verdict.result)) {
    reach.detail = why->detail;
    reach.fix = why->fix;
  }
  co_return reach;
}

Task<HttpProvider::Try> HttpProvider::try_once(const std::string& body, int max_tokens,
                                               Deadline deadline,
                                               const Cancellation* cancellation) {
  auto accumulator = wire_->accumulator();
  accumulator->limit_tokens(max_tokens);
  Answer answer(std::move(accumulator));
  sbx::http::ClientRequest request;
  request.method = sbx::http::Method::kPost;
  request.url = options_.base_url + wire_->path();
  request.headers.add("Content-Type", "application/json");
  request.headers.add("Accept", "text/event-stream, application/json");
  for (auto& [name, value] : wire_->headers(options_.key)) request.headers.add(name, value);
  request.body = body;
  request.body_bytes = kMaxAnswerBytes;
  request.timeout = options_.timeout;
  if (deadline != sbx::async::kNoDeadline) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    request.timeout = std::clamp(left, milliseconds(1), options_.timeout);
  }
  request.on_data = [&answer](const sbx::http::ClientResponse& head, std::string_view bytes) {
    return answer.data(head, bytes);
  };
  const sbx::http::ClientResult result = co_await client_.perform(std::move(request), cancellation);
  Try done{answer.judge(result, options_.base_url)};
  co_return done;
}

}  // namespace agentd::providers
