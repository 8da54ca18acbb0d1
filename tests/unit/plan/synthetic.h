// A host that never was, so that plans do not depend on the machine that tests them.
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <utility>

#include "runtime/plan/plan.h"

namespace sbx::plan::test {

// Root on cgroup v2 with every layer there is, 4 CPUs and 8 GiB.
inline HostFacts synthetic_host() {
  HostFacts host;
  host.root = true;
  host.ids = IdMode::kRange;
  host.id_count = 65536;
  host.host_uid = host.host_gid = 1879048192;
  host.id_detail = "range of 65536 from 1879048192";
  host.cpus = 4;
  host.memory = 8192 * policy::kMiB;
  host.hard_nofile = 1048576;
  host.hard_fsize = host.hard_memlock = host.hard_msgqueue = host.hard_sigpending =
      ~std::uint64_t{0};
  host.image.name = "default";
  host.image.digest = "0123456789abcdef";
  host.image.directory = "/var/lib/sbx/images/default/0123456789abcdef";
  host.image.rootfs = host.image.directory + "/rootfs";
  host.image.matplotlib_directory = "/opt/sbx/matplotlib";
  host.cgroup_detail = "v2: cpu memory pids";
  host.cgroup_v2 = true;
  host.swap_controlled = true;
  return host;
}

inline HostFacts host_root() {
  HostFacts host = synthetic_host();
  host.image = {};
  host.image.name = "host";
  return host;
}

inline policy::Policy default_policy() {
  return *policy::load_policy("default");
}

inline Request python(std::string code = "print(6 * 7)") {
  Request request;
  request.language = "python";
  request.code = std::move(code);
  return request;
}

inline Request command(std::vector<std::string> argv) {
  Request request;
  request.argv = std::move(argv);
  return request;
}

// The plan of a request that must be accepted.
inline Plan planned(const Request& request, const HostFacts& host = synthetic_host(),
                    const policy::Policy& policy = default_policy()) {
  auto plan = make_plan(policy, request, host);
  return plan ? *std::move(plan) : Plan{};
}

// The error of one that must be refused; detail "accepted" when it was not.
inline Error refused(const Request& request, const HostFacts& host = synthetic_host(),
                     const policy::Policy& policy = default_policy()) {
  auto plan = make_plan(policy, request, host);
  return plan ? invalid("accepted") : std::move(plan).error();
}

inline void expect_invalid(const Error& error, const std::string& detail) {
  EXPECT_EQ(error.code, ErrorCode::kInvalid);
  EXPECT_THAT(error.detail, ::testing::HasSubstr(detail));
}

}  // namespace sbx::plan::test
