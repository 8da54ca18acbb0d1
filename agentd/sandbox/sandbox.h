// Sandbox: where programs run. The interface, and the values that go through it.
//
// The one implementation is sbxd's client (sbxd_client.h); another machine's would be a second.
// What a run result says are the runtime's facts, but for stdout, stderr, file names, file contents
// and notes of source "program", which are a hostile program's words.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agentd/sandbox/info.h"
#include "http/async/cancellation.h"
#include "http/async/task.h"
#include "http/async/wait.h"

namespace agentd::sandbox {

struct InputFile {
  std::string name;
  std::string content_base64;  // is base64: goes into JSON as it is
};

struct RunRequest {
  std::string language{};
  std::string code{};
  std::vector<InputFile> files{};
  std::chrono::milliseconds wall{30'000};
  std::uint64_t stdout_bytes = 0;  // to be kept, half head, half tail; 0: as the sandbox does
  sbx::async::Deadline deadline = sbx::async::kNoDeadline;  // of waiting and running together
};

struct OutputFile {
  std::string path{};  // below /output
  std::uint64_t size = 0;
  std::string sha256{};
  std::string media_type{};
  std::string content{};
};

struct Refused {
  std::string path;
  std::string reason;
};

struct Note {
  std::string code;
  std::string text;
  std::string source;  // "kernel": of facts; "program": of what the program said
};

// The contract's result, as far as agentd uses it.
struct RunResult {
  std::string id{};
  std::string status{};
  int exit_code = 0;
  std::optional<int> signal{};
  double duration_seconds = 0;
  std::string out{};
  std::uint64_t out_dropped = 0;
  std::size_t out_cut = 0;  // where in `out` they are missing, if any were dropped
  std::string err{};
  std::uint64_t err_dropped = 0;
  std::size_t err_cut = 0;
  std::vector<OutputFile> files{};
  std::vector<Refused> refused{};
  std::vector<std::string> limits_hit{};
  std::vector<Note> notes{};

  [[nodiscard]] bool ok() const { return status == "ok"; }
};

// The sandbox could not run it, or not say how it went.
struct SandboxFailure {
  enum class Kind : std::uint8_t {
    kUnreachable,  // nobody answers on the socket
    kBusy,         // refused for now, again and again
    kRefused,      // the request is one that it does not take
    kFailed,       // it tried and its own machinery failed
    kLost,         // no answer that can be read: what happened is not known
    kCancelled,
    kSilent,  // it does not answer whether it is well
  };
  Kind kind = Kind::kFailed;
  std::string detail{};
  std::string fix{};
  bool not_sent = false;  // the run cannot have begun
};
[[nodiscard]] std::string_view to_string(SandboxFailure::Kind kind);  // "unreachable"
// kSilent, of one that answered last at that time, if ever.
[[nodiscard]] SandboxFailure silence(
    std::optional<std::chrono::steady_clock::time_point> answered_at);

using RunOutcome = std::variant<RunResult, SandboxFailure>;
// Long, and for all requests the same: its owners are whoever remembers it and who was told it.
using SharedInfo = std::shared_ptr<const SandboxInfo>;
using InfoOutcome = std::variant<SharedInfo, SandboxFailure>;

class Sandbox {
 public:
  virtual ~Sandbox() = default;
  // `cancellation` outlives the call; raised, it kills the run.
  [[nodiscard]] virtual sbx::async::Task<RunOutcome> run(
      RunRequest request, const sbx::async::Cancellation* cancellation) = 0;
  // May be some time old; never from another sandbox than the one that runs.
  [[nodiscard]] virtual sbx::async::Task<InfoOutcome> info(
      const sbx::async::Cancellation* cancellation) = 0;
};

}  // namespace agentd::sandbox
