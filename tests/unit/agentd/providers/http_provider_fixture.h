// A provider that speaks to a server of the test's, which plays what real ones do.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "agentd/providers/http_provider.h"
#include "tests/agent/support/scripted_server.h"
#include "tests/unit/http/on_loop.h"

namespace agentd::providers {

using sbx::async::Cancellation;
using sbx::async::Task;
using std::chrono::milliseconds;
using test::Heard;
using test::Peer;
using test::ScriptedServer;

inline constexpr char kKey[] = "sk-test-0123456789abcdef";

inline std::string text_chunk(const std::string& text) {
  return R"({"choices":[{"delta":{"content":")" + text + R"("}}]})";
}
inline const std::string kStop = R"({"choices":[{"delta":{},"finish_reason":"stop"}]})";
inline const std::string kPlain =
    R"({"choices":[{"message":{"content":"plain"},"finish_reason":"stop"}]})";

class HttpProviderTest : public ::testing::Test {
 protected:
  // Plays `script` and asks once. `cancel_when`, if given, is called on the loop each millisecond
  // until it says true; then the call is cancelled.
  CompletionResult ask(const ScriptedServer::Script& script) {
    ScriptedServer server(script);
    CompletionResult result = ask_at(server.url() + "/v1");
    heard_ = server.heard();
    return result;
  }

  CompletionResult ask_at(const std::string& base_url) {
    sbx::async::Loop loop;
    sbx::http::AsyncClient client(loop);
    HttpProviderOptions options{
        .info = {.kind = "openai", .model = "m", .origin = base_url},
        .base_url = base_url,
        .key = redact::Secret(kKey),
        .wire = {.model = "m"},
        .timeout = timeout_,
        .retry = {.tries = 3, .base = milliseconds(2), .cap = milliseconds(4)},
        .random = [] { return 0.5; }};
    HttpProvider provider(loop, client, wire_(), std::move(options));
    CompletionResult result;
    CompletionRequest request{.messages = {{.text = "hi"}}};
    request.deadline = deadline_;
    sbx::async::test::run_on(loop, into(provider, std::move(request), &cancellation_, result));
    return result;
  }

  static Task<void> into(Provider& provider, CompletionRequest request,
                         const Cancellation* cancellation, CompletionResult& result) {
    result = co_await provider.complete(std::move(request), cancellation);
  }

  Completion completion(const ScriptedServer::Script& script) {
    const CompletionResult result = ask(script);
    if (const auto* error = std::get_if<ProviderError>(&result)) {
      ADD_FAILURE() << error->detail;
      return {};
    }
    return std::get<Completion>(result);
  }

  ProviderError error(const ScriptedServer::Script& script) {
    const CompletionResult result = ask(script);
    if (std::holds_alternative<Completion>(result)) {
      ADD_FAILURE() << "a completion: " << std::get<Completion>(result).text;
      return {};
    }
    const auto& error = std::get<ProviderError>(result);
    EXPECT_EQ((error.detail + error.fix).find("0123456789abcdef"), std::string::npos);
    return error;
  }

  std::unique_ptr<Wire> (*wire_)() = openai_wire;
  milliseconds timeout_{30'000};
  sbx::async::Deadline deadline_ = sbx::async::kNoDeadline;
  Cancellation cancellation_;
  std::vector<Heard> heard_;
};

}  // namespace agentd::providers
