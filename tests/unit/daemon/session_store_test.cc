// The store on disk: what is made is there after a restart, and a death at any moment leaves either
// the old or the new.
#include "runtime/daemon/session_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <set>

#include "runtime/base/sys.h"
#include "runtime/daemon/session_directory.h"
#include "runtime/spawn/records.h"
#include "runtime/workspace/walker.h"
#include "tests/support/process.h"

namespace sbx::daemon {
namespace {

using std::chrono::seconds;
using test::TemporaryDirectory;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SessionRecord a_record(const std::string& id) {
  return {.id = id,
          .owner = 1000,
          .work = 1U << 20,
          .work_inodes = 100,
          .created = SessionTime(seconds(1'700'000'000)),
          .idle = seconds(600),
          .age = seconds(86400),
          .payload_id = 7};
}

constexpr const char* kId = "0123456789abcdef";
constexpr const char* kOther = "fedcba9876543210";

class Store : public ::testing::Test {
 protected:
  Store() { open(); }
  void open() {
    store_.reset();
    auto opened = SessionStore::open(directory_.path());
    ASSERT_TRUE(opened) << to_string(opened.error());
    store_.emplace(*std::move(opened));
  }
  [[nodiscard]] SessionStore::Loaded load() {
    auto loaded = store_->load();
    EXPECT_TRUE(loaded) << to_string(loaded.error());
    return loaded ? *std::move(loaded) : SessionStore::Loaded{};
  }
  StoredSession create(const std::string& id = kId) {
    auto made = store_->create(a_record(id), SessionTime(seconds(1'700'000'100)));
    EXPECT_TRUE(made) << to_string(made.error());
    return made ? *std::move(made) : StoredSession{};
  }
  [[nodiscard]] std::string at(const std::string& name) const {
    return directory_.path() + "/" + name;
  }
  void write(const std::string& name, std::string_view content) const {
    (void)directory_.write(name, content);
  }

  TemporaryDirectory directory_;
  std::optional<SessionStore> store_;
};

TEST_F(Store, IsTakenBackByAStartThatFails) {
  store_->take_back();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
  open();
  (void)create();
  store_->take_back();
  open();
  EXPECT_THAT(load().sessions, SizeIs(1)) << "but for what is kept in it";
}

TEST_F(Store, OfNothingLoadsNothing) {
  const auto loaded = load();
  EXPECT_THAT(loaded.sessions, IsEmpty());
  EXPECT_THAT(loaded.tombstones, IsEmpty());
  EXPECT_THAT(loaded.leftovers, IsEmpty());
  EXPECT_THAT(loaded.complaints, IsEmpty());
}

TEST_F(Store, FindsAfterARestartWhatItMade) {
  create();
  open();
  const auto loaded = load();
  ASSERT_THAT(loaded.sessions, SizeIs(1));
  EXPECT_EQ(loaded.sessions[0].record, a_record(kId));
  EXPECT_EQ(loaded.sessions[0].last_used, SessionTime(seconds(1'700'000'100)));
  EXPECT_EQ(measure_tree(loaded.sessions[0].directory.get())->inodes, 1U);
}

TEST_F(Store, IsForNobodyElsesEyes) {
  create();
  struct stat info{};
  ASSERT_EQ(::stat(at(kId).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0700U);
  ASSERT_EQ(::stat(at(std::string(kId) + "/session.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
}

TEST_F(Store, RemembersTheLastUse) {
  const StoredSession session = create();
  ASSERT_TRUE(touch(session.directory.get(), SessionTime(seconds(1'700'000'555))));
  open();
  EXPECT_EQ(load().sessions.at(0).last_used, SessionTime(seconds(1'700'000'555)));
}

TEST_F(Store, RewritesARecordAndKeepsTheLastUse) {
  const StoredSession session = create();
  SessionRecord changed = session.record;
  changed.payload_id = 99;
  ASSERT_TRUE(store_->rewrite(session.directory.get(), changed));
  open();
  const auto loaded = load();
  EXPECT_EQ(loaded.sessions.at(0).record, changed);
  EXPECT_EQ(loaded.sessions.at(0).last_used, session.last_used);
  EXPECT_THAT(loaded.leftovers, IsEmpty());
}

TEST_F(Store, IsUsedByOneDaemonAtATime) {
  const auto second = SessionStore::open(directory_.path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kHost);
  EXPECT_THAT(second.error().detail, HasSubstr("in use by another sbxd"));
}

TEST_F(Store, IsNotTouchedByOneThatIsRefused) {
  std::filesystem::remove(at("expired"));
  EXPECT_FALSE(SessionStore::open(directory_.path()));
  EXPECT_FALSE(std::filesystem::exists(at("expired"))) << "nothing is made before the lock is had";
}

TEST_F(Store, CountsSessionsWithoutOpeningThem) {
  EXPECT_EQ(*store_->count(), 0U);
  create();
  create(kOther);
  write("notes.txt", "the operator's");
  EXPECT_EQ(*store_->count(), 2U);
}

TEST_F(Store, SetsASessionAsideAndRemovesItAfterwards) {
  create();
  create(kOther);
  const auto aside = store_->set_aside(kId);
  ASSERT_TRUE(aside) << to_string(aside.error());
  EXPECT_THAT(load().sessions, SizeIs(1));
  EXPECT_THAT(load().leftovers, SizeIs(1)) << "it could be a daemon that died here";
  ASSERT_TRUE(store_->remove(*aside));
  EXPECT_THAT(load().leftovers, IsEmpty());
  EXPECT_TRUE(std::filesystem::exists(at(kOther)));
}

TEST_F(Store, BuriesNothingWhereItIsAwayAndTellsThatFromWhatCannotBeLookedAt) {
  const TemporaryDirectory above;
  const std::string parent = above.path() + "/parent";
  std::filesystem::create_directories(parent + "/store");
  const auto store = SessionStore::open(parent + "/store");
  ASSERT_TRUE(store) << to_string(store.error());
  const Tombstone tombstone{.id = kId, .owner = 1000, .expired = {}, .why = Expiry::kAge};
  std::filesystem::rename(parent, parent + "-away");
  auto buried = store->bury(tombstone);
  ASSERT_FALSE(buried);
  EXPECT_THAT(buried.error().fix, HasSubstr("move it back"));
  std::filesystem::create_symlink("parent", parent);
  buried = store->bury(tombstone);
  ASSERT_FALSE(buried);
  EXPECT_EQ(buried.error().sys_errno, ELOOP) << to_string(buried.error());
  std::filesystem::remove(parent);
  std::filesystem::rename(parent + "-away", parent);
  EXPECT_TRUE(store->bury(tombstone));
}

TEST_F(Store, OfATombstoneHasNoSessionAnyMore) {
  create();
  const Tombstone tombstone{.id = kId,
                            .owner = 1000,
                            .expired = SessionTime(seconds(1'700'001'000)),
                            .why = Expiry::kAge};
  ASSERT_TRUE(store_->bury(tombstone));
  open();
  const auto loaded = load();
  EXPECT_THAT(loaded.sessions, IsEmpty());
  ASSERT_THAT(loaded.tombstones, SizeIs(1));
  EXPECT_EQ(loaded.tombstones[0], tombstone);
  ASSERT_THAT(loaded.leftovers, SizeIs(1)) << "its files, which the daemon had no time to remove";
  ASSERT_TRUE(store_->remove(loaded.leftovers[0]));
  ASSERT_TRUE(store_->forget(kId));
  EXPECT_THAT(load().tombstones, IsEmpty());
}

TEST_F(Store, FindsEveryKindOfLeftover) {
  create();
  const std::string session = std::string(kId) + "/";
  std::filesystem::create_directories(at(".new-aaaa/tree"));
  std::filesystem::create_directories(at(".gone-bbbb/tree/deep"));
  std::filesystem::create_directories(at(session + "next-1/d"));
  write(session + "put-1", "half");
  write(session + "gone-1", "x");
  write("expired/put-1", "half");
  auto loaded = load();
  EXPECT_THAT(loaded.sessions, SizeIs(1));
  EXPECT_THAT(loaded.leftovers, SizeIs(5));
  for (const Leftover& leftover : loaded.leftovers) EXPECT_TRUE(store_->remove(leftover));
  loaded = load();
  EXPECT_THAT(loaded.leftovers, IsEmpty());
  EXPECT_THAT(loaded.tombstones, IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(at("expired")));
}

TEST_F(Store, LeavesAloneWhatIsNotItsOwnAndSaysSo) {
  create();
  write("notes.txt", "the operator's");
  std::filesystem::create_directories(at(kOther));  // no record
  std::filesystem::create_directory(at("1111111111111111"));
  write("1111111111111111/session.json", to_text(a_record(kId)));  // another's
  std::filesystem::create_symlink("/etc", at("2222222222222222"));
  write("expired/3333333333333333", "no tombstone");
  const auto loaded = load();
  EXPECT_THAT(loaded.sessions, SizeIs(1));
  EXPECT_THAT(loaded.leftovers, IsEmpty());
  EXPECT_THAT(loaded.complaints, SizeIs(5));
  EXPECT_TRUE(std::filesystem::exists(at("notes.txt")));
}

TEST_F(Store, KeepsARecordThatIsDamagedForTheOperator) {
  create();
  write(std::string(kId) + "/session.json", "{\"format\":");
  const auto loaded = load();
  EXPECT_THAT(loaded.sessions, IsEmpty());
  EXPECT_THAT(loaded.leftovers, IsEmpty()) << "its files are somebody's work";
  ASSERT_THAT(loaded.complaints, SizeIs(1));
  EXPECT_THAT(loaded.complaints[0], HasSubstr(kId));
}

TEST_F(Store, TellsWhatADirectoryThatIsNoneLacks) {
  const auto opened = SessionStore::open(at("nothing"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kHost);
  EXPECT_THAT(opened.error().fix, HasSubstr("--state-dir"));
}

// What a run left lies in `left`; a forked walker tells of it, as in the daemon.
Result<SavedTree> save(int session, const std::string& left) {
  SBX_ASSIGN(const plan::WorkspaceSize size, measure_tree(session));
  SBX_ASSIGN(auto sockets, sys::seqpacket_pair());
  SBX_ASSIGN(const UniqueFd directory, sys::open(left, O_PATH | O_DIRECTORY));
  const pid_t walker = ::fork();
  if (walker == 0) {
    workspace::serve_walk(directory.get(), sockets.second.get());
    ::_exit(0);
  }
  sockets.second.reset();
  auto saved = save_tree(session, sockets.first.get(), size);
  (void)::waitpid(walker, nullptr, 0);
  return saved;
}

TEST_F(Store, SavesATreeAndLeavesTheOldOneToBeRemoved) {
  const StoredSession session = create();
  const TemporaryDirectory left;
  (void)left.write("file", "new");
  const auto saved = save(session.directory.get(), left.path());
  ASSERT_TRUE(saved) << to_string(saved.error());
  EXPECT_TRUE(saved->generation.changed);
  EXPECT_EQ(test::read_text(at(std::string(kId) + "/tree/file")), "new");
  EXPECT_THAT(load().leftovers, SizeIs(1));
  ASSERT_TRUE(remove_beside(session.directory.get(), saved->old_name));
  EXPECT_THAT(load().leftovers, IsEmpty());
}

// Runs in a child, with a tmpfs of 256 KiB as the disk: in a namespace of its own nothing is left.
int save_to_full_disk(const std::string& left, const std::string& mount_point) {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
      !sys::write_file("/proc/self/setgroups", "deny") ||
      !sys::write_file("/proc/self/uid_map", "0 " + uid + " 1") ||
      !sys::write_file("/proc/self/gid_map", "0 " + gid + " 1") ||
      ::mount("", mount_point.c_str(), "tmpfs", 0, "size=256k") != 0) {
    return 77;
  }
  const auto store = SessionStore::open(mount_point);
  if (!store) return 1;
  const auto session = store->create(a_record(kId), SessionTime(seconds(1'700'000'000)));
  if (!session) return 2;
  const auto saved = save(session->directory.get(), left);
  if (saved) return 3;
  const Error& error = saved.error();
  return error.code == ErrorCode::kHost && error.sys_errno == ENOSPC && !error.fix.empty() ? 0 : 4;
}

TEST_F(Store, TellsOfAFullDiskAsTheHostsLack) {
  const TemporaryDirectory left;
  (void)left.write("big", std::string(1U << 20, 'x'));
  const TemporaryDirectory mount_point;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(save_to_full_disk(left.path(), mount_point.path()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespace to mount a small disk in";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(Store, PutsUploadsInPlaceAndDeletesEntries) {
  const StoredSession session = create();
  const int directory = session.directory.get();
  auto upload = begin_upload(directory);
  ASSERT_TRUE(upload);
  ASSERT_TRUE(sys::write_all(upload->file.get(), "content"));
  const auto put = finish_upload(directory, upload->file.get(), upload->name, "d/f", 1 << 20, 100);
  ASSERT_TRUE(put) << to_string(put.error());
  EXPECT_EQ(put->bytes, 4096);
  EXPECT_EQ(put->inodes, 2);
  EXPECT_EQ(test::read_text(at(std::string(kId) + "/tree/d/f")), "content");
  EXPECT_THAT(load().leftovers, IsEmpty());
  const auto deleted = delete_entry(directory, "d");
  ASSERT_TRUE(deleted) << to_string(deleted.error());
  EXPECT_EQ(measure_tree(directory)->inodes, 1U);
  ASSERT_TRUE(remove_beside(directory, deleted->old_name));
  EXPECT_THAT(load().leftovers, IsEmpty());
}

// A tree whose files all hold the same number is whole; the number must be one that was announced,
// and not older than the last one that was said to be saved.
class KilledAtRandomMoments : public Store {
 protected:
  static constexpr int kFiles = 12;

  static Result<std::pair<UniqueFd, UniqueFd>> pipe_of_child() {
    SBX_ASSIGN(auto pipe, sys::pipe());  // where it is full, a fast child waits
    SBX_TRY(sys::set_nonblocking(pipe.first.get(), true));
    return pipe;
  }

  // What was measured may have been a quiet moment: until something is done, twice the time.
  static void allow_more(std::chrono::nanoseconds& of_one, int done) {
    if (done == 0) of_one = std::min<std::chrono::nanoseconds>(2 * of_one, std::chrono::seconds(1));
  }

  // Lets the child work for some time, up to that of several of its works on this disk.
  void kill_some_time(pid_t child, std::chrono::nanoseconds of_one) {
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    pollfd end{pidfd.get(), POLLIN, 0};
    const auto most = static_cast<std::uint64_t>(of_one.count()) * 5;
    const auto chosen = static_cast<long>(random_() % most);
    const timespec patience{chosen / 1'000'000'000, chosen % 1'000'000'000};
    EXPECT_EQ(::ppoll(&end, 1, &patience, nullptr), 0) << "the child gave up";
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }

  // In a child: saves generation after generation, and says each number before and after.
  [[noreturn]] void save_for_ever(int session, int said) {
    store_.reset();  // its lock is ours alone, and not our walkers'
    for (int number = 1;; ++number) {
      for (int i = 0; i < kFiles; ++i) {
        (void)left_.write("f" + std::to_string(i), std::to_string(number));
      }
      const auto saved = save(session, left_.path());
      if (!saved) ::_exit(1);
      if (::write(said, &number, sizeof number) != sizeof number) ::_exit(1);
      (void)remove_beside(session, saved->old_name);
    }
  }

  template <typename Work>
  static std::chrono::nanoseconds time_of(Work work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::steady_clock::now() - begin;
  }

  TemporaryDirectory left_;
  std::mt19937_64 random_{20240501};  // fixed: a failure can be had again

  // The number in all files; fails the test when they differ.
  int number_of_tree() const {
    std::set<std::string> numbers;
    for (int i = 0; i < kFiles; ++i) {
      const std::string path = at(std::string(kId) + "/tree/f" + std::to_string(i));
      numbers.insert(std::filesystem::exists(path) ? test::read_text(path) : "0");
    }
    EXPECT_EQ(numbers.size(), 1U) << "a torn tree";
    return std::stoi(*numbers.begin());
  }
};

TEST_F(KilledAtRandomMoments, AStoreHasEveryTreeThatWasSaidToBeSavedAndNoTornOne) {
  const StoredSession session = create();
  (void)left_.write("first", "x");
  auto of_one = time_of([&] { EXPECT_TRUE(save(session.directory.get(), left_.path())); });
  std::filesystem::remove(left_.path() + "/first");
  int saved_at_all = 0;
  for (int round = 0; round < 40; ++round) {
    auto pipe = pipe_of_child();
    ASSERT_TRUE(pipe);
    const pid_t child = ::fork();
    if (child == 0) save_for_ever(session.directory.get(), pipe->second.get());
    pipe->second.reset();
    kill_some_time(child, of_one);
    int acknowledged = 0;
    for (int number = 0; ::read(pipe->first.get(), &number, sizeof number) == sizeof number;) {
      acknowledged = number;
    }
    saved_at_all += acknowledged;
    allow_more(of_one, saved_at_all);
    // Each child counts from 1 again, on the tree of the one before.
    const int found = number_of_tree();
    if (acknowledged > 0) {
      EXPECT_GE(found, acknowledged);
      EXPECT_LE(found, acknowledged + 1);
    }
    open();
    const auto loaded = load();
    ASSERT_THAT(loaded.sessions, SizeIs(1));
    for (const Leftover& leftover : loaded.leftovers) EXPECT_TRUE(store_->remove(leftover));
    EXPECT_THAT(load().leftovers, IsEmpty());
  }
  EXPECT_GT(saved_at_all, 0) << "the children were killed before they had saved anything";
}

TEST_F(KilledAtRandomMoments, AStoreHasEveryUploadThatWasAcknowledged) {
  const StoredSession session = create();
  const int directory = session.directory.get();
  auto of_one = time_of([&] {
    auto upload = begin_upload(directory);
    ASSERT_TRUE(upload);
    EXPECT_TRUE(finish_upload(directory, upload->file.get(), upload->name, "first", 1 << 20, 9));
  });
  int acknowledged = 0;
  for (int round = 0; round < 30; ++round) {
    auto pipe = pipe_of_child();
    ASSERT_TRUE(pipe);
    const pid_t child = ::fork();
    if (child == 0) {
      for (int number = acknowledged + 1;; ++number) {
        auto upload = begin_upload(directory);
        const std::string content(static_cast<std::size_t>(number % 7) * 5000 + 1, 'x');
        if (!upload || !sys::write_all(upload->file.get(), content)) ::_exit(1);
        const std::string path = "d" + std::to_string(number % 5) + "/" + std::to_string(number);
        if (!finish_upload(directory, upload->file.get(), upload->name, path, 1U << 30, 1U << 20)) {
          ::_exit(1);
        }
        if (::write(pipe->second.get(), &number, sizeof number) != sizeof number) ::_exit(1);
      }
    }
    pipe->second.reset();
    kill_some_time(child, of_one);
    for (int number = 0; ::read(pipe->first.get(), &number, sizeof number) == sizeof number;) {
      acknowledged = number;
    }
    allow_more(of_one, acknowledged);
  }
  EXPECT_GT(acknowledged, 0);
  for (int number = 1; number <= acknowledged; ++number) {
    const std::string path = at(std::string(kId) + "/tree/d" + std::to_string(number % 5) + "/" +
                                std::to_string(number));
    ASSERT_TRUE(std::filesystem::exists(path)) << number;
    EXPECT_EQ(std::filesystem::file_size(path), static_cast<std::size_t>(number % 7) * 5000 + 1);
  }
}

}  // namespace
}  // namespace sbx::daemon
