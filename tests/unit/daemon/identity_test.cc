#include "runtime/daemon/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sbx::daemon {
namespace {

using ::testing::HasSubstr;

std::string status(const std::string& changed_name = {}, const std::string& changed = {}) {
  std::string text = "Name:\tsbxd\n";
  for (const auto& [name, value] :
       std::initializer_list<std::pair<std::string, std::string>>{{"Uid", "998\t998\t998\t998"},
                                                                  {"Gid", "997\t997\t997\t997"},
                                                                  {"Groups", " "},
                                                                  {"CapInh", "0000000000000000"},
                                                                  {"CapPrm", "0000000000000000"},
                                                                  {"CapEff", "0000000000000000"},
                                                                  {"CapBnd", "0000000000000000"},
                                                                  {"CapAmb", "0000000000000000"},
                                                                  {"NoNewPrivs", "1"}}) {
    text += name + ":\t" + (name == changed_name ? changed : value) + "\n";
  }
  return text;
}

TEST(Identity, NothingLeftIsAccepted) {
  EXPECT_TRUE(check_unprivileged(status(), 998, 997, true));
}

TEST(Identity, AnythingLeftIsRefusedByName) {
  const std::pair<const char*, const char*> left[] = {
      {"Uid", "998\t0\t998\t998"},    {"Uid", "998\t998\t0\t998"},
      {"Gid", "997\t997\t0\t997"},    {"Groups", "4 27 "},
      {"CapInh", "0000000000000001"}, {"CapPrm", "0000000000000080"},
      {"CapEff", "0000000000200000"}, {"CapBnd", "000001ffffffffff"},
      {"CapAmb", "0000000000000001"}, {"NoNewPrivs", "0"}};
  for (const auto& [name, value] : left) {
    const auto checked = check_unprivileged(status(name, value), 998, 997, true);
    ASSERT_FALSE(checked) << name;
    EXPECT_THAT(checked.error().detail, HasSubstr(name));
  }
}

TEST(Identity, AStatusThatDoesNotSayIsRefused) {
  EXPECT_FALSE(check_unprivileged("", 998, 997, true));
  EXPECT_FALSE(check_unprivileged("Name:\tx\n", 998, 997, false));
}

TEST(Identity, RootIsNeverUnprivileged) {
  std::string text = status("Uid", "0\t0\t0\t0");
  EXPECT_FALSE(check_unprivileged(text, 0, 997, false));
}

TEST(Identity, AnOrdinaryUserKeepsHisGroupsAndBoundingSet) {
  std::string text = status("CapBnd", "000001ffffffffff");
  EXPECT_TRUE(check_unprivileged(text, 998, 997, false));
}

TEST(Identity, AMissingUserIsAnErrorWithTheCommandThatMakesHim) {
  const auto user = find_service_user("no-such-user-here");
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kHost);
  EXPECT_THAT(user.error().fix, HasSubstr("useradd --system"));
}

TEST(Identity, RootIsNoServiceUser) {
  const auto user = find_service_user("root");
  ASSERT_FALSE(user);
  EXPECT_EQ(user.error().code, ErrorCode::kInvalid);
}

// In a child, since there is no way back. Exit code 0: given up, and nothing of root works any
// more.
TEST(Identity, GivingUpIsForGood) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has privileges to give up";
  const pid_t pid = ::fork();
  if (pid == 0) {
    const ServiceUser user{"nobody", 65534, 65534};
    if (!give_up_privileges(user)) ::_exit(1);
    if (::getuid() != 65534 || ::setuid(0) == 0 || ::seteuid(0) == 0) ::_exit(2);
    if (::access("/etc/shadow", R_OK) == 0) ::_exit(3);
    ::_exit(0);
  }
  int wait_status = -1;
  ASSERT_EQ(::waitpid(pid, &wait_status, 0), pid);
  EXPECT_EQ(wait_status, 0);
}

// Control: without becoming a user, a root process is not taken for an unprivileged one.
TEST(Identity, GivingUpFailsWhereRootStays) {
  if (::geteuid() != 0) GTEST_SKIP() << "shows it for root";
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(give_up_privileges(std::nullopt) ? 1 : 0);
  int wait_status = -1;
  ASSERT_EQ(::waitpid(pid, &wait_status, 0), pid);
  EXPECT_EQ(wait_status, 0);
}

}  // namespace
}  // namespace sbx::daemon
