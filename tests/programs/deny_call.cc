// deny_call NUMBER ERRNO COMMAND…: runs the command in a world where that system call fails with
// that errno, as on a kernel or in a container that does not have it. Root alone can, since nothing
// else of the command's world is to change (no_new_privs).
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const auto number = static_cast<unsigned>(std::atoi(argv[1]));
  const auto error = static_cast<unsigned>(std::atoi(argv[2]));
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{sizeof program / sizeof *program, program};
  // By prctl: seccomp(2) itself may be the call.
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::perror("deny_call: prctl");
    return 126;
  }
  (void)::execv(argv[3], argv + 3);
  std::perror(argv[3]);
  return 127;
}
