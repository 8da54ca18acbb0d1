// Views: what a single probe cannot show. The lines that one can are in the catalogue
// (catalogue_test.cc).
//
// The next lease of a warm pool sees nothing of the one before either: that is the pool's own test.
#include <gmock/gmock.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "runtime/base/sys.h"
#include "runtime/cli/probe_program.h"
#include "tests/adversarial/neighbours.h"

namespace sbx::test {
namespace {

using cli::Observation;
using plan::Step;
using plan::step_bit;
using policy::Layer;
using policy::layer_bit;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// ---- of other runs -----------------------------------------------------------------------------

class OtherRuns : public NeighboursTest {
 protected:
  // What a run leaves where it has no ipc namespace of its own is left in one that ends with us.
  void SetUp() override {
    if (::geteuid() == 0) {
      ASSERT_EQ(::unshare(CLONE_NEWIPC), 0);
    }
    NeighboursTest::SetUp();
  }
};

constexpr const char* kEverything =
    "/tmp /dev/shm /work /output segment semaphore queue posix-queue abstract-socket\n";

// Landlock refuses POSIX queues, which have no path that a rule could name; they are looked for
// too.
const Weakening kWithQueues = without(Layer::kLandlock);

TEST_F(OtherRuns, AreUnseenWhileTheyLive) {
  EXPECT_EQ(found("both", "names", kWithQueues), kEverything)
      << "the control: a run finds what it left itself";
  const auto other = leave("names", kWithQueues);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(found("find", "names", kWithQueues), "none\n");
}

TEST_F(OtherRuns, LeaveNothingForTheNextOneWithTheirId) {
  EXPECT_EQ(found("both", "names", kWithQueues), kEverything);
  EXPECT_EQ(found("find", "names", kWithQueues), "none\n");
}

TEST_F(OtherRuns, AreSeenWhereTheyShareANamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give the runs a namespace to share";
  const policy::LayerMask shared = layer_bit(Layer::kIpcNamespace) |
                                   layer_bit(Layer::kUidSeparation) | layer_bit(Layer::kLandlock);
  const auto other = leave("names", without(shared));
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(found("find", "names", without(shared)), "segment semaphore queue posix-queue\n");
}

// ---- of the caller -----------------------------------------------------------------------------

class Caller : public AdversarialTest {};

std::string in_hexadecimal(const std::vector<std::string>& words) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::string& word : words) {
    for (const char c : word) {
      const auto byte = static_cast<unsigned char>(c);
      text += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    text += '|';
  }
  return text;
}

// What names a run is known once it is started; so the words come over its standard input.
TEST_F(Caller, IsNowhereToBeReadNorIsTheRunsName) {
  auto input = sys::pipe();
  ASSERT_TRUE(input);
  RunHooks hooks;
  hooks.stdin_fd = input->first.get();
  auto run = arena().sandbox().start(Arena::probe("words", "-"), Weakening{}, std::move(hooks));
  ASSERT_TRUE(run) << to_string(run.error());
  const std::vector<std::string> words = {
      (*run)->id(), arena().ground().config().runtime_dir, arena().ground().config().cgroup_parent,
      std::filesystem::current_path().string() + "/", "test-sbx-"};
  ASSERT_TRUE(sys::write_all(input->second.get(), in_hexadecimal(words)));
  input->second.reset();
  ASSERT_TRUE(drive(**run));
  const Observation seen = cli::observe((*run)->take_outcome());
  ASSERT_TRUE(seen.answered) << seen.trouble;
  // The image of these tests lies in a directory of theirs, which mountinfo says, as it says where
  // any image lies.
  EXPECT_EQ(seen.value, "mountinfo: test-sbx-");
}

// ---- programs that the file system says have power
// -----------------------------------------------

// The image's owner here is the outer namespace's root: with an owner that is not mapped at all, as
// in the images that we build, the kernel looks at neither bit.
class PrivilegedPrograms : public AdversarialTest {
 protected:
  void SetUp() override {
    AdversarialTest::SetUp();
    if (IsSkipped() || HasFailure()) return;
    if (::geteuid() != 0) GTEST_SKIP() << "only root can make a program of somebody else's";
    const std::uint32_t owner = arena().ground().config().uid_base;
    plant("set-user-id");
    const std::string set_user_id = arena().rootfs() + "/set-user-id";
    ASSERT_EQ(::chown(set_user_id.c_str(), owner, owner), 0);
    ASSERT_EQ(::chmod(set_user_id.c_str(), 06755), 0);
    plant("capable");
    vfs_ns_cap_data data{};
    data.magic_etc = VFS_CAP_REVISION_3 | VFS_CAP_FLAGS_EFFECTIVE;
    data.data[0].permitted = 1U << CAP_SYS_ADMIN;
    data.rootid = owner;
    const std::string capable = arena().rootfs() + "/capable";
    ASSERT_EQ(::setxattr(capable.c_str(), "security.capability", &data, sizeof data, 0), 0);
  }
  std::string power(const char* program, const Weakening& weakening) {
    const Observation seen = arena().attack("privileged_exec", program, weakening);
    return cli::describe(seen);
  }

 private:
  void plant(const char* name) {
    const auto bytes = cli::probe_program();
    auto file = sys::open(arena().rootfs() + "/" + name, O_WRONLY | O_CREAT | O_EXCL, 0755);
    ASSERT_TRUE(file);
    ASSERT_TRUE(
        sys::write_all(file->get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  }
};

// None of the layers that could stop it but those of `on`: a uid of its own, no capability yet.
Weakening powerless_with(policy::LayerMask on) {
  policy::LayerMask off = 0;
  for (const Layer layer : switchable_layers()) off |= layer_bit(layer);
  Weakening weakening = without(off & ~on & ~layer_bit(Layer::kUidSeparation));
  weakening.weakened &= ~step_bit(Step::kCapabilities);
  return weakening;
}

constexpr const char* kNothing = "uid 65534 capabilities 0 no_new_privs 1 seccomp 2";

TEST_F(PrivilegedPrograms, GiveNothing) {
  EXPECT_EQ(power("/set-user-id", {}), kNothing);
  EXPECT_EQ(power("/capable", {}), kNothing);
}

TEST_F(PrivilegedPrograms, GiveTheirPowerWithoutTheLayers) {
  EXPECT_THAT(power("/set-user-id", powerless_with(0)), StartsWith("uid 0 "));
  EXPECT_THAT(power("/capable", powerless_with(0)), HasSubstr("capabilities some"));
}

TEST_F(PrivilegedPrograms, AreStoppedByEachOfThreeLayersAlone) {
  for (const Layer layer : {Layer::kRootfs, Layer::kNoNewPrivs, Layer::kUserNamespace}) {
    const std::string seen = power("/set-user-id", powerless_with(layer_bit(layer)));
    EXPECT_THAT(seen, Not(StartsWith("uid 0 "))) << policy::layer_name(layer);
  }
  // A bounding set without them is what the layer `capabilities` has against these.
  for (const Layer layer : {Layer::kRootfs, Layer::kNoNewPrivs, Layer::kCapabilities}) {
    const std::string seen = power("/capable", powerless_with(layer_bit(layer)));
    EXPECT_THAT(seen, Not(HasSubstr("capabilities some"))) << policy::layer_name(layer);
  }
}

}  // namespace
}  // namespace sbx::test
