// Acts that ask the kernel for what only the host's root may have, with arguments that are right:
// what refuses them is the question for the right, not a check that stands before it.
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

// `argument`: "now" sets the clock to what it says, which inside can never succeed: not even a
// sandbox without any other layer has the right over the host's clock. Otherwise to a bad pointer.
void act_clock_settime(const char* argument, Answer& answer) {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);
  note(answer,
       ::syscall(SYS_clock_settime, CLOCK_REALTIME, asks_for(argument, "now") ? &now : nullptr));
}

void act_settimeofday(const char* argument, Answer& answer) {
  timeval now{};
  (void)::gettimeofday(&now, nullptr);
  void* const bad = reinterpret_cast<void*>(1);
  note(answer, ::syscall(SYS_settimeofday, asks_for(argument, "now") ? &now : bad, nullptr));
}

// The frequency that the clock has.
void act_adjtimex(const char* argument, Answer& answer) {
  timex state{};
  (void)::syscall(SYS_adjtimex, &state);
  state.modes = ADJ_FREQUENCY;
  note(answer, ::syscall(SYS_adjtimex, asks_for(argument, "now") ? &state : nullptr));
}

void act_clock_adjtime(const char* argument, Answer& answer) {
  timex state{};
  (void)::syscall(SYS_clock_adjtime, CLOCK_REALTIME, &state);
  state.modes = ADJ_FREQUENCY;
  note(answer,
       ::syscall(SYS_clock_adjtime, CLOCK_REALTIME, asks_for(argument, "now") ? &state : nullptr));
}

// A program of two instructions that is attached to nothing and goes with its descriptor.
void act_bpf(const char*, Answer& answer) {
  bpf_insn code[2] = {};
  code[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  code[1].code = BPF_JMP | BPF_EXIT;
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  attributes.insns = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(code));
  attributes.insn_cnt = 2;
  attributes.license = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>("GPL"));
  note(answer, ::syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof attributes));
}

// A handle of no file, on the root's file system.
void act_open_by_handle(const char*, Answer& answer) {
  const int root = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct {
    std::uint32_t bytes = 8;
    std::int32_t type = 1;
    unsigned char handle[8] = {};
  } nowhere;
  note(answer, ::syscall(SYS_open_by_handle_at, root, &nowhere, O_RDONLY));
}

// Of pid 1 ("init") or of nobody. The address is that of sbx-init's own code; one that is not
// mapped or not writable is looked at after the rights.
void transfer(long call, const char* argument, Answer& answer) {
  static char byte = 0;
  const iovec own{&byte, 1};
  const iovec theirs{reinterpret_cast<void*>(0x400000), 1};
  const long target = asks_for(argument, "init") ? 1 : kNoSuchPid;
  note(answer, ::syscall(call, target, &own, 1, &theirs, 1, 0));
  if (answer.error == EFAULT) answer.error = 0;
}

void act_process_vm_readv(const char* argument, Answer& answer) {
  transfer(SYS_process_vm_readv, argument, answer);
}

void act_process_vm_writev(const char* argument, Answer& answer) {
  transfer(SYS_process_vm_writev, argument, answer);
}

}  // namespace

const Act kKernel[] = {
    {"clock_settime", act_clock_settime},
    {"settimeofday", act_settimeofday},
    {"adjtimex", act_adjtimex},
    {"clock_adjtime", act_clock_adjtime},
    {"bpf", act_bpf},
    {"open_by_handle_at", act_open_by_handle},
    {"process_vm_readv", act_process_vm_readv},
    {"process_vm_writev", act_process_vm_writev},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
