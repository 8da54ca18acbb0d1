// Provider: who writes the programs. The interface, and the values that go through it.
//
// One logical call is one Completion or one ProviderError; retries are inside. Implementations:
// http_provider.h (OpenAI-compatible and Anthropic servers), replay.h (recordings), recorder.h
// (another provider, written down). Nothing here throws, and nothing quotes a key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/async/cancellation.h"
#include "http/async/task.h"
#include "http/async/wait.h"

namespace agentd::providers {

enum class Role : std::uint8_t { kSystem, kUser, kAssistant, kTool };

// A tool that the model wants to use. `arguments` is the text that it wrote: JSON, or not.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;
};

struct Message {
  Role role = Role::kUser;
  std::string text{};
  std::vector<ToolCall> tool_calls{};  // kAssistant
  std::string tool_call_id{};          // kTool: the call that `text` answers
  bool is_error = false;               // kTool
};

struct Tool {
  std::string name;
  std::string description;
  std::string schema_json;  // JSON Schema of its arguments
};

// What a recording is found by; live providers do not look at it.
struct RecordingKey {
  std::string request_sha256{};
  std::string label{};   // may be empty
  int call = 1;          // which reply to that request
  std::string prompt{};  // "codegen.v1.python": told, not part of the key
};

struct CompletionRequest {
  std::vector<Message> messages{};
  std::vector<Tool> tools{};
  int max_tokens = 2048;
  RecordingKey key{};
  sbx::async::Deadline deadline = sbx::async::kNoDeadline;  // of all tries together
};

struct Usage {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
};

enum class Finish : std::uint8_t {
  kStop,
  kLength,  // the provider's or our own bound on the reply
  kToolCalls,
  kFiltered,  // the provider withheld it
  kCut,       // the connection ended before the reply did
  kOther,     // `finish_reason` is one that we do not know, or there was none
};

struct Completion {
  std::string text{};
  std::vector<ToolCall> tool_calls{};
  Finish finish = Finish::kOther;
  std::string finish_reason{};   // as the provider said it
  std::optional<Usage> usage{};  // none: the provider did not say
  int tries = 1;
  bool calls_dropped = false;  // it held more tool calls than kMaxToolCalls (wire.h)
};

enum class Trouble : std::uint8_t {
  kUnreachable,   // no connection, or 5xx, after all tries
  kOverloaded,    // 429 or 529 after all tries, or told to wait longer than is left
  kKeyRefused,    // 401, 403
  kModelUnknown,  // 404
  kTooLarge,      // 413
  kRefused,       // any other answer that a retry would not change
  kMalformed,     // an answer that is no completion
  kTimeout,
  kNoRecording,
  kCancelled,
};
[[nodiscard]] std::string_view to_string(Trouble trouble);  // "key_refused"

struct ProviderError {
  Trouble trouble = Trouble::kUnreachable;
  std::string detail{};
  std::string fix{};
  int tries = 1;
  // True: part of a reply had arrived, or the request was processed for all we know. What was
  // reserved for it counts as spent.
  bool may_have_cost = false;
};

using CompletionResult = std::variant<Completion, ProviderError>;

// Dollars for a million tokens, by the provider's list.
struct Prices {
  double input = 0;
  double output = 0;
};

struct ProviderInfo {
  std::string kind{};  // "openai", "anthropic", "replay"
  std::string model{};
  std::string origin{};  // base URL, or where the recordings are
  Prices prices{};
  bool replayed = false;  // no model was asked: every result says so
};

// Whether a provider can be reached with its key.
struct Reach {
  bool asked = true;  // false: there is nobody to ask
  bool answers = false;
  std::string detail{};  // what it said, or why it does not answer
  std::string fix{};
};

class Provider {
 public:
  virtual ~Provider() = default;
  [[nodiscard]] virtual const ProviderInfo& info() const = 0;
  // `cancellation` outlives the call. After it was raised the call ends soon, with kCancelled.
  [[nodiscard]] virtual sbx::async::Task<CompletionResult> complete(
      CompletionRequest request, const sbx::async::Cancellation* cancellation) = 0;
  // Asks something that costs nothing; ends within some seconds.
  [[nodiscard]] virtual sbx::async::Task<Reach> reach(
      const sbx::async::Cancellation* /*cancellation*/) {
    co_return Reach{.asked = false};
  }
};

}  // namespace agentd::providers
