#include "runtime/daemon/places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/process.h"

namespace sbx::daemon {
namespace {

// The variables that matter, as one test wants them.
class PlacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kNames) ::unsetenv(name);
  }
  void TearDown() override { SetUp(); }
  static constexpr const char* kNames[] = {"XDG_RUNTIME_DIR", "XDG_STATE_HOME", "HOME",
                                           "STATE_DIRECTORY", "RUNTIME_DIRECTORY"};
  // As a start that succeeds.
  static Result<void> make(const Places& places, const std::optional<ServiceUser>& user) {
    FreshDirectories fresh;
    auto made = make_all(places, user, fresh);
    if (made) fresh.keep();
    return made;
  }
  static Result<void> make_all(const Places& places, const std::optional<ServiceUser>& user,
                               FreshDirectories& fresh) {
    SBX_TRY(make_place_of_socket(places, user, fresh));
    return make_places_of_state(places, user, fresh);
  }
  static std::string fix_of(const Places& places, const std::optional<ServiceUser>& user) {
    const auto made = make(places, user);
    return made ? std::string() : made.error().fix;
  }
  test::TemporaryDirectory directory_;
};

TEST_F(PlacesTest, OfRootAreTheSystems) {
  const auto places = choose_places({}, {}, true);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->socket, "/run/sbx/sbxd.sock");
  EXPECT_EQ(places->state_dir, "/var/lib/sbx");
  EXPECT_EQ(places->runtime_dir, "/run/sbx/sbxd");
}

TEST_F(PlacesTest, OfRootHaveRecordsForEachUserThatItBecomes) {
  DaemonConfig config;
  config.user = "other";
  const auto places = choose_places(config, {}, true);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->runtime_dir, "/run/sbx/sbxd-other");
}

TEST_F(PlacesTest, OfAUserAreHisOwn) {
  ::setenv("XDG_RUNTIME_DIR", "/run/user/1", 1);
  ::setenv("HOME", "/home/u", 1);
  const auto places = choose_places({}, {}, false);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->socket, "/run/user/1/sbx/sbxd.sock");
  EXPECT_EQ(places->state_dir, "/home/u/.local/state/sbx");
  EXPECT_EQ(places->runtime_dir, "") << "the library's default";
  ::setenv("XDG_STATE_HOME", "/home/u/s", 1);
  EXPECT_EQ(choose_places({}, {}, false)->state_dir, "/home/u/s/sbx");
}

TEST_F(PlacesTest, OfAUnitAreSystemds) {
  ::setenv("STATE_DIRECTORY", "/var/lib/a:/var/lib/b", 1);
  ::setenv("RUNTIME_DIRECTORY", "/run/a", 1);
  const auto places = choose_places({}, {}, false);
  ASSERT_TRUE(places);
  EXPECT_EQ(places->state_dir, "/var/lib/a");
  EXPECT_EQ(places->runtime_dir, "/run/a");
  EXPECT_EQ(places->socket, "") << "the unit passes one";
}

TEST_F(PlacesTest, OfTheConfigurationGoFirst) {
  DaemonConfig config;
  config.socket = "/s";
  config.state_dir = "/d";
  policy::RuntimeConfig runtime;
  runtime.runtime_dir = "/r";
  for (const bool root : {false, true}) {
    const auto places = choose_places(config, runtime, root);
    ASSERT_TRUE(places);
    EXPECT_EQ(places->socket, "/s");
    EXPECT_EQ(places->state_dir, "/d");
    EXPECT_EQ(places->runtime_dir, "/r");
  }
}

TEST_F(PlacesTest, WithoutAHomeAStateDirectoryMustBeNamed) {
  const auto places = choose_places({}, {}, false);
  ASSERT_FALSE(places);
  EXPECT_EQ(places.error().code, ErrorCode::kInvalid);
}

TEST_F(PlacesTest, AreMadeForTheOneWhoWillUseThem) {
  const std::string top = directory_.path();
  const Places places{top + "/run/deep/s", top + "/lib/state", top + "/run/records"};
  std::optional<ServiceUser> user;
  if (::geteuid() == 0) user = ServiceUser{"nobody", 65534, 65534};
  ASSERT_TRUE(make(places, user));
  ASSERT_TRUE(make(places, user)) << "again, over what is there";
  const uid_t owner = user ? user->uid : ::geteuid();
  for (const std::string& path : {places.audit_dir(), places.sessions_dir(), places.runtime_dir}) {
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0) << path;
    EXPECT_EQ(info.st_uid, owner) << path;
    EXPECT_EQ(info.st_mode & 07777U, 0700U) << path;
  }
  EXPECT_TRUE(std::filesystem::is_directory(top + "/run/deep"));
  struct stat info{};
  ASSERT_EQ(::stat(places.state_dir.c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, ::geteuid()) << "what holds images too stays root's";
}

TEST_F(PlacesTest, ThatBelongToSomebodyElseAreRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a directory of somebody else's";
  const Places places{directory_.path() + "/s", directory_.path() + "/state", {}};
  std::filesystem::create_directories(places.audit_dir());
  ASSERT_EQ(::chown(places.audit_dir().c_str(), 12345, 12345), 0);
  const ServiceUser nobody{"nobody", 65534, 65534};
  const auto made = make(places, nobody);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().detail, ::testing::HasSubstr("(uid 12345)"));
  // What another sbxd may be using is not to be taken from it lightly.
  EXPECT_THAT(made.error().fix, ::testing::StartsWith("name another with --state-dir"));
  const Places records{directory_.path() + "/s", directory_.path() + "/state2", places.audit_dir()};
  EXPECT_THAT(fix_of(records, nobody), ::testing::StartsWith("name another as runtime_dir"));
}

TEST_F(PlacesTest, ThatAreThereAreNeverGivenAwayNorShut) {
  const Places places{directory_.path() + "/s", directory_.path() + "/state",
                      directory_.path() + "/records"};
  std::filesystem::create_directories(places.runtime_dir);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  const auto expect_untouched = [&](const std::optional<ServiceUser>& user, mode_t mode) {
    ASSERT_EQ(::chmod(places.runtime_dir.c_str(), mode), 0);
    EXPECT_THAT(fix_of(places, user), ::testing::StartsWith("name another as runtime_dir"));
    struct stat info{};
    ASSERT_EQ(::stat(places.runtime_dir.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777U, mode);
    EXPECT_EQ(info.st_uid, ::geteuid());
  };
  for (const mode_t mode : {01777U, 0755U, 0711U, 0740U}) expect_untouched(std::nullopt, mode);
  if (::geteuid() != 0) return;
  for (const mode_t mode : {01777U, 0700U}) {
    expect_untouched(ServiceUser{"nobody", 65534, 65534}, mode);
  }
}

TEST_F(PlacesTest, ThatTheUserCannotGetToAreRefusedWithWhatIsShut) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can shut out another";
  const std::string shut = directory_.path() + "/shut";
  const Places places{directory_.path() + "/s", shut + "/below/state", {}};
  std::filesystem::create_directories(shut);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(shut.c_str(), 0700), 0);
  const ServiceUser nobody{"nobody", 65534, 65534};
  const auto made = make(places, nobody);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().detail, ::testing::HasSubstr("'nobody' cannot pass " + shut));
  EXPECT_THAT(made.error().fix, ::testing::StartsWith("chmod o+x " + shut));
  EXPECT_FALSE(std::filesystem::exists(shut + "/below")) << "what was made is taken back";
  ASSERT_EQ(::chmod(shut.c_str(), 0711), 0);
  EXPECT_TRUE(make(places, nobody));
  ASSERT_EQ(::chmod(shut.c_str(), 0611), 0);
  ASSERT_EQ(::chown(shut.c_str(), nobody.uid, nobody.gid), 0);
  EXPECT_THAT(fix_of(places, nobody), ::testing::StartsWith("chmod u+x " + shut));
  EXPECT_EQ(::access("/root", W_OK), 0) << "root again";
}

TEST_F(PlacesTest, OfAStartThatFailsAreTakenBackUnlessSomethingIsInThem) {
  const std::string top = directory_.path();
  const Places places{top + "/run/s", top + "/lib/state", top + "/records"};
  std::optional<ServiceUser> user;
  if (::geteuid() == 0) user = ServiceUser{"nobody", 65534, 65534};
  ASSERT_EQ(::chmod(top.c_str(), 0755), 0);
  {
    FreshDirectories fresh;
    ASSERT_TRUE(make_all(places, user, fresh));
    EXPECT_TRUE(std::filesystem::exists(places.audit_dir()));
  }
  EXPECT_TRUE(std::filesystem::is_empty(top));
  {
    FreshDirectories fresh;
    ASSERT_TRUE(make_all(places, user, fresh));
    (void)directory_.write("lib/state/audit/audit.jsonl", "x");
  }
  EXPECT_TRUE(std::filesystem::exists(places.audit_dir() + "/audit.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(places.sessions_dir()));
  EXPECT_FALSE(std::filesystem::exists(top + "/run"));
}

TEST_F(PlacesTest, AStateDirectoryThatOthersMayChangeIsRefused) {
  const Places places{directory_.path() + "/s", directory_.path() + "/state", {}};
  std::filesystem::create_directories(places.state_dir);
  ASSERT_EQ(::chmod(places.state_dir.c_str(), 0777), 0);
  const auto shared = make(places, std::nullopt);
  ASSERT_FALSE(shared);
  EXPECT_THAT(shared.error().detail, ::testing::HasSubstr("by everybody"));
  EXPECT_EQ(shared.error().fix,
            "chmod o-w " + places.state_dir + ", or name another with --state-dir");
  ASSERT_EQ(::chmod(places.state_dir.c_str(), 01777), 0);
  EXPECT_TRUE(make(places, std::nullopt)) << "as /tmp is";
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chmod(places.state_dir.c_str(), 0755), 0);
  ASSERT_EQ(::chown(places.state_dir.c_str(), 12345, 12345), 0);
  EXPECT_FALSE(make(places, std::nullopt));
}

TEST_F(PlacesTest, ThatAreLinksAreNotFollowed) {
  const Places places{directory_.path() + "/s", directory_.path() + "/state", {}};
  std::filesystem::create_directories(places.state_dir);
  std::filesystem::create_directory(directory_.path() + "/elsewhere");
  std::filesystem::create_symlink(directory_.path() + "/elsewhere", places.audit_dir());
  EXPECT_FALSE(make(places, std::nullopt));
}

}  // namespace
}  // namespace sbx::daemon
