// The block that sbx-init reads, read back as sbx-init reads it.
#include <gmock/gmock.h>
#include <sched.h>

#include <cstring>
#include <vector>

#include "runtime/cgroup/driver.h"
#include "tests/unit/plan/synthetic.h"

namespace sbx::plan::test {
namespace {

static_assert(std::size_t{kMaxJoin} == cgroup::kMaxJoinFds, "a slot for each file to join through");

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

// A reader with the checks that sbx-init need not make: every span lies in the block, every string
// ends with a NUL right behind it and holds none.
class Block {
 public:
  Block(const Plan& plan, const LaunchFacts& facts) {
    auto made = flatten(plan, facts);
    EXPECT_TRUE(made) << to_string(made.error());
    if (made) bytes_ = *std::move(made);
    if (bytes_.size() >= sizeof flat) std::memcpy(&flat, bytes_.data(), sizeof flat);
  }

  [[nodiscard]] std::string text(Span span) const {
    if (span.offset == 0 && span.size == 0) return "";  // none
    const std::size_t end = std::size_t{span.offset} + span.size;
    EXPECT_GE(span.offset, sizeof flat);
    EXPECT_LT(end, bytes_.size());
    if (end >= bytes_.size()) return "outside";
    EXPECT_EQ(bytes_[end], 0) << "no NUL";
    return {reinterpret_cast<const char*>(bytes_.data()) + span.offset, span.size};
  }

  [[nodiscard]] std::vector<std::string> strings(Span array, std::uint32_t count) const {
    EXPECT_EQ(array.offset % 8, 0U);
    EXPECT_EQ(array.size, (count + 1) * 8);
    std::vector<std::string> all;
    for (std::uint32_t i = 0; i <= count; ++i) {
      std::uint64_t slot = 0;
      std::memcpy(&slot, bytes_.data() + array.offset + i * 8, sizeof slot);
      if (i == count) {
        EXPECT_EQ(slot, 0U) << "the end";
      } else {
        EXPECT_LT(slot, bytes_.size());
        all.emplace_back(reinterpret_cast<const char*>(bytes_.data()) + slot);
      }
    }
    return all;
  }

  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
  FlatPlan flat{};

 private:
  std::vector<std::uint8_t> bytes_;
};

LaunchFacts facts() {
  LaunchFacts launch;
  launch.payload_id = 17;
  launch.join_count = 2;
  launch.payload_leaf = true;
  launch.inject = step_bit(Step::kPivot);
  launch.weaken = step_bit(Step::kMasks);
  return launch;
}

Request full_request() {
  Request request = python();
  request.args = {"", "two words"};
  request.env = {{"EMPTY", ""}};
  request.files.push_back({"data.csv", "1"});
  return request;
}

TEST(FlatBlock, SaysWhatItIsAndHowLong) {
  const Block block(planned(python()), facts());
  EXPECT_EQ(block.flat.magic, kPlanMagic);
  EXPECT_EQ(block.flat.total_size, block.bytes().size());
}

TEST(FlatBlock, CarriesTheFactsOfTheLaunch) {
  const Plan plan = planned(python());
  const Block block(plan, facts());
  EXPECT_EQ(block.flat.payload_id, 17U);
  EXPECT_EQ(block.text(block.flat.uid_map), "65534 17 1");
  EXPECT_EQ(block.text(block.flat.gid_map), "65534 17 1");
  EXPECT_EQ(block.flat.join_count, 2U);
  EXPECT_EQ(block.flat.has_payload_leaf, 1U);
  EXPECT_EQ(block.flat.inject, step_bit(Step::kPivot));
  EXPECT_EQ(block.flat.weaken, step_bit(Step::kMasks));
  EXPECT_EQ(block.flat.skip, plan.skip);
  EXPECT_EQ(block.flat.may_fail, plan.may_fail);
  EXPECT_EQ(block.flat.has_netns, 1U);
  EXPECT_EQ(block.flat.clear_groups, 1U);
}

TEST(FlatBlock, HoldsArgumentsAndEnvironmentAsGiven) {
  const Plan plan = planned(full_request());
  const Block block(plan, facts());
  EXPECT_THAT(block.strings(block.flat.argv, block.flat.argv_count), ElementsAreArray(plan.argv));
  EXPECT_THAT(block.strings(block.flat.envp, block.flat.envp_count), ElementsAreArray(plan.env));
  EXPECT_EQ(block.text(block.flat.work_directory), "/work");
  ASSERT_EQ(block.flat.exec_path_count, 1U);
  EXPECT_EQ(block.text(block.flat.exec_paths[0]), "/usr/bin/python3");
}

TEST(FlatBlock, HoldsEveryMountWithItsNumbersAsText) {
  const Plan plan = planned(full_request());
  const Block block(plan, facts());
  ASSERT_EQ(block.flat.tmpfs_count, plan.tmpfs.size());
  for (std::size_t i = 0; i < plan.tmpfs.size(); ++i) {
    const FlatTmpfs& flat = block.flat.tmpfs[i];
    const TmpfsMount& mount = plan.tmpfs[i];
    EXPECT_EQ("/" + block.text(flat.target), mount.target);
    EXPECT_EQ(block.text(flat.size), std::to_string(mount.size));
    EXPECT_EQ(block.text(flat.inodes), std::to_string(mount.inodes));
    EXPECT_EQ(block.text(flat.mode), mount.mode);
    EXPECT_EQ(block.text(flat.uid), mount.payload_owns ? "17" : "");
    EXPECT_EQ(flat.passed, mount.collected ? unsigned{kSlotOutput} : 0U);
    EXPECT_EQ(flat.read_only, mount.read_only ? 1U : 0U);
    EXPECT_EQ(block.text(flat.limit), mount.limit);
  }
  EXPECT_EQ(block.text(block.flat.shm.target), "dev/shm");
  EXPECT_EQ(block.flat.shm.noexec, 1U);
}

TEST(FlatBlock, HoldsAnImagesRootMasksAndDevices) {
  const Plan plan = planned(python());
  const Block block(plan, facts());
  EXPECT_EQ(block.text(block.flat.rootfs), plan.image.rootfs);
  EXPECT_EQ(block.text(block.flat.hostname), "sandbox");
  ASSERT_EQ(block.flat.mask_count, plan.masks.size());
  for (std::size_t i = 0; i < plan.masks.size(); ++i) {
    EXPECT_EQ(block.text(block.flat.masks[i].path), plan.masks[i].path);
    EXPECT_EQ(block.flat.masks[i].kind, plan.masks[i].kind);
    EXPECT_EQ(block.text(block.flat.masks[i].content), plan.masks[i].content);
  }
  ASSERT_EQ(block.flat.device_count, plan.devices.size());
  EXPECT_EQ(block.text(block.flat.devices[0].source), "/dev/null");
  EXPECT_EQ(block.text(block.flat.devices[0].target), "null");
}

TEST(FlatBlock, HoldsTheHostsTreeWithoutAnImage) {
  const Plan plan = planned(python(), host_root());
  const Block block(plan, facts());
  EXPECT_EQ(block.text(block.flat.rootfs), "");
  ASSERT_EQ(block.flat.bind_count, plan.binds.size());
  EXPECT_EQ(block.text(block.flat.binds[0].source), "/usr");
  EXPECT_EQ(block.flat.binds[0].optional, 0U) << "without /usr there is no run";
  ASSERT_EQ(block.flat.symlink_count, plan.symlinks.size());
  EXPECT_EQ(block.text(block.flat.symlinks[0].link), "bin");
  EXPECT_EQ(block.text(block.flat.symlinks[0].target), "usr/bin");
  EXPECT_EQ(block.flat.directory_count, plan.directories.size());
  ASSERT_EQ(block.flat.file_count, plan.files.size());
  EXPECT_EQ(block.text(block.flat.files[0].path), "etc/passwd");
  EXPECT_EQ(block.text(block.flat.files[0].content), plan.files[0].second);
}

TEST(FlatBlock, HoldsTheSystemCallPolicyAligned) {
  const Plan plan = planned(python());
  const Block block(plan, facts());
  ASSERT_EQ(block.flat.bpf.size, plan.policy.seccomp.bpf.size());
  EXPECT_EQ(block.flat.bpf.offset % 8, 0U);
  EXPECT_EQ(std::memcmp(block.bytes().data() + block.flat.bpf.offset,
                        plan.policy.seccomp.bpf.data(), block.flat.bpf.size),
            0);
  EXPECT_EQ(block.flat.audit_arch, plan.policy.seccomp.audit_arch);
  EXPECT_THAT(block.flat.actions, ElementsAreArray(plan.policy.seccomp.actions));
}

// The CPUs that this process may use, by number.
std::vector<std::uint32_t> own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(::sched_getaffinity(0, sizeof set, &set), 0);
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) numbers.push_back(cpu);
  }
  return numbers;
}

std::vector<std::uint32_t> cpus_of(const FlatPlan& flat) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t cpu = 0; cpu < 1024; ++cpu) {
    if (((flat.cpu_mask[cpu / 64] >> (cpu % 64)) & 1U) != 0) numbers.push_back(cpu);
  }
  return numbers;
}

TEST(FlatBlock, AllowsAsManyCpusAsTheRunMayUseStartingAtItsId) {
  policy::Policy policy = default_policy();
  policy.limits.cpus_milli = 2000;
  const Block block(planned(python(), synthetic_host(), policy), facts());
  const auto own = own_cpus();
  const auto number = [&](std::uint32_t index) { return index < own.size() ? own[index] : index; };
  EXPECT_THAT(cpus_of(block.flat), ElementsAre(number(1), number(2))) << "17 mod 4 is 1";
}

TEST(FlatBlock, AllowsNoCpuThatTheCallerMayNotUse) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const std::uint32_t last = own_cpus().back();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(last, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  HostFacts host = synthetic_host();
  host.cpus = 1;
  const Block block(planned(python(), host), facts());
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_THAT(cpus_of(block.flat), ElementsAre(last));
}

TEST(FlatBlock, CarriesWhereThePayloadMayWriteAndItsRlimits) {
  const Plan plan = planned(python());
  const Block block(plan, facts());
  ASSERT_EQ(block.flat.writable_count, plan.writable.size());
  EXPECT_EQ(block.text(block.flat.writable[0]), "/tmp");
  ASSERT_EQ(block.flat.rlimit_count, plan.rlimits.size());
  EXPECT_EQ(block.flat.rlimits[1].soft, 256U);
  EXPECT_EQ(block.flat.rlimits[1].hard, 256U);
}

TEST(FlatBlock, CarriesTheWallLimitWithSomeSecondsForTheSupervisor) {
  policy::Policy policy = default_policy();
  policy.limits.wall_seconds = std::chrono::seconds(7);
  const Block block(planned(python(), synthetic_host(), policy), facts());
  EXPECT_EQ(block.flat.wall_nanoseconds, 9'000'000'000U);
}

TEST(FlatBlock, NamesTheTableThatOverflows) {
  const auto error_with = [](auto change) {
    Plan plan = planned(python(), host_root());
    change(plan);
    const auto block = flatten(plan, {});
    return block ? std::string("made") : block.error().detail;
  };
  EXPECT_EQ(error_with([](Plan& plan) { plan.tmpfs.resize(kMaxTmpfs); }), "made");
  EXPECT_EQ(error_with([](Plan& plan) { plan.tmpfs.resize(kMaxTmpfs + 1); }),
            "plan table tmpfs holds at most 12");
  EXPECT_THAT(error_with([](Plan& plan) { plan.binds.resize(kMaxBinds + 1); }), HasSubstr("binds"));
  EXPECT_THAT(error_with([](Plan& plan) { plan.masks.resize(kMaxMasks + 1); }), HasSubstr("masks"));
  EXPECT_THAT(error_with([](Plan& plan) { plan.files.resize(kMaxFiles + 1); }), HasSubstr("files"));
  EXPECT_THAT(error_with([](Plan& plan) { plan.rlimits.resize(kMaxRlimits + 1); }),
              HasSubstr("rlimits"));
  EXPECT_THAT(error_with([](Plan& plan) { plan.exec_paths.resize(kMaxExecPaths + 1); }),
              HasSubstr("exec paths"));
}

TEST(FlatBlock, NeverOverflowsForWhatARequestMayHold) {
  Request request = full_request();
  request.args.assign(1000, std::string(500, 'a'));
  EXPECT_TRUE(flatten(planned(request, host_root()), facts()));
}

TEST(PassedTmpfs, IsOutputWithTheRunsOwnId) {
  const PassedTmpfs output = passed_tmpfs(planned(python()), facts(), kSlotOutput);
  EXPECT_EQ(output.size, std::to_string(64 * policy::kMiB));
  EXPECT_EQ(output.inodes, "4096");
  EXPECT_EQ(output.mode, "0755");
  EXPECT_EQ(output.uid, "17");
}

TEST(PassedTmpfs, IsWorkOnlyForASession) {
  EXPECT_EQ(passed_tmpfs(planned(python()), facts(), kSlotWork).size, "");
  Request request = python();
  request.workspace.emplace();
  policy::Policy policy = default_policy();
  policy.limits.work = 3 * policy::kMiB;
  policy.limits.work_inodes = 77;
  const PassedTmpfs work =
      passed_tmpfs(planned(request, synthetic_host(), policy), facts(), kSlotWork);
  EXPECT_EQ(work.size, std::to_string(3 * policy::kMiB));
  EXPECT_EQ(work.inodes, "77");
  EXPECT_EQ(work.mode, "0755");
  EXPECT_EQ(work.uid, "17");
}

}  // namespace
}  // namespace sbx::plan::test
