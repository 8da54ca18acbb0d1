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
#include <sys/types.h>

#include <chrono>
#include <cstdint>
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
#include "runtime/policy/layers.h"
#include "runtime/policy/policy.h"
#include "runtime/workspace/workspace.h"

namespace sbx {

// For a service that root starts and that does not stay root. What only root can do is done for the
// user `uid`: the cgroup subtree becomes his, the outer user namespace maps his id and 65535 of the
// range. Once the spawner is forked, `become` is called.
struct Handover {
  std::uint32_t uid = 0, gid = 0;
  // SECURITY: must leave this process as that user, without capabilities, or fail.
  std::function<Result<void>()> become;
};

struct SandboxOptions {
  policy::Policy policy;  // of runs that are started without one of their own
  policy::RuntimeConfig config;
  std::string rootfs = "default";  // an image's name, or "host" for the host's /usr
  // Nothing will be started after the first run, which has the network of `policy`: it may end
  // sooner.
  bool single_run = false;
  std::optional<Handover> handover;  // root only
  // The policy's limits that the caller asked for, by name: refused above a ceiling of the config
  // or the host. All others are lowered to it, and the outcome's limits say so.
  std::vector<std::string> asked_limits;
};

// How one run talks to its caller. All callbacks come from the thread that steps the run.
struct RunHooks {
  std::function<void(std::string_view)> on_stdout;  // live, up to the head cap
  std::function<void(std::string_view)> on_stderr;
  int stdin_fd = -1;   // borrowed, pumped to EOF; -1: Request::stdin_text, else /dev/null
  int cancel_fd = -1;  // borrowed; readable means: cancel
  collect::CollectMode collect = collect::CollectMode::kContent;
  collect::FileSink sink;  // with kContent; unset: content_sink()
  // A session's: /work is filled from it and saved to it. Borrowed, and outlives the run. Null:
  // /work starts empty and is dropped.
  workspace::Workspace* workspace = nullptr;
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

// A session's index in the id range, held as long as this lives.
struct SessionId {
  std::uint32_t index = 0;
  UniqueFd lock;
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
  // Drives a run to its end. Blocking.
  [[nodiscard]] static Result<collect::Outcome> finish(Run& run);
  // A run that is driven by the caller's loop.
  [[nodiscard]] Result<std::unique_ptr<Run>> start(const plan::Request& request,
                                                   RunHooks hooks = {});
  // With a policy of its own, held to the same ceilings, on the image as it is now. For services:
  // leftovers are not looked for here (sweep()).
  [[nodiscard]] Result<std::unique_ptr<Run>> start(const policy::Policy& policy,
                                                   plan::Request request, RunHooks hooks);
  // What start() would refuse as kInvalid or kHost is refused here; else the layers as planned.
  [[nodiscard]] Result<std::vector<policy::LayerReport>> check(const policy::Policy& policy,
                                                               const plan::Request& request) const;

  // Removes what dead sbx programs of this user left. Blocks, up to seconds for each group that is
  // still busy; may run on another thread than the runs.
  struct Swept {
    int groups = 0;
    std::vector<std::string> runs;  // ids of the records that were removed
  };
  [[nodiscard]] Result<Swept> sweep();

  // For a session: `wanted` when it is free, else another index of the upper half of the id range.
  // 0 where there is one id. kHost when there is none left. From any thread.
  [[nodiscard]] Result<SessionId> lease_session_id(std::uint32_t wanted) const;

  // A child of this process. Without it no run can be started any more.
  [[nodiscard]] pid_t spawner_pid() const;
  // Becomes readable once the spawner takes what it is sent: one that was stopped is silent. EAGAIN
  // when it has not for long.
  [[nodiscard]] Result<UniqueFd> ask_spawner();
  // What came of asking: while it is silent, no run that ends waits for its word.
  void note_spawner_silence(bool silent);
  // Whether the image that runs start from can be opened: as start() says it.
  [[nodiscard]] Result<void> check_image() const;
  // kHost, with the fix, where the directory of the runs' records was removed meanwhile: no run can
  // start any more.
  [[nodiscard]] Result<void> check_records() const;
  // The plan in words, without a process (sbx-run explain). Fails as open() and start() would.
  [[nodiscard]] static Result<std::string> explain(SandboxOptions options,
                                                   const plan::Request& request);

 private:
  struct State;
  explicit Sandbox(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sbx
