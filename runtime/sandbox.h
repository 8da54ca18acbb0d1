// The reader's entry: run code that nobody has read, get a result.
//
//   auto policy = sbx::policy::load_policy("default");
//   auto sandbox = sbx::Sandbox::open({.policy = *policy});
//   sbx::plan::Request request{.language = "python", .code = "print(6 * 7)"};
//   auto outcome = sandbox->run(request);
//
// `open` forks the spawner, so call it early, from a single-threaded process, and from a thread
// that lives as long as the runs (PR_SET_PDEATHSIG follows the thread). A Sandbox and its Runs
// belong to one thread. Installed as <sbx/sandbox.h>, which carries all the value types.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/collect/collection.h"
#include "runtime/collect/outcome.h"
#include "runtime/plan/request.h"
#include "runtime/policy/config.h"
#include "runtime/policy/policy.h"

namespace sbx {

struct SandboxOptions {
  policy::Policy policy;
  policy::RuntimeConfig config;
  std::string rootfs = "default";  // an image's name, or "host" for the host's /usr
  bool single_run = false;         // nothing will be started after the first run: it may end sooner
};

// How one run talks to its caller. All callbacks come from the thread that steps the run.
struct RunHooks {
  std::function<void(std::string_view)> on_stdout;  // live, up to the head cap
  std::function<void(std::string_view)> on_stderr;
  int stdin_fd = -1;   // borrowed, pumped to EOF; -1: Request::stdin_text, else /dev/null
  int cancel_fd = -1;  // borrowed; readable means: cancel
  collect::CollectMode collect = collect::CollectMode::kContent;
  collect::FileSink sink;  // with kContent; unset: content_sink()
};

// One run in flight: a non-blocking object, driven by whoever owns the event loop.
class Run {
 public:
  virtual ~Run() = default;  // kills and cleans up when not done
  // What to wait for. Valid until the next step().
  [[nodiscard]] virtual const std::vector<pollfd>& interest() = 0;
  [[nodiscard]] virtual std::chrono::steady_clock::time_point next_deadline() const = 0;
  // Does what can be done without blocking. `ready` is interest() as poll filled it.
  virtual void step(const std::vector<pollfd>& ready) = 0;
  [[nodiscard]] virtual bool done() const = 0;
  virtual void cancel() = 0;
  // Once, after done().
  [[nodiscard]] virtual collect::Outcome take_outcome() = 0;
  [[nodiscard]] virtual const std::string& id() const = 0;
};

class Sandbox {
 public:
  // kHost when the host lacks what the policy requires, with the fix; kInvalid for a bad option.
  [[nodiscard]] static Result<Sandbox> open(SandboxOptions options);
  Sandbox(Sandbox&&) noexcept;
  Sandbox& operator=(Sandbox&&) noexcept;
  ~Sandbox();

  // Blocking. An error means that nothing was run: kInvalid (the request), kHost (the machine).
  // Once a run began, its Outcome says all, machinery failures included (status sandbox_error).
  [[nodiscard]] Result<collect::Outcome> run(const plan::Request& request, RunHooks hooks = {});
  // The same, driven by the caller's loop.
  [[nodiscard]] Result<std::unique_ptr<Run>> start(const plan::Request& request,
                                                   RunHooks hooks = {});
  // The plan in words, without a process (sbx-run explain). Fails as open() and start() would.
  [[nodiscard]] static Result<std::string> explain(SandboxOptions options,
                                                   const plan::Request& request);

 private:
  struct State;
  explicit Sandbox(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sbx
