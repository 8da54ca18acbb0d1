#include "runtime/base/own_limits.h"

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

struct Need {
  __rlimit_resource_t resource;
  const char* name;
  const char* option;  // of ulimit
  const char* unit;    // of the option
  rlim_t unit_bytes;
  rlim_t least;
};
// Seen to be enough for a run, with some room (tests/integration/own_limits_test.cc runs at each of
// them), and for a daemon to start and do one (tests/daemon/life_test.cc).
constexpr std::array kNeeds = {
    Need{RLIMIT_NOFILE, "open files", "-n", "", 1, 96},
    Need{RLIMIT_STACK, "the stack", "-s", " KiB", kKiB, 256 * kKiB},
    Need{RLIMIT_FSIZE, "the size of a file", "-f", " KiB", kKiB, 4096 * kKiB},
};

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

Result<void> check_own_limits() {
  for (const Need& need : kNeeds) {
    rlimit limit{};
    if (::getrlimit(need.resource, &limit) != 0 || limit.rlim_max >= need.least) continue;
    const std::string least = std::to_string(need.least / need.unit_bytes);
    return host_lacks("setrlimit", 0,
                      std::string("the hard limit on ") + need.name + " (ulimit -H " + need.option +
                          ") is " + std::to_string(limit.rlim_max / need.unit_bytes) + need.unit +
                          ", and at least " + least + need.unit + " are needed",
                      std::string("raise it where this is started from: ulimit ") + need.option +
                          " " + least + ", or the Limit… line of the unit");
  }
  return {};
}

std::string scarcity_fix(int sys_errno) {
  if (sys_errno == EAGAIN) {
    return "end other processes, or allow more where this is started from: ulimit -u, or "
           "LimitNPROC= and TasksMax= of the unit (pids.max of the group)";
  }
  if (sys_errno == ENOMEM) {
    return "free memory, or allow more where this is started from: ulimit -d and -v, or LimitDATA= "
           "and LimitAS= of the unit";
  }
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
