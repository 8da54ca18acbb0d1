#include "agentd/providers/answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "agentd/providers/retry.h"

namespace agentd::providers {
namespace {

using sbx::http::ClientError;
using sbx::http::ClientResponse;

constexpr std::size_t kMaxPlainBytes = 2 * kMaxReplyBytes;
constexpr int kOk = 200;

bool is_event_stream(const ClientResponse& head) {
  const auto type = head.headers.find("Content-Type");
  return type && type->starts_with("text/event-stream");
}

// Some servers call a stream plain text. No JSON begins so.
bool begins_like_events(std::string_view body) {
  if (body.starts_with("\xEF\xBB\xBF")) body.remove_prefix(3);
  body.remove_prefix(std::min(body.find_first_not_of("\r\n"), body.size()));
  for (const std::string_view field : {"data:", "event:", "id:", "retry:", ": "}) {
    if (body.starts_with(field)) return true;
  }
  return false;
}

Verdict failed(Trouble trouble, std::string detail, std::string fix = {}) {
  return {.result = ProviderError{
              .trouble = trouble, .detail = std::move(detail), .fix = std::move(fix)}};
}

}  // namespace

bool Answer::data(const ClientResponse& head, std::string_view bytes) {
  status_ = head.status;
  if (status_ == kOk && is_event_stream(head)) streamed_ = true;
  if (!streamed_) {
    constexpr std::size_t kEnoughToTell = 16;
    const bool is_begin = body_.size() < kEnoughToTell;
    over_ = over_ || bytes.size() > kMaxPlainBytes - body_.size();
    body_ += bytes.substr(0, kMaxPlainBytes - body_.size());
    if (status_ != kOk || !is_begin || !begins_like_events(body_)) return true;
    streamed_ = true;
    return take_events(std::exchange(body_, {}));
  }
  return take_events(bytes);
}

bool Answer::take_events(std::string_view bytes) {
  for (const SseEvent& event : sse_.feed(bytes)) {
    if (!accumulator_->event(event) || accumulator_->overrun()) return false;
  }
  return !sse_.failed();
}

Verdict Answer::judge(const sbx::http::ClientResult& result, const std::string& host) {
  if (const auto* error = std::get_if<ClientError>(&result)) {
    // Stopped by us: the reply is complete, or wrong, and what came behind it is not wanted.
    if (error->kind == ClientError::Kind::kStopped) return judge_reply(false);
    return judge_failure(*error, host);
  }
  const auto& head = std::get<ClientResponse>(result);
  if (head.status != kOk) return judge_refusal(head, host);
  return judge_reply(true);
}

Verdict Answer::judge_reply(bool ended) {
  if (over_) {
    Verdict verdict =
        failed(Trouble::kMalformed,
               fmt::format("the model server's answer is larger than {} bytes", kMaxPlainBytes));
    std::get<ProviderError>(verdict.result).may_have_cost = true;
    return verdict;
  }
  if (!streamed_) {
    accumulator_->whole(body_);
  } else if (std::string rest = sse_.take_rest(); ended && !rest.empty()) {
    (void)accumulator_->event({"message", std::move(rest)});  // its outcome is asked for below
  }
  if (accumulator_->error() || sse_.failed()) {
    Verdict verdict = failed(
        Trouble::kMalformed,
        "the model server's answer: " + accumulator_->error().value_or("an event is too long"),
        accumulator_->is_foreign() ? "check kind and base_url in [provider]" : "");
    std::get<ProviderError>(verdict.result).may_have_cost = true;
    return verdict;
  }
  if (!accumulator_->begun() && !accumulator_->complete()) {
    Verdict verdict = failed(Trouble::kMalformed, "the model server's answer holds no reply");
    std::get<ProviderError>(verdict.result).may_have_cost = true;
    return verdict;
  }
  return {.result = accumulator_->take()};
}

Verdict Answer::judge_refusal(const ClientResponse& head, const std::string& host) const {
  const int status = head.status;
  if (status == 401 || status == 403) {
    // What the server says about a key may quote it: not repeated.
    return failed(Trouble::kKeyRefused, fmt::format("{} refused the key ({})", host, status),
                  "check api_key_file, api_key_credential or api_key_env in [provider]");
  }
  std::string said = error_message(body_);
  if (said.empty()) said = sbx::http::reason_phrase(status);
  const std::string detail = fmt::format("{} answered {}: {}", host, status, said);
  if (status == 404) return failed(Trouble::kModelUnknown, detail, "check model and base_url");
  if (status == 413) return failed(Trouble::kTooLarge, detail);
  Verdict verdict = failed(Trouble::kRefused, detail);
  if (is_retryable(status)) {
    const bool busy = status == 429 || status == 529 || status == 503;
    std::get<ProviderError>(verdict.result).trouble =
        busy ? Trouble::kOverloaded : Trouble::kUnreachable;
    verdict.retry = true;
    if (const auto value = head.headers.find("Retry-After")) {
      verdict.retry_after = parse_retry_after(*value, std::chrono::system_clock::now());
    }
  }
  return verdict;
}

Verdict Answer::judge_failure(const ClientError& error, const std::string& host) {
  const std::string detail = fmt::format("{}: {}", host, error.detail);
  switch (error.kind) {
    case ClientError::Kind::kUnreachable: {
      Verdict verdict =
          failed(Trouble::kUnreachable, detail, "start the server, or check base_url");
      verdict.retry = true;
      return verdict;
    }
    case ClientError::Kind::kBroken: {
      // A reply that had begun is kept as what it is: cut.
      if (accumulator_->begun() && !accumulator_->error()) return judge_reply(false);
      // Not again: one reservation covers one reply.
      Verdict verdict = failed(Trouble::kUnreachable, detail);
      std::get<ProviderError>(verdict.result).may_have_cost = true;
      return verdict;
    }
    case ClientError::Kind::kTimeout: {
      Verdict verdict = failed(Trouble::kTimeout, detail, "raise timeout_seconds in [provider]");
      std::get<ProviderError>(verdict.result).may_have_cost = true;
      return verdict;
    }
    case ClientError::Kind::kCancelled: {
      Verdict verdict = failed(Trouble::kCancelled, "the call was cancelled");
      std::get<ProviderError>(verdict.result).may_have_cost = true;
      return verdict;
    }
    case ClientError::Kind::kTooLarge:
    case ClientError::Kind::kStopped: {
      Verdict verdict = failed(Trouble::kMalformed, detail);
      std::get<ProviderError>(verdict.result).may_have_cost = true;
      return verdict;
    }
    case ClientError::Kind::kTls:
    case ClientError::Kind::kBadRequest:
      break;
  }
  return failed(Trouble::kRefused, detail, "check base_url in [provider]");
}

}  // namespace agentd::providers
