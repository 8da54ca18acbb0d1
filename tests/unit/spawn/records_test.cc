// Records and id leases: a lock is the only liveness.
#include "runtime/spawn/records.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/sys.h"

namespace sbx::spawn {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
namespace fs = std::filesystem;

class Runtime : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/test-sbx-records-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    top_ = path;
    auto opened = RuntimeDirectory::open(path_of("run"));
    ASSERT_TRUE(opened) << to_string(opened.error());
    directory_.emplace(*std::move(opened));
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(top_, ignored);
  }
  [[nodiscard]] std::string path_of(const std::string& name) const { return top_ + "/" + name; }
  [[nodiscard]] bool has_record(const std::string& id) const {
    return fs::exists(path_of("run/runs/" + id + ".json"));
  }
  [[nodiscard]] Error refusal_of(const std::string& name) const {
    auto opened = RuntimeDirectory::open(path_of(name));
    return opened ? invalid("accepted") : std::move(opened).error();
  }
  std::string top_;
  std::optional<RuntimeDirectory> directory_;
};

using Directories = Runtime;
using Records = Runtime;
using Leases = Runtime;

TEST_F(Directories, AreMadeForTheCallerAlone) {
  for (const char* name : {"run", "run/runs", "run/ids"}) {
    struct stat info{};
    ASSERT_EQ(::stat(path_of(name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U) << name;
  }
}

TEST_F(Directories, ThatExistAreUsedAgain) {
  EXPECT_TRUE(RuntimeDirectory::open(path_of("run")));
}

TEST_F(Directories, ThatAreLinksAreRefused) {
  fs::create_directory(path_of("elsewhere"));
  fs::create_directory_symlink(path_of("elsewhere"), path_of("link"));
  const Error error = refusal_of("link");
  EXPECT_EQ(error.code, ErrorCode::kHost);
  EXPECT_THAT(error.detail, HasSubstr("is not a directory of yours"));
  EXPECT_THAT(error.fix, HasSubstr("runtime_dir"));
  EXPECT_TRUE(fs::is_empty(path_of("elsewhere")));
}

TEST_F(Directories, WithALinkInsideAreRefused) {
  fs::create_directory(path_of("elsewhere"));
  fs::create_directory(path_of("half"));
  fs::create_directory_symlink(path_of("elsewhere"), path_of("half/runs"));
  EXPECT_EQ(refusal_of("half").code, ErrorCode::kHost);
  EXPECT_TRUE(fs::is_empty(path_of("elsewhere")));
}

TEST_F(Directories, ThatAreFilesAreRefused) {
  std::ofstream(path_of("file")) << "x";
  EXPECT_EQ(refusal_of("file").code, ErrorCode::kHost);
}

TEST_F(Directories, ThatOthersCanWriteAreRefused) {
  for (const mode_t mode : {0777U, 01777U, 0770U}) {
    fs::create_directory(path_of("open"));
    ASSERT_EQ(::chmod(path_of("open").c_str(), mode), 0);
    EXPECT_THAT(refusal_of("open").detail, HasSubstr("writable by somebody else"));
    fs::remove_all(path_of("open"));
  }
}

TEST_F(Directories, ThatBelongToOthersAreRefused) {
  std::string theirs = "/usr";  // root's, for everybody else
  if (::geteuid() == 0) {
    theirs = path_of("theirs");
    ASSERT_EQ(::mkdir(theirs.c_str(), 0700), 0);
    ASSERT_EQ(::chown(theirs.c_str(), 12345, 12345), 0);
  }
  const auto opened = RuntimeDirectory::open(theirs);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().detail, HasSubstr("belongs to or is writable by somebody else"));
}

TEST_F(Directories, ThatCannotBeMadeSayWhere) {
  const Error error = refusal_of("no/such/parent");
  EXPECT_EQ(error.code, ErrorCode::kHost);
  EXPECT_THAT(to_string(error), HasSubstr("no/such/parent: No such file or directory"));
}

// Whoever only looks leaves nothing, and says what a run would.
TEST_F(Directories, ThatAreLookedAtAreNotMade) {
  EXPECT_TRUE(RuntimeDirectory::check(path_of("run")));
  EXPECT_TRUE(fs::is_empty(path_of("run/runs")));
  EXPECT_TRUE(fs::is_empty(path_of("run/ids")));
  EXPECT_TRUE(RuntimeDirectory::check(path_of("new")));
  EXPECT_FALSE(fs::exists(path_of("new")));
  fs::create_directory(path_of("half"));
  ASSERT_EQ(::chmod(path_of("half").c_str(), 0700), 0);
  EXPECT_TRUE(RuntimeDirectory::check(path_of("half")));
  EXPECT_TRUE(fs::is_empty(path_of("half")));
  const auto nowhere = RuntimeDirectory::check(path_of("no/such/parent"));
  ASSERT_FALSE(nowhere);
  EXPECT_EQ(nowhere.error().code, ErrorCode::kHost);
  EXPECT_THAT(nowhere.error().detail, HasSubstr("no/such/parent would be made"));
  fs::create_directory_symlink(path_of("run"), path_of("half/runs"));
  fs::create_directory_symlink(path_of("run"), path_of("link"));
  fs::create_directory(path_of("open"));
  ASSERT_EQ(::chmod(path_of("open").c_str(), 0777), 0);
  for (const std::string& name : {std::string("half"), std::string("link"), std::string("open")}) {
    const auto found = RuntimeDirectory::check(path_of(name));
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().detail, refusal_of(name).detail);
  }
}

// What a full disk is to a run, a limit of ours is here: nothing can be written.
TEST_F(Directories, ThatTakeNoRecordAreNamedWithTheFixByTheRunAndByWhoeverLooks) {
  const auto expect_named = [](const Result<void>& result, const std::string& path) {
    ASSERT_FALSE(result) << path;
    EXPECT_EQ(result.error().code, ErrorCode::kHost);
    EXPECT_EQ(to_string(result.error()), "write: " + path + ": File too large");
    EXPECT_THAT(result.error().fix, HasSubstr("ulimit -f"));
  };
  struct sigaction ignore{};
  struct sigaction before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(::sigaction(SIGXFSZ, &ignore, &before), 0);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const rlimit none{0, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  const auto record = Record::create(*directory_, "r");
  const auto there = RuntimeDirectory::check(path_of("run"));
  const auto to_be_made = RuntimeDirectory::check(path_of("new"));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  ASSERT_EQ(::sigaction(SIGXFSZ, &before, nullptr), 0);
  expect_named(record ? Result<void>() : record.error(), path_of("run/runs"));
  expect_named(there, path_of("run/runs"));
  expect_named(to_be_made, top_);
}

TEST_F(Directories, ThatAreRemovedWhileInUseAreNamedWithTheFix) {
  EXPECT_TRUE(directory_->check_there());
  fs::remove_all(path_of("run"));
  const auto gone = directory_->check_there();
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::kHost);
  EXPECT_THAT(gone.error().detail, HasSubstr(path_of("run") + " was removed"));
  EXPECT_THAT(gone.error().fix, HasSubstr("runtime_dir"));
}

TEST_F(Directories, AreTheSameWithASlashAtTheirEnd) {
  EXPECT_EQ(RuntimeDirectory::path_for(path_of("run//")), path_of("run"));
  EXPECT_EQ(RuntimeDirectory::path_for("/"), "/");
  fs::create_directory(path_of("elsewhere"));
  fs::create_directory_symlink(path_of("elsewhere"), path_of("link"));
  EXPECT_EQ(refusal_of("link/").code, ErrorCode::kHost) << "not followed";
  EXPECT_FALSE(RuntimeDirectory::check(path_of("link/")));
  EXPECT_TRUE(fs::is_empty(path_of("elsewhere")));
  EXPECT_TRUE(RuntimeDirectory::check(path_of("new/")));
  EXPECT_FALSE(RuntimeDirectory::check(path_of("no/new/")));
}

TEST_F(Records, GroupsOfAnotherDirectoryAreNeverTakenForDead) {
  const std::string group = directory_->group_name("0123456789abcdef");
  EXPECT_TRUE(directory_->is_dead_group(group)) << "no such record: its owner is gone";
  EXPECT_FALSE(directory_->is_dead_group("0123456789abcdef")) << "named by nobody of ours";
  auto other = RuntimeDirectory::open(path_of("other"));
  ASSERT_TRUE(other);
  EXPECT_FALSE(other->is_dead_group(group));
  EXPECT_NE(other->group_name("0123456789abcdef"), group);
}

TEST_F(Records, LiveAsLongAsTheirOwner) {
  {
    const auto record = Record::create(*directory_, "0123456789abcdef");
    ASSERT_TRUE(record);
    EXPECT_TRUE(has_record("0123456789abcdef"));
    EXPECT_FALSE(directory_->is_dead("0123456789abcdef"));
    EXPECT_TRUE(directory_->remove_dead_records().empty());
  }
  EXPECT_FALSE(has_record("0123456789abcdef"));
  EXPECT_TRUE(directory_->is_dead("0123456789abcdef"));
}

TEST_F(Records, SayWhoseTheyAre) {
  const auto record = Record::create(*directory_, "a1");
  ASSERT_TRUE(record);
  const auto text = sys::read_file(path_of("run/runs/a1.json"), 1000);
  ASSERT_TRUE(text);
  EXPECT_THAT(
      *text, MatchesRegex(
                 "\\{\"id\":\"a1\",\"pid\":[0-9]+,\"pid_started\":[0-9]+,\"started\":[0-9]+\\}\n"));
}

TEST_F(Records, AreNeverSeenUnlocked) {
  // One thread makes and drops them, the other removes whatever looks dead: it must never find any.
  std::atomic<bool> stop = false;
  std::size_t removed = 0;
  std::thread sweeper([&] {
    while (!stop) removed += directory_->remove_dead_records().size();
  });
  for (int i = 0; i < 2000; ++i) {
    const auto record = Record::create(*directory_, new_run_id());
    EXPECT_TRUE(record);
  }
  stop = true;
  sweeper.join();
  EXPECT_EQ(removed, 0U);
}

TEST_F(Records, OfADeadProcessAreRemoved) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto record = Record::create(*directory_, "dead");
    (void)::raise(SIGKILL);
  }
  ASSERT_EQ(::waitpid(pid, nullptr, 0), pid);
  ASSERT_TRUE(has_record("dead"));
  const auto alive = Record::create(*directory_, "alive");
  ASSERT_TRUE(alive);
  EXPECT_TRUE(directory_->is_dead("dead"));
  EXPECT_EQ(directory_->remove_dead_records().size(), 1U);
  EXPECT_FALSE(has_record("dead"));
  EXPECT_TRUE(has_record("alive"));
}

TEST_F(Records, ThatAreAbandonedStayForTheNextSweep) {
  {
    auto record = Record::create(*directory_, "left");
    ASSERT_TRUE(record);
    record->abandon();
    EXPECT_FALSE(directory_->is_dead("left"));
  }
  EXPECT_TRUE(has_record("left"));
  EXPECT_TRUE(directory_->is_dead("left"));
  EXPECT_EQ(directory_->remove_dead_records().size(), 1U);
}

TEST_F(Records, AreMadeOnce) {
  const auto first = Record::create(*directory_, "same");
  ASSERT_TRUE(first);
  EXPECT_FALSE(Record::create(*directory_, "same"));
  EXPECT_FALSE(directory_->is_dead("same"));
}

TEST_F(Records, MovedKeepOneOwner) {
  std::optional<Record> kept;
  {
    auto record = Record::create(*directory_, "moved");
    ASSERT_TRUE(record);
    kept.emplace(*std::move(record));
  }
  EXPECT_TRUE(has_record("moved"));
  EXPECT_FALSE(directory_->is_dead("moved"));
  kept.reset();
  EXPECT_FALSE(has_record("moved"));
}

TEST_F(Records, ThatAreLinksAreNotFollowed) {
  std::ofstream(path_of("outside.json")) << "x";
  fs::create_symlink(path_of("outside.json"), path_of("run/runs/link.json"));
  EXPECT_FALSE(directory_->is_dead("link"));
  EXPECT_TRUE(directory_->remove_dead_records().empty());
  EXPECT_TRUE(fs::exists(path_of("outside.json")));
}

// Makes one of each kind that is no regular file, named `name`(kind); a device's stands for a link.
std::vector<std::string> make_no_files(const std::string& directory,
                                       const std::function<std::string(int)>& name) {
  std::vector<std::string> paths;
  for (int kind = 0; kind < 6; ++kind) paths.push_back(directory + "/" + name(kind));
  EXPECT_EQ(::mkfifo(paths[0].c_str(), 0600), 0);
  EXPECT_TRUE(fs::create_directory(paths[1]));
  fs::create_symlink("/dev/null", paths[2]);
  fs::create_symlink("no-such-file", paths[3]);
  fs::create_symlink(paths[0], paths[4]);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  EXPECT_LT(paths[5].size(), sizeof address.sun_path);
  paths[5].copy(address.sun_path, sizeof address.sun_path - 1);
  const UniqueFd bound(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(bound.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return paths;
}

bool is_there(const std::string& path) {
  return fs::symlink_status(path).type() != fs::file_type::not_found;
}

TEST_F(Records, ThatAreNoFilesAreNeitherWaitedForNorTouched) {
  const auto paths = make_no_files(path_of("run/runs"), [](int kind) {
    return std::string(16, static_cast<char>('a' + kind)) + ".json";
  });
  EXPECT_TRUE(directory_->remove_dead_records().empty());
  for (const std::string& path : paths) {
    EXPECT_TRUE(is_there(path)) << path;
    EXPECT_FALSE(directory_->is_dead(fs::path(path).stem().string())) << path;
  }
}

TEST_F(Records, OfDevicesNamesAreFilesAsOthers) {
  for (const char* const name : {"null.json", "tty.json", "...json"}) {
    std::ofstream(path_of(std::string("run/runs/") + name)) << "x";
  }
  EXPECT_EQ(directory_->remove_dead_records().size(), 3U);
}

TEST_F(Records, OfOthersAreLeftAlone) {
  const std::string path = path_of("run/runs/theirs.json");
  std::ofstream(path) << "x";
  EXPECT_TRUE(directory_->is_dead("theirs")) << "control";
  if (::chown(path.c_str(), 12345, 12345) != 0) {
    ASSERT_EQ(errno, EPERM);
    // An ordinary user can give nothing away: then nothing of others is there.
    ASSERT_NE(::geteuid(), 0U);
    return;
  }
  EXPECT_FALSE(directory_->is_dead("theirs"));
  EXPECT_TRUE(directory_->remove_dead_records().empty());
}

TEST(RunIds, AreSixteenDigitsAndDiffer) {
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = new_run_id();
    EXPECT_THAT(id, MatchesRegex("[0-9a-f]+"));
    EXPECT_EQ(id.size(), 16U);
    EXPECT_TRUE(ids.insert(id).second);
  }
}

TEST_F(Leases, AreTheLowestFreeOnesOfTheLowerHalf) {
  auto one = lease_id(*directory_, 8);
  const auto two = lease_id(*directory_, 8);
  const auto three = lease_id(*directory_, 8);
  ASSERT_TRUE(one && two && three);
  EXPECT_EQ(one->index, 1U);
  EXPECT_EQ(two->index, 2U);
  EXPECT_EQ(three->index, 3U);
  const auto none = lease_id(*directory_, 8);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kHost);
  EXPECT_EQ(none.error().detail, "all 3 ids for runs are in use");
  one->lock.reset();
  const auto again = lease_id(*directory_, 8);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->index, 1U);
}

TEST_F(Leases, AreLookedForFromWhereTheCallerSaysAndAroundTheEnd) {
  const auto three = lease_id(*directory_, 8, 3);
  const auto one = lease_id(*directory_, 8, 3);
  ASSERT_TRUE(three && one);
  EXPECT_EQ(three->index, 3U);
  EXPECT_EQ(one->index, 1U);
}

TEST_F(Leases, OfAPoolAreKeptForItsNextRun) {
  IdPool pool(*directory_);
  auto one = pool.take(8);
  const auto two = pool.take(8);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->index, 1U);
  EXPECT_EQ(two->index, 2U);
  pool.give(*std::move(one));
  const auto others = lease_id(*directory_, 8);
  ASSERT_TRUE(others);
  EXPECT_EQ(others->index, 3U) << "id 1 stays locked";
  const auto again = pool.take(8);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->index, 1U);
}

TEST_F(Leases, GoAroundWhatIsNoFile) {
  const auto paths =
      make_no_files(path_of("run/ids"), [](int kind) { return std::to_string(1 + kind); });
  const auto lease = lease_id(*directory_, 100);
  ASSERT_TRUE(lease) << to_string(lease.error());
  EXPECT_EQ(lease->index, 1 + paths.size());
  for (const std::string& path : paths) EXPECT_TRUE(is_there(path)) << path;
}

TEST_F(Leases, OfASingleIdAreIdZeroForEverybody) {
  for (int i = 0; i < 2; ++i) {
    const auto lease = lease_id(*directory_, 1);
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->index, 0U);
    EXPECT_FALSE(lease->lock);
  }
}

TEST_F(Leases, StayInsideSmallRanges) {
  for (const std::uint32_t count : {2U, 3U}) {
    const auto lease = lease_id(*directory_, count);
    ASSERT_TRUE(lease);
    EXPECT_EQ(lease->index, 1U);
    EXPECT_FALSE(lease_id(*directory_, count));
  }
}

TEST_F(Leases, AreExclusiveBetweenProcesses) {
  constexpr int kProcesses = 16;
  auto indices = sys::pipe();
  auto hold = sys::pipe();
  ASSERT_TRUE(indices && hold);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      hold->second.reset();
      const auto lease = lease_id(*directory_, 1000);
      const std::uint32_t index = lease ? lease->index : 0;
      (void)::write(indices->second.get(), &index, sizeof index);
      char end = 0;
      (void)::read(hold->first.get(), &end, 1);  // until all have theirs
      ::_exit(0);
    }
    children.push_back(pid);
  }
  std::set<std::uint32_t> leased;
  for (int i = 0; i < kProcesses; ++i) {
    std::uint32_t index = 0;
    ASSERT_EQ(::read(indices->first.get(), &index, sizeof index), sizeof index);
    leased.insert(index);
  }
  hold->second.reset();
  for (const pid_t child : children) (void)::waitpid(child, nullptr, 0);
  EXPECT_EQ(leased.size(), std::size_t{kProcesses});
  EXPECT_EQ(leased.count(0), 0U);
}

}  // namespace
}  // namespace sbx::spawn
