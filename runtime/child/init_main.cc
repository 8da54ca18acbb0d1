// sbx-init: pid 1 of a sandbox. A tiny static program without libc, exec'ed by the spawner from a
// sealed memfd, with its plan on descriptor 3. Stage: child.
#include <asm-generic/errno.h>

#include "runtime/child/context.h"
#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

// The order is the point; docs/child-setup.md gives each step's reason.
constexpr StepEntry kSteps[] = {
    {Step::kJoinCpuCgroup, join_cpu_cgroups},
    {Step::kSession, new_session},
    {Step::kParentDeath, die_with_parent},
    {Step::kNotDumpable, not_dumpable},
    {Step::kLifeline, check_lifeline},
    {Step::kNetNamespace, join_net_namespace},
    {Step::kHostname, set_hostname},
    {Step::kPrivateMounts, make_mounts_private},
    {Step::kRootfs, attach_rootfs},
    {Step::kHostFiles, bind_host_files},
    {Step::kTmpfs, mount_tmpfs},
    {Step::kDevices, make_devices},
    {Step::kProc, mount_proc},
    {Step::kPivot, pivot},
    {Step::kReadOnlyProc, make_proc_read_only},
    {Step::kMasks, mask_proc},
    {Step::kFill, fill},
    {Step::kReadOnlyInputs, make_inputs_read_only},
    {Step::kTimeNamespace, new_time_namespace},
    {Step::kSignals, block_signals},
    {Step::kStartPayload, start_payload},
    {Step::kDropInit, drop_init},
};

constexpr int kProtReadWrite = 3;
constexpr int kMapPrivate = 2;

// The mapping is private: turning offsets into pointers below changes our copy alone.
Word map_plan(Context& context) {
  std::uint32_t head[2] = {};  // magic, total_size
  const Word got = sys(__NR_pread64, plan::kSlotPlan, head, sizeof head, 0);
  if (got != sizeof head || head[0] != plan::kPlanMagic) return -EPROTO;
  const Word address =
      sys(__NR_mmap, nullptr, head[1], kProtReadWrite, kMapPrivate, plan::kSlotPlan, 0);
  if (address < 0 && address > -4096) return address;
  context.plan = reinterpret_cast<plan::FlatPlan*>(address);
  return 0;
}

void resolve_slots(Context& context, Span array, std::uint32_t count) {
  auto* slots =
      reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(context.plan) + array.offset);
  for (std::uint32_t i = 0; i < count; ++i) {
    slots[i] += static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(context.plan));
  }
}

[[noreturn]] void init_main() {
  static Context context;
  if (const Word mapped = map_plan(context); mapped < 0) {
    plan::Record record;
    record.kind = plan::RecordKind::kStepFailed;
    record.step = Step::kReadPlan;
    record.error = static_cast<std::int32_t>(-mapped);
    report(record);
    exit_now(1);
  }
  resolve_slots(context, context.plan->argv, context.plan->argv_count);
  resolve_slots(context, context.plan->envp, context.plan->envp_count);
  if (!walk(context, kSteps, sizeof kSteps / sizeof kSteps[0])) exit_now(1);
  serve(context);
}

}  // namespace
}  // namespace sbx::child

// What the compiler may call on its own; sbx-init has no libc to get it from.
extern "C" {
void* memset(void* to, int byte, std::size_t size) {
  auto* at = static_cast<volatile unsigned char*>(to);
  while (size-- > 0) *at++ = static_cast<unsigned char>(byte);
  return to;
}
void* memcpy(void* to, const void* from, std::size_t size) {
  auto* target = static_cast<volatile unsigned char*>(to);
  const auto* source = static_cast<const unsigned char*>(from);
  while (size-- > 0) *target++ = *source++;
  return to;
}
[[noreturn]] void sbx_init_start() {
  sbx::child::init_main();
}
}

// The kernel enters with the stack pointer at argc and no return address.
#if defined(__x86_64__)
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  xor %ebp, %ebp\n"
    "  and $-16, %rsp\n"
    "  call sbx_init_start\n"
    "  hlt\n");
#else
__asm__(
    ".globl _start\n"
    "_start:\n"
    "  mov x29, xzr\n"
    "  mov x30, xzr\n"
    "  b sbx_init_start\n");
#endif
