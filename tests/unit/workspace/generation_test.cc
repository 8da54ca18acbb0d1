// A new generation: what changed is new, what did not is the same file, and nothing is lost.
#include "runtime/workspace/generation.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include <cerrno>
#include <chrono>
#include <string>

#include "tests/unit/workspace/disk.h"

namespace sbx::workspace::test {
namespace {

using ::testing::HasSubstr;

// What a run leaves lies on a tmpfs, where it can be had.
class Generations : public ::testing::Test {
 protected:
  TemporaryTree left_{::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"};
  Disk disk_;
};

timespec modified(const std::string& path) {
  return status_of(path).st_mtim;
}

void set_time(const std::string& path, timespec time) {
  const timespec times[2] = {{0, UTIME_OMIT}, time};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

TEST_F(Generations, KeepFilesWithModeAndTimeDirectoriesAndLinks) {
  left_.directory("d");
  ASSERT_EQ(::chmod(left_.at("d").c_str(), 0751), 0);
  left_.write("d/tool", "#!/bin/sh\n");
  ASSERT_EQ(::chmod(left_.at("d/tool").c_str(), 0755), 0);
  set_time(left_.at("d/tool"), {1234567890, 5});
  left_.symlink("../../etc/passwd", "d/link");
  const Generation generation = disk_.save(left_);
  EXPECT_TRUE(generation.changed);
  EXPECT_TRUE(generation.refused.empty());
  EXPECT_EQ(generation.size.bytes, 4096U);
  EXPECT_EQ(generation.size.inodes, 4U);
  EXPECT_EQ(disk_.read("d/tool"), "#!/bin/sh\n");
  EXPECT_EQ(status_of(disk_.at("d")).st_mode & 07777U, 0751U);
  EXPECT_EQ(status_of(disk_.at("d/tool")).st_mode & 07777U, 0755U);
  EXPECT_EQ(modified(disk_.at("d/tool")).tv_sec, 1234567890);
  char target[64] = {};
  ASSERT_GT(::readlink(disk_.at("d/link").c_str(), target, sizeof target), 0);
  EXPECT_STREQ(target, "../../etc/passwd");
}

// One that is stopped, or that is never made, since its maker is: the disk is not to wait for it.
TEST_F(Generations, OfAWalkerThatTellsNothingFailInTime) {
  const TemporaryTree next("/tmp");
  const auto sockets = sys::seqpacket_pair();
  ASSERT_TRUE(sockets);
  const auto made = receive_generation(sockets->first.get(), left_.fd(), {}, next.fd(),
                                       std::chrono::milliseconds{50});
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().sys_errno, ETIMEDOUT);
  EXPECT_EQ(made.error().operation, "walker");
}

TEST_F(Generations, OfTheSameTreeAreNoChange) {
  left_.directory("d");
  left_.write("d/file", "content");
  left_.symlink("file", "d/link");
  ASSERT_EQ(::link(left_.at("d/file").c_str(), left_.at("d/other").c_str()), 0);
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_FALSE(disk_.save(left_).changed);
}

TEST_F(Generations, ShareTheFilesThatDidNotChange) {
  left_.write("same", std::string(100'000, 's'));
  left_.write("other", "1");
  (void)disk_.save(left_);
  const ino_t same = status_of(disk_.at("same")).st_ino;
  const ino_t other = status_of(disk_.at("other")).st_ino;
  left_.write("other", "2");
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_EQ(status_of(disk_.at("same")).st_ino, same);
  EXPECT_NE(status_of(disk_.at("other")).st_ino, other);
  EXPECT_EQ(status_of(disk_.at("same")).st_nlink, 1U) << "the old generation is gone";
  EXPECT_EQ(disk_.read("other"), "2");
}

TEST_F(Generations, NoticeAChangeThatLeftSizeAndTimeAsTheyWere) {
  left_.write("file", std::string(100'000, 'a'));
  const timespec time = modified(left_.at("file"));
  (void)disk_.save(left_);
  std::string content(100'000, 'a');
  content[70'000] = 'b';
  left_.write("file", content);
  set_time(left_.at("file"), time);
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_EQ(disk_.read("file"), content);
}

// On a tmpfs a store through a mapping does not touch the file's time.
TEST_F(Generations, NoticeAStoreThroughAMapping) {
  left_.write("mapped", std::string(8192, 'a'));
  (void)disk_.save(left_);
  {
    const auto file = sys::open(left_.at("mapped"), O_RDWR);
    ASSERT_TRUE(file);
    void* memory = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    static_cast<char*>(memory)[5000] = 'b';
    ASSERT_EQ(::munmap(memory, 8192), 0);
  }
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_EQ(disk_.read("mapped")[5000], 'b');
}

TEST_F(Generations, NoticeModesTimesTargetsAndWhatIsGone) {
  left_.write("file", "x");
  left_.directory("d");
  left_.symlink("a", "link");
  left_.write("gone", "x");
  (void)disk_.save(left_);
  ASSERT_EQ(::chmod(left_.at("file").c_str(), 0600), 0);
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_EQ(status_of(disk_.at("file")).st_mode & 0777U, 0600U);
  set_time(left_.at("file"), {1, 0});
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_EQ(modified(disk_.at("file")).tv_sec, 1);
  ASSERT_EQ(::chmod(left_.at("d").c_str(), 0700), 0);
  EXPECT_TRUE(disk_.save(left_).changed);
  ASSERT_EQ(::unlink(left_.at("link").c_str()), 0);
  left_.symlink("b", "link");
  EXPECT_TRUE(disk_.save(left_).changed);
  ASSERT_EQ(::unlink(left_.at("gone").c_str()), 0);
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_FALSE(disk_.has("gone"));
  EXPECT_FALSE(disk_.save(left_).changed);
}

TEST_F(Generations, LeaveTheOldOneUntouchedUntilTheSwitch) {
  left_.write("file", "old");
  ASSERT_EQ(::chmod(left_.at("file").c_str(), 0640), 0);
  (void)disk_.save(left_);
  left_.write("file", "new");
  ASSERT_EQ(::chmod(left_.at("file").c_str(), 0600), 0);
  disk_.directory().directory("next");
  const auto next = sys::open(disk_.directory().at("next"), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(next);
  ASSERT_TRUE(receive(left_, disk_.tree().get(), next->get()));
  EXPECT_EQ(disk_.read("file"), "old");
  EXPECT_EQ(status_of(disk_.at("file")).st_mode & 0777U, 0640U);
  EXPECT_EQ(disk_.directory().read("next/file"), "new");
}

TEST_F(Generations, AreReadableAndRemovableByTheOwnerWhateverTheModes) {
  left_.directory("closed");
  left_.write("closed/secret", "x");
  ASSERT_EQ(::chmod(left_.at("closed/secret").c_str(), 04000), 0);
  ASSERT_EQ(::chmod(left_.at("closed").c_str(), 01000), 0);
  if (::geteuid() != 0) {
    // The walker of a real run is root of the payload's namespace.
    ASSERT_EQ(::chmod(left_.at("closed").c_str(), 01500), 0);
    ASSERT_EQ(::chmod(left_.at("closed/secret").c_str(), 04400), 0);
  }
  (void)disk_.save(left_);
  EXPECT_EQ(status_of(disk_.at("closed")).st_mode & 07777U, 0700U);
  EXPECT_EQ(status_of(disk_.at("closed/secret")).st_mode & 07777U, 0600U);
  EXPECT_EQ(disk_.read("closed/secret"), "x");
}

TEST_F(Generations, KeepSeveralNamesOfOneFileAndCountItOnce) {
  left_.write("a", std::string(10'000, 'x'));
  ASSERT_EQ(::link(left_.at("a").c_str(), left_.at("b").c_str()), 0);
  left_.directory("d");
  ASSERT_EQ(::link(left_.at("a").c_str(), left_.at("d/c").c_str()), 0);
  const Generation generation = disk_.save(left_);
  EXPECT_EQ(generation.size.bytes, 3U * 4096);
  EXPECT_EQ(generation.size.inodes, 5U);
  EXPECT_EQ(status_of(disk_.at("a")).st_ino, status_of(disk_.at("d/c")).st_ino);
  EXPECT_EQ(status_of(disk_.at("b")).st_nlink, 3U);
  // One of them becomes a file of its own: a change, though no byte differs.
  ASSERT_EQ(::unlink(left_.at("b").c_str()), 0);
  left_.write("b", std::string(10'000, 'x'));
  set_time(left_.at("b"), modified(left_.at("a")));
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_EQ(status_of(disk_.at("b")).st_size, 10'000);
  EXPECT_EQ(disk_.read("b"), disk_.read("a"));
}

TEST_F(Generations, KeepHolesAsHolesInNoTime) {
  left_.write_sparse("hole", off_t{1} << 40);
  left_.write_sparse("islands", off_t{1} << 40);
  {
    const auto file = sys::open(left_.at("islands"), O_WRONLY);
    ASSERT_TRUE(file);
    ASSERT_EQ(::pwrite(file->get(), "one", 3, 1 << 20), 3);
    ASSERT_EQ(::pwrite(file->get(), "two", 3, off_t{1} << 39), 3);
  }
  const Generation generation = disk_.save(left_);
  EXPECT_EQ(generation.size.bytes, 2U * 4096);
  EXPECT_EQ(status_of(disk_.at("hole")).st_size, off_t{1} << 40);
  EXPECT_LE(status_of(disk_.at("islands")).st_blocks * 512, 64 * 1024);
  const auto file = sys::open(disk_.at("islands"), O_RDONLY);
  char text[4] = {};
  ASSERT_EQ(::pread(file->get(), text, 3, off_t{1} << 39), 3);
  EXPECT_STREQ(text, "two");
  EXPECT_FALSE(disk_.save(left_).changed) << "compared by their data alone";
}

TEST_F(Generations, OfManyFilesAreWhole) {
  constexpr int kFiles = 1500;
  for (int d = 0; d < 10; ++d) left_.directory("d" + std::to_string(d));
  const auto name = [](int i) { return "d" + std::to_string(i % 10) + "/f" + std::to_string(i); };
  for (int i = 0; i < kFiles; ++i) left_.write(name(i), std::to_string(i));
  EXPECT_EQ(disk_.save(left_).size.inodes, 1511U);
  for (int i = 0; i < kFiles; ++i) ASSERT_EQ(disk_.read(name(i)), std::to_string(i));
}

TEST_F(Generations, AreWorthlessWhenTheWalkerDies) {
  left_.write("file", "x");
  disk_.directory().directory("next");
  const auto next = sys::open(disk_.directory().at("next"), O_RDONLY | O_DIRECTORY);
  const auto made = receive(left_, disk_.tree().get(), next->get(), true);
  ASSERT_FALSE(made);
  EXPECT_THAT(to_string(made.error()), HasSubstr("the walker ended before the walk did"));
}

// Runs in a child, with a tmpfs of 256 KiB as the disk: in a namespace of its own nothing is left.
int save_to_full_disk(const TemporaryTree& left, const std::string& mount_point) {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
  if (!sys::write_file("/proc/self/setgroups", "deny") ||
      !sys::write_file("/proc/self/uid_map", "0 " + uid + " 1") ||
      !sys::write_file("/proc/self/gid_map", "0 " + gid + " 1")) {
    return 77;
  }
  if (::mount("", mount_point.c_str(), "tmpfs", 0, "size=256k") != 0) return 77;
  const TemporaryTree disk(mount_point);
  disk.directory("tree");
  disk.directory("next");
  disk.write("tree/kept", "kept");
  const auto tree = sys::open(disk.at("tree"), O_RDONLY | O_DIRECTORY);
  const auto next = sys::open(disk.at("next"), O_RDONLY | O_DIRECTORY);
  const auto made = receive(left, tree->get(), next->get());
  if (made) return 1;
  if (made.error().sys_errno != ENOSPC) return 2;
  return disk.read("tree/kept") == "kept" ? 0 : 3;
}

TEST_F(Generations, ThatDoNotFitOnTheDiskAreAnErrorAndTheOldOneStays) {
  left_.write("kept", "changed");
  left_.write("big", std::string(1U << 20, 'x'));
  const TemporaryTree mount_point;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(save_to_full_disk(left_, mount_point.path()));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespace to mount a small disk in";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace sbx::workspace::test
