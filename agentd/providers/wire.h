// Wire: the dialect of a model server, as pure functions and accumulators. No I/O.
//
// http_provider.cc sends what a Wire writes and feeds what arrives to its Accumulator. Servers are
// not trusted: every field is looked at for its type, and sizes are bounded.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agentd/providers/provider.h"
#include "agentd/providers/sse.h"
#include "agentd/redact/secret.h"

namespace agentd::providers {

inline constexpr std::size_t kMaxReplyBytes = 1U << 20;
inline constexpr std::size_t kMaxToolCalls = 16;  // of one reply; more are left out of it
// More than any reply has on average, indentation included.
inline constexpr std::size_t kMaxBytesPerToken = 16;

struct WireSettings {
  std::string model{};
  double temperature = 0;
  bool stream = true;
  std::string token_limit_field = "max_tokens";  // OpenAI: newer models want another name
};

// Collects one reply. An error that the server reports inside a 200 answer ends it.
class Accumulator {
 public:
  virtual ~Accumulator() = default;
  // One event of a stream. False: nothing more is wanted, see error().
  [[nodiscard]] virtual bool event(const SseEvent& event) = 0;
  // The body of a plain answer.
  virtual void whole(std::string_view body) = 0;

  // Something of a reply has arrived.
  [[nodiscard]] bool begun() const { return begun_; }
  // The server said that the reply is complete.
  [[nodiscard]] bool complete() const { return complete_; }
  // What the server says went wrong, or that it does not speak this dialect.
  [[nodiscard]] const std::optional<std::string>& error() const { return error_; }
  // It is the latter.
  [[nodiscard]] bool is_foreign() const { return is_foreign_; }
  // Called before anything arrives: a reply longer than so many tokens can be is cut there.
  void limit_tokens(int most) { room_ = static_cast<std::size_t>(most) * kMaxBytesPerToken; }
  // It was: the server goes on although it was told not to, and nothing more is wanted.
  [[nodiscard]] bool overrun() const { return bytes_ > room_; }
  // The reply so far. Its finish is kLength when it overran, and kCut when the server never said
  // that it was complete; both are without usage.
  [[nodiscard]] Completion take();

 protected:
  void add_text(std::string_view text);
  // The call that the server means by `index`, begun where it is new. Null for one too many.
  [[nodiscard]] ToolCall* tool_call(std::size_t index);
  // `call` may be null: what is left out counts for the reply's size all the same.
  void add_arguments(ToolCall* call, std::string_view text);
  void fail(std::string detail) { error_ = std::move(detail); }
  void fail_foreign(std::string detail) {
    fail(std::move(detail));
    is_foreign_ = true;
  }
  // Where `text` should have been an object in JSON and is none.
  void fail_not_json(std::string_view text);

  Completion completion_;
  bool begun_ = false;
  bool complete_ = false;

 private:
  void count(std::size_t bytes);

  std::vector<std::size_t> indexes_;  // of completion_.tool_calls
  std::size_t bytes_ = 0;
  std::size_t room_ = kMaxReplyBytes;
  std::optional<std::string> error_;
  bool is_foreign_ = false;
};

class Wire {
 public:
  virtual ~Wire() = default;
  [[nodiscard]] virtual std::string path() const = 0;  // below the base URL
  [[nodiscard]] virtual std::vector<std::pair<std::string, std::string>> headers(
      const redact::Secret& key) const = 0;
  [[nodiscard]] virtual std::string body(const CompletionRequest& request,
                                         const WireSettings& settings) const = 0;
  [[nodiscard]] virtual std::unique_ptr<Accumulator> accumulator() const = 0;
};

[[nodiscard]] std::unique_ptr<Wire> openai_wire();
[[nodiscard]] std::unique_ptr<Wire> anthropic_wire();

// What an error body says: `error.message`, `error`, `message` or `detail`, whichever is a text;
// cut to a few hundred bytes. Empty when it says nothing.
[[nodiscard]] std::string error_message(std::string_view body);

}  // namespace agentd::providers
