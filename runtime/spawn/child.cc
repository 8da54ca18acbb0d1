#include "runtime/spawn/child.h"

#include <sched.h>

#include "runtime/base/sys.h"

namespace sbx::spawn {
namespace {

// The other ends, which the spawner gets; closed here once it has them.
struct TheirEnds {
  UniqueFd plan, in, out, err, report, lifeline, fill;
};

// Ours is non-blocking, theirs is as programs expect it.
Result<void> make_pipe(UniqueFd& read_end, UniqueFd& write_end, const UniqueFd& ours) {
  SBX_ASSIGN(auto ends, sys::pipe());
  read_end = std::move(ends.first);
  write_end = std::move(ends.second);
  return sys::set_nonblocking(ours.get(), true);
}

// Programs open /dev/stdin and the like, which opens the pipe's inode anew: it is ours, and the
// payload is somebody else. Nobody but the run can reach a pipe, so the mode opens it to the run
// alone.
Result<void> let_payload_open(const UniqueFd& theirs, mode_t mode) {
  if (::fchmod(theirs.get(), mode) != 0) return sys_error("fchmod", "a pipe of the payload");
  return {};
}

Result<void> make_stdin(Child& child, TheirEnds& theirs, bool with_stdin) {
  if (!with_stdin) {
    SBX_ASSIGN(theirs.in, sys::open("/dev/null", O_RDONLY));
    return {};
  }
  SBX_TRY(make_pipe(theirs.in, child.in, child.in));
  return let_payload_open(theirs.in, 0444);
}

Result<void> make_pipes(Child& child, TheirEnds& theirs, bool with_stdin, bool with_fill) {
  SBX_TRY(make_pipe(child.out, theirs.out, child.out));
  SBX_TRY(make_pipe(child.err, theirs.err, child.err));
  SBX_TRY(make_pipe(child.report, theirs.report, child.report));
  SBX_TRY(sys::set_nonblocking(theirs.report.get(), true));  // init never blocks on it
  SBX_TRY(make_pipe(theirs.lifeline, child.lifeline, child.lifeline));
  if (with_fill) {
    SBX_TRY(make_pipe(theirs.fill, child.fill, child.fill));
  }
  SBX_TRY(let_payload_open(theirs.out, 0222));
  SBX_TRY(let_payload_open(theirs.err, 0222));
  return make_stdin(child, theirs, with_stdin);
}

std::uint64_t absent_namespaces(const plan::Plan& plan) {
  std::uint64_t absent = 0;
  for (const policy::LayerReport& layer : plan.layers) {
    if (layer.state != policy::LayerState::kMissing) continue;
    if (layer.name == "ipc_namespace") absent |= CLONE_NEWIPC;
    if (layer.name == "uts_namespace") absent |= CLONE_NEWUTS;
    if (layer.name == "net_namespace") absent |= CLONE_NEWNET;
  }
  return absent;
}

}  // namespace

Result<Child> spawn_child(Spawner& spawner, const plan::Plan& plan, plan::LaunchFacts facts,
                          cgroup::CgroupRun* cgroup, bool with_stdin) {
  Child child;
  TheirEnds theirs;
  SBX_TRY(make_pipes(child, theirs, with_stdin, !plan.fill.empty() || plan.workspace));
  LaunchRequest request;
  if (cgroup != nullptr) {
    request.init_leaf = cgroup->init_leaf_fd();
    request.payload_leaf = cgroup->payload_leaf_fd();
    request.join = cgroup->join_fds();
    facts.payload_leaf = request.payload_leaf >= 0;
    facts.join_count = static_cast<std::uint32_t>(request.join.size());
    facts.init_join_count = static_cast<std::uint32_t>(cgroup->init_join_count());
  }
  SBX_ASSIGN(const auto block, plan::flatten(plan, facts));
  SBX_ASSIGN(theirs.plan, sys::sealed_memfd("sbx-plan", block, false));
  request.plan = theirs.plan.get();
  request.stdin_fd = theirs.in.get();
  request.stdout_fd = theirs.out.get();
  request.stderr_fd = theirs.err.get();
  request.report = theirs.report.get();
  request.lifeline = theirs.lifeline.get();
  request.fill = theirs.fill.get();
  request.without_namespaces = absent_namespaces(plan);
  request.net_namespace = plan.net_namespace && (request.without_namespaces & CLONE_NEWNET) == 0;
  request.output = plan::passed_tmpfs(plan, facts, plan::kSlotOutput);
  request.work = plan::passed_tmpfs(plan, facts, plan::kSlotWork);
  child.cgroup = cgroup;
  child.spawner = spawner.pid();
  child.spawner_silent = &spawner.known_silent();
  child.launched = std::chrono::steady_clock::now();
  SBX_ASSIGN(child.control, spawner.launch(request));
  SBX_TRY(sys::set_nonblocking(child.control.get(), true));
  return child;
}

}  // namespace sbx::spawn
