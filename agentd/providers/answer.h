// Answer: what one try at a model server brought, judged. Internal to providers/; no I/O.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agentd/providers/provider.h"
#include "agentd/providers/wire.h"
#include "http/client.h"

namespace agentd::providers {

struct Verdict {
  CompletionResult result;
  bool retry = false;  // another try may do better
  std::optional<std::chrono::seconds> retry_after{};
};

// Takes in the body of an answer as it comes, whatever it turns out to be.
class Answer {
 public:
  explicit Answer(std::unique_ptr<Accumulator> accumulator)
      : accumulator_(std::move(accumulator)) {}

  // False: enough was read.
  [[nodiscard]] bool data(const sbx::http::ClientResponse& head, std::string_view bytes);
  // After the exchange. `host` is the base URL, for people.
  [[nodiscard]] Verdict judge(const sbx::http::ClientResult& result, const std::string& host);

 private:
  [[nodiscard]] bool take_events(std::string_view bytes);
  [[nodiscard]] Verdict judge_reply(bool ended);
  [[nodiscard]] Verdict judge_refusal(const sbx::http::ClientResponse& head,
                                      const std::string& host) const;
  [[nodiscard]] Verdict judge_failure(const sbx::http::ClientError& error, const std::string& host);

  std::unique_ptr<Accumulator> accumulator_;
  SseParser sse_;
  std::string body_;  // of a plain answer, or of an error
  bool streamed_ = false;
  bool over_ = false;  // body_ is not all of it
  int status_ = 0;
};

}  // namespace agentd::providers
