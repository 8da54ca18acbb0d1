// What doctor says of subordinate ids, on simulated hosts; which ones it offers:
// doctor_ids_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tests/unit/cli/fake_host.h"

namespace sbx::cli {
namespace {

using ::testing::HasSubstr;

TEST(DoctorOnASimulatedHost, ANameThatCouldNotBeAskedForIsNotMade) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.has_name = host_lacks("getent", EAGAIN, "", "raise a limit");
  EXPECT_EQ(check_of(host, "subordinate_ids").fix, "raise a limit");
}

TEST(DoctorOnASimulatedHost, MissingSubordinateIdsDegradeAndRefuseNothing) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/passwd"] = "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n";
  const Check check = check_of(host, "subordinate_ids");
  EXPECT_EQ(check.state, CheckState::kDegraded);
  EXPECT_THAT(check.detail, HasSubstr("no subordinate ids"));
  EXPECT_EQ(check.fix,
            "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $(id -un)");
  EXPECT_TRUE(all_required_hold(checks_of(host)));
}

TEST(DoctorOnASimulatedHost, TheIdsOfOthersAreNotGivenAway) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/passwd"] = "user:x:1000:1000::/home/user:/bin/sh\n";
  host.files["/etc/subuid"] = "other:100000:65536\n";
  host.files["/etc/subgid"] = "third:165536:65536\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix,
              HasSubstr("--add-subuids 231072-296607 --add-subgids 231072-296607 "));
  host.files["/etc/passwd"] += "far:x:231072:1000::/:/bin/sh\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("--add-subuids 231073-296608 "));
  host.files["/etc/passwd"].clear();
  host.user = 231100;
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("echo 231100:231101:65536 | sudo"));
  host.has_name = false;
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("--add-subgids 231101-296636 sbx-"));
}

TEST(DoctorOnASimulatedHost, WhereNoIdsAreFreeThatIsSaid) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/subgid"] = "other:100000:600000000\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("no 65536 ids in a row are free"));
}

TEST(DoctorOnASimulatedHost, WithoutTheListOfThoseTakenNoIdsAreNamed) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.unreadable = "/etc/subgid";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("let the caller read it: "));
}

TEST(DoctorOnASimulatedHost, AUserOfADirectoryServiceGetsHisIdsByNumber) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.files["/etc/passwd"] = "root:x:0:0::/root:/bin/sh\nother:x:10000:1000::/:/bin/sh\n";
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("echo 1000:100000:65536 | sudo"));
  host.files.clear();
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("echo 1000:100000:65536 | sudo"));
}

TEST(DoctorOnASimulatedHost, AUserWithoutANameIsGivenOne) {
  FakeHost host;
  host.give_one_id_because("no subordinate ids");
  host.has_name = false;
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("useradd --uid 1000"));
}

TEST(DoctorOnASimulatedHost, AMissingNewuidmapIsNamed) {
  FakeHost host;
  host.has_newuidmap = false;
  host.give_one_id_because("newuidmap is missing");
  EXPECT_THAT(check_of(host, "subordinate_ids").fix, HasSubstr("install uidmap"));
}

TEST(DoctorOnASimulatedHost, NoNewPrivsIsNamed) {
  FakeHost host;
  host.give_one_id_because("newuidmap cannot work under no_new_privs");
  const Check check = check_of(host, "subordinate_ids");
  EXPECT_EQ(check.state, CheckState::kDegraded);
  EXPECT_THAT(check.fix, HasSubstr("NoNewPrivileges=no"));
}

TEST(DoctorOnASimulatedHost, SubordinateIdsAreMappedAsARunMapsThem) {
  FakeHost host;
  EXPECT_EQ(check_of(host, "subordinate_ids").state, CheckState::kOk);
  EXPECT_EQ(host.mapped.first, 165536U);
  EXPECT_EQ(host.mapped.count, 65535U);
}

TEST(DoctorOnASimulatedHost, IdsThatCannotBeMappedRefuse) {
  FakeHost host;
  host.ids = {"newuidmap", EPERM};
  for (const uid_t user : {0U, 1000U}) {
    host.user = user;
    EXPECT_EQ(check_of(host, "subordinate_ids").state, CheckState::kMissing) << user;
    EXPECT_FALSE(all_required_hold(checks_of(host))) << user;
  }
}

TEST(DoctorOnASimulatedHost, RootNeedsNoSubordinateIds) {
  FakeHost host;
  host.user = 0;
  host.has_newuidmap = false;
  EXPECT_EQ(check_of(host, "subordinate_ids").state, CheckState::kOk);
  EXPECT_EQ(host.mapped.first, policy::RuntimeConfig{}.uid_base);
}

}  // namespace
}  // namespace sbx::cli
