// System calls: what a single probe cannot show. The lines that one can are in the catalogue
// (catalogue_test.cc); foreign ABIs and numbers of the future also in tests/unit/policy, through a
// BPF interpreter.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "runtime/base/sys.h"
#include "tests/adversarial/neighbours.h"

namespace sbx::test {
namespace {

using cli::Observation;
using policy::Layer;
using ::testing::Contains;
using ::testing::HasSubstr;

class SystemCalls : public AdversarialTest {};

TEST_F(SystemCalls, ThreadsWorkWithoutClone3) {
  EXPECT_EQ(arena().attack("clone3").sys_errno, ENOSYS);
  const Observation threads = arena().attack("threads");
  EXPECT_EQ(threads.value, "4") << threads.trouble;
}

TEST_F(SystemCalls, AProgramsOwnFilterWorksBelowOurs) {
  const Observation own = arena().attack("own_filter");
  EXPECT_EQ(own.value, "works") << own.trouble;
}

// What the filter answers by itself is not counted, what goes to init is.
TEST_F(SystemCalls, DenialsAreCountedByNameAndQuietOnesAreNot) {
  EXPECT_THAT(arena().attack("kcmp", "init").denied, Contains("kcmp"));
  EXPECT_THAT(arena().attack("clone3").denied, ::testing::IsEmpty());
}

// A hostile call is never answered: what would come after it does not happen.
TEST_F(SystemCalls, NothingIsDoneAfterAHostileCall) {
  plan::Request request = Arena::probe("each");
  request.argv = {"/input/sbx-probe", "each", "hostname", "", "keyctl", "", "hostname", ""};
  const auto outcome = arena().run(request);
  ASSERT_TRUE(outcome) << to_string(outcome.error());
  EXPECT_EQ(outcome->status, collect::Status::kSecurity);
  const std::string& said = outcome->stdout_bytes;
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
}

// Whether the byte at `last` is, without bringing it there; no answer of a file system that has its
// files in memory alone.
std::optional<bool> is_in_memory(const std::string& path, off_t last) {
  const auto file = sys::open(path, O_RDONLY);
  char byte = 0;
  iovec to{&byte, 1};
  const ssize_t got = file ? ::preadv2(file->get(), &to, 1, last, RWF_NOWAIT) : -1;
  if (got < 0 && errno == EOPNOTSUPP) return std::nullopt;
  return got == 1;
}

TEST_F(SystemCalls, TakeNoFileOfTheImageFromMemory) {
  constexpr std::size_t kSize = 16384;
  const std::string path = arena().rootfs() + "/cached";
  {
    auto file = sys::open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    ASSERT_TRUE(file);
    ASSERT_TRUE(sys::write_all(file->get(), std::string(kSize, 'x')));
    ASSERT_EQ(::fsync(file->get()), 0);
  }
  const auto cached = is_in_memory(path, kSize - 1);
  if (!cached) GTEST_SKIP() << "temporary files are in memory alone";
  ASSERT_TRUE(*cached);
  EXPECT_EQ(cli::describe(arena().attack("uncache", "/cached")), "succeeded");
  EXPECT_EQ(is_in_memory(path, kSize - 1), true);
  const Observation control = arena().attack("uncache", "/cached", without(Layer::kSeccomp));
  EXPECT_EQ(cli::describe(control), "succeeded");
  EXPECT_EQ(is_in_memory(path, kSize - 1), false);
}

// The caller has a session keyring, as after a login: every process of his inherits it.
class Keys : public NeighboursTest {
 protected:
  void SetUp() override {
    constexpr int kJoinSessionKeyring = 1;
    if (::syscall(SYS_keyctl, kJoinSessionKeyring, nullptr) < 0) {
      GTEST_SKIP() << "this kernel has no keys";
    }
    NeighboursTest::SetUp();
  }
  static bool caller_finds_key() {
    constexpr int kSearch = 10;
    constexpr int kSessionKeyring = -3;
    return ::syscall(SYS_keyctl, kSearch, kSessionKeyring, "user", "trace", 0) >= 0;
  }
};

TEST_F(Keys, OfOneRunAreUnseenByAnotherEvenWithoutTheFilter) {
  const Weakening weakening = without(Layer::kSeccomp);
  EXPECT_THAT(found("both", "keys", weakening), HasSubstr("session"))
      << "the control: a run finds what it left itself";
  const auto other = leave("keys", weakening);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(found("find", "keys", weakening), "none\n");
  EXPECT_FALSE(caller_finds_key());
}

TEST_F(Keys, AreSharedThroughASessionKeyringThatIsInherited) {
  Weakening weakening = without(Layer::kSeccomp);
  weakening.weakened |= plan::step_bit(plan::Step::kKeyring);
  const auto other = leave("keys", weakening);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(found("find", "keys", weakening), "session\n");
  EXPECT_TRUE(caller_finds_key());
}

}  // namespace
}  // namespace sbx::test
