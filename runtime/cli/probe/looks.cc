// Acts that look at the process itself: the value says what was seen.
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/cli/probe/acts.h"

namespace sbx::probe {
namespace {

// The first bytes of a file, newlines as '|'.
void read_into(const char* path, Answer& answer) {
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return note(answer, fd);
  const ssize_t got = ::read(fd, answer.value, sizeof answer.value - 1);
  if (got < 0) note(answer, got);
  for (char* at = answer.value; *at != '\0'; ++at) {
    if (*at == '\n') *at = '|';
  }
}

void look_uid_map(const char*, Answer& answer) {
  read_into("/proc/self/uid_map", answer);
}

// "/" when each line of /proc/self/cgroup ends in ":/", else the first that does not.
void look_cgroup(const char*, Answer& answer) {
  Answer all;
  read_into("/proc/self/cgroup", all);
  answer.error = all.error;
  for (char* line = std::strtok(all.value, "|"); line != nullptr;
       line = std::strtok(nullptr, "|")) {
    const std::size_t length = std::strlen(line);
    if (length >= 2 && std::strcmp(line + length - 2, ":/") == 0) continue;
    (void)std::snprintf(answer.value, sizeof answer.value, "%s", line);
    return;
  }
  (void)std::snprintf(answer.value, sizeof answer.value, "/");
}

// "0" when the effective, permitted, inheritable, ambient and bounding sets are all empty.
void look_capabilities(const char*, Answer& answer) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return note(answer, -1);
  unsigned held = 0;
  for (const auto& word : data) held |= word.effective | word.permitted | word.inheritable;
  bool bounded_or_ambient = false;
  for (int capability = 0; capability < 64; ++capability) {
    if (::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1) bounded_or_ambient = true;
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, capability, 0, 0) == 1) {
      bounded_or_ambient = true;
    }
  }
  (void)std::snprintf(answer.value, sizeof answer.value, "%s",
                      held != 0 || bounded_or_ambient ? "some" : "0");
}

void look_no_new_privs(const char*, Answer& answer) {
  (void)std::snprintf(answer.value, sizeof answer.value, "%d",
                      ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}

void look_seccomp(const char*, Answer& answer) {
  (void)std::snprintf(answer.value, sizeof answer.value, "%d", ::prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
}

// How many descriptors above 2 are open.
void look_descriptors(const char*, Answer& answer) {
  int open_count = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    if (::fcntl(fd, F_GETFD) >= 0) ++open_count;
  }
  (void)std::snprintf(answer.value, sizeof answer.value, "%d", open_count);
}

void look_core_limit(const char*, Answer& answer) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_CORE, &limit) != 0) return note(answer, -1);
  (void)std::snprintf(answer.value, sizeof answer.value, "%lld/%lld",
                      static_cast<long long>(limit.rlim_cur),
                      static_cast<long long>(limit.rlim_max));
}

}  // namespace

const Act kLooks[] = {
    {"uid_map", look_uid_map},
    {"cgroup", look_cgroup},
    {"capabilities", look_capabilities},
    {"no_new_privs", look_no_new_privs},
    {"seccomp", look_seccomp},
    {"descriptors", look_descriptors},
    {"core_limit_value", look_core_limit},
    {nullptr, nullptr},
};

}  // namespace sbx::probe
