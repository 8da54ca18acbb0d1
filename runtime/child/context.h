// What the steps work on: the mapped plan and the descriptors they hand to each other. Stage:
// child.
//
// One Context lives in pid 1; between clone and exec the payload shares it (CLONE_VM), which is how
// the seccomp listener's number and "the payload failed" get back.
#pragma once

#include "runtime/child/syscall.h"
#include "runtime/plan/flat_plan.h"

namespace sbx::child {

using plan::Span;
using plan::Step;

struct Context {
  plan::FlatPlan* plan = nullptr;
  int root = -1;     // O_PATH, the new root's mount, until the pivot
  int proc = -1;     // a writable view of /proc, from before it became read-only until serve()
  int network = -1;  // /proc/self/net/snmp, from serve() on
  int locks = -1;    // /proc/locks, likewise
  Word payload_pid = 0;
  // Written by the payload, in pid 1's memory: the listener in the shared descriptor table, and
  // what failed once the payload had no descriptor left to say it through.
  volatile int listener = -1;
  volatile int late_error = 0;
  volatile Step late_step = Step::kExec;

  [[nodiscard]] const char* text(Span span) const {
    return reinterpret_cast<const char*>(plan) + span.offset;
  }
};

// A step returns 0 or -errno. In the order of plan/steps.h.
using StepFunction = Word (*)(Context&);
struct StepEntry {
  Step step;
  StepFunction run;
};

// Walks a list: skips what the plan says, reports a failure, and returns false when it must end.
[[nodiscard]] bool walk(Context& context, const StepEntry* steps, std::size_t count);

// What is run for an entry of a list: the entry's own function (chosen_step.cc). The sbx-init of
// test builds has another file in its place, which can make a step fail or leave something out.
[[nodiscard]] StepFunction chosen_step(const Context& context, const StepEntry& entry);

// One record to the supervisor. Never blocks: the pipe is non-blocking and larger than all the
// records a run can send to a supervisor that reads none. False when it was not taken.
bool report(const plan::Record& record);

// init_steps.cc
Word new_session(Context&);
Word die_with_parent(Context&);
Word not_dumpable(Context&);
Word check_lifeline(Context&);
Word join_net_namespace(Context&);
Word set_hostname(Context&);
Word new_time_namespace(Context&);
Word block_signals(Context&);
Word start_payload(Context&);
Word drop_init(Context&);
// root_steps.cc, mount_steps.cc
Word make_mounts_private(Context&);
Word attach_rootfs(Context&);
Word bind_host_files(Context&);
Word mount_tmpfs(Context&);
Word make_devices(Context&);
Word mount_proc(Context&);
Word pivot(Context&);
Word make_proc_read_only(Context&);
Word mask_proc(Context&);
// fill.cc
Word fill(Context&);
Word make_inputs_read_only(Context&);
// payload_steps.cc
Word join_cpu_cgroups(Context&);
Word join_payload_cgroups(Context&);
[[noreturn]] int run_payload(void* context);  // clone_on_stack's entry
// Writes to a file of the writable view of /proc; -EOPNOTSUPP where something else lies there.
Word write_proc(const Context& context, const char* path, const char* bytes, std::size_t size);
// landlock.cc
Word restrict_writes(Context&);
// loop.cc
[[noreturn]] void serve(Context& context);

}  // namespace sbx::child
