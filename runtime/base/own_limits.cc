#include "runtime/base/own_limits.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

namespace sbx {
namespace {

constexpr rlim_t kKiB = 1024;
constexpr rlim_t kUsualStack = 8192 * kKiB;
// What selftest's programs fill on purpose, inside and, as the control, under a higher limit.
constexpr rlim_t kSelftestMemory = 128 * kKiB * kKiB;
constexpr rlim_t kSelftestFile = 64 * kKiB * kKiB;

// The usual stacks of its threads among it.
constexpr rlim_t kDaemonData = 192 * kKiB * kKiB;
constexpr rlim_t kDaemonSpace = 256 * kKiB * kKiB;

struct Need {
  __rlimit_resource_t resource;
  const char* name;
  const char* option;  // of ulimit
  const char* unit;    // of the option
  rlim_t unit_bytes;
  rlim_t least;
  rlim_t selftest;
  rlim_t daemon;
};
// Seen to be enough for a run, with some room (tests/integration/own_limits_test.cc runs at each of
// them), and for a daemon to start and do one (tests/daemon/life_test.cc). Of memory it is what is
// needed whatever is asked for: who is given more has that told when it runs out.
constexpr std::array kNeeds = {
    Need{RLIMIT_NOFILE, "open files", "-n", "", 1, 96, 160, 96},
    Need{RLIMIT_STACK, "the stack", "-s", " KiB", kKiB, 256 * kKiB, 256 * kKiB, 256 * kKiB},
    Need{RLIMIT_FSIZE, "the size of a file", "-f", " KiB", kKiB, 4096 * kKiB, kSelftestFile,
         4096 * kKiB},
    Need{RLIMIT_DATA, "memory for data", "-d", " KiB", kKiB, 2048 * kKiB, kSelftestMemory,
         kDaemonData},
    Need{RLIMIT_AS, "the address space", "-v", " KiB", kKiB, 16384 * kKiB, kSelftestMemory,
         kDaemonSpace},
};

rlim_t least_of(const Need& need, OwnWork work) {
  switch (work) {
    case OwnWork::kSelftest:
      return need.selftest;
    case OwnWork::kDaemon:
      return need.daemon;
    case OwnWork::kRuns:
      break;
  }
  return need.least;
}

// As pthread_create(3) maps one.
bool has_room_for_stack() {
  pthread_attr_t attributes;
  std::size_t size = kUsualStack;
  if (::pthread_attr_init(&attributes) == 0) {
    (void)::pthread_attr_getstacksize(&attributes, &size);
    (void)::pthread_attr_destroy(&attributes);
  }
  void* const stack = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) return false;
  (void)::munmap(stack, size);
  return true;
}

}  // namespace

void raise_soft_limits() {
  for (const auto resource : {RLIMIT_CPU, RLIMIT_AS, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE,
                              RLIMIT_NPROC, RLIMIT_STACK}) {
    rlimit limit{};
    if (::getrlimit(resource, &limit) != 0) continue;
    const rlim_t wanted =
        resource == RLIMIT_STACK ? std::min(limit.rlim_max, kUsualStack) : limit.rlim_max;
    if (limit.rlim_cur >= wanted) continue;
    limit.rlim_cur = wanted;
    (void)::setrlimit(resource, &limit);  // what stays low is seen by check_own_limits, or told
  }
}

Result<void> check_own_limits(OwnWork work) {
  for (const Need& need : kNeeds) {
    rlimit limit{};
    const rlim_t needed = least_of(need, work);
    if (::getrlimit(need.resource, &limit) != 0 || limit.rlim_max >= needed) continue;
    const std::string least = std::to_string(needed / need.unit_bytes);
    return host_lacks("setrlimit", 0,
                      std::string("the hard limit on ") + need.name + " (ulimit -H " + need.option +
                          ") is " + std::to_string(limit.rlim_max / need.unit_bytes) + need.unit +
                          ", and at least " + least + need.unit + " are needed",
                      std::string("raise it where this is started from: ulimit ") + need.option +
                          " " + least + ", or the Limit… line of the unit");
  }
  return {};
}

void tell_out_of_memory(std::string_view program) {
  for (const std::string_view part :
       {program, std::string_view(": there is no memory left for it\n"), program,
        std::string_view(": fix: "), std::string_view(kMemoryFix), std::string_view("\n")}) {
    if (::write(STDERR_FILENO, part.data(), part.size()) < 0) return;  // nowhere left to say it
  }
}

std::string scarcity_fix(int sys_errno) {
  if (sys_errno == EAGAIN && !has_room_for_stack()) return kMemoryFix;
  if (sys_errno == EAGAIN) {
    return "end other processes, or allow more where this is started from: ulimit -u, or "
           "LimitNPROC= and TasksMax= of the unit (pids.max of the group)";
  }
  if (sys_errno == ENOMEM) return kMemoryFix;
  if (sys_errno == EMFILE) {
    return "allow more open files where this is started from: ulimit -n, or LimitNOFILE= of the "
           "unit";
  }
  if (sys_errno == ENFILE) return "raise sysctl fs.file-max";
  if (sys_errno == ETOOMANYREFS) {
    return "end programs of this user that pass descriptors on, or give him subordinate ids, so "
           "that those in sandboxes do not count as his ('sbx-run doctor' tells how)";
  }
  return {};
}

Error name_scarcity(Error error) {
  std::string fix = scarcity_fix(error.sys_errno);
  if (fix.empty() || error.code != ErrorCode::kInternal) return error;
  error.code = ErrorCode::kHost;
  error.fix = std::move(fix);
  return error;
}

}  // namespace sbx
