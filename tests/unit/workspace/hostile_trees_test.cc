// What a payload may leave in /work to reach beyond it, or to stop the rest from being saved.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/xattr.h>

#include <string>

#include "runtime/plan/flat_plan.h"
#include "runtime/workspace/fill_stream.h"
#include "tests/unit/workspace/disk.h"

namespace sbx::workspace::test {
namespace {

using ::testing::HasSubstr;

class HostileTrees : public ::testing::Test {
 protected:
  void TearDown() override {
    // Whatever was planted: nothing outside is read, written, owned or renamed.
    EXPECT_EQ(outside_.read("secret"), "secret");
    EXPECT_EQ(status_of(outside_.at("secret")).st_mode & 07777U, 0644U);
    EXPECT_EQ(status_of(outside_.at("secret")).st_nlink, 1U);
  }
  HostileTrees() { outside_.write("secret", "secret"); }

  TemporaryTree outside_;
  TemporaryTree left_{::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp"};
  Disk disk_;
};

TEST_F(HostileTrees, LinksToTheHostStayLinks) {
  left_.symlink(outside_.at("secret"), "file");
  left_.symlink(outside_.path(), "directory");
  left_.symlink("/proc/self/root/etc/passwd", "magic");
  left_.symlink("loop", "loop");
  left_.symlink("..", "up");
  const Generation generation = disk_.save(left_);
  EXPECT_TRUE(generation.refused.empty());
  for (const char* name : {"file", "directory", "magic", "loop", "up"}) {
    EXPECT_TRUE(S_ISLNK(status_of(disk_.at(name)).st_mode)) << name;
  }
}

TEST_F(HostileTrees, ADirectoryThatWasALinkIsMadeAnewAndNotEntered) {
  left_.symlink(outside_.path(), "place");
  (void)disk_.save(left_);
  ASSERT_EQ(::unlink(left_.at("place").c_str()), 0);
  left_.directory("place");
  left_.write("place/secret", "secret");
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_TRUE(S_ISDIR(status_of(disk_.at("place")).st_mode));
  EXPECT_NE(status_of(disk_.at("place/secret")).st_ino, status_of(outside_.at("secret")).st_ino);
}

TEST_F(HostileTrees, ALinkThatWasADirectoryIsALink) {
  left_.directory("place");
  left_.write("place/file", "x");
  (void)disk_.save(left_);
  ASSERT_EQ(::unlink(left_.at("place/file").c_str()), 0);
  ASSERT_EQ(::rmdir(left_.at("place").c_str()), 0);
  left_.symlink(outside_.path(), "place");
  EXPECT_TRUE(disk_.save(left_).changed);
  EXPECT_TRUE(S_ISLNK(status_of(disk_.at("place")).st_mode));
}

TEST_F(HostileTrees, SpecialFilesAreRefusedEachWithItsReasonAndTheRestArrives) {
  ASSERT_EQ(::mkfifo(left_.at("fifo").c_str(), 0666), 0);
  left_.socket("socket");
  const bool can_make_devices =
      ::mknod(left_.at("device").c_str(), S_IFCHR | 0666, (1U << 8) | 3U) == 0;  // /dev/null
  left_.write("file", "x");
  const Generation generation = disk_.save(left_);
  EXPECT_EQ(reason_of(generation, "fifo"), "named pipe");
  EXPECT_EQ(reason_of(generation, "socket"), "socket");
  if (can_make_devices) {
    EXPECT_EQ(reason_of(generation, "device"), "device or other special file");
  }
  EXPECT_EQ(disk_.read("file"), "x");
  EXPECT_FALSE(disk_.has("fifo"));
  EXPECT_EQ(generation.size.inodes, 2U);
}

TEST_F(HostileTrees, NamesOfAllKindsAreKeptByteForByte) {
  const std::vector<std::string> names = {
      "new\nline", "\x1b[31mred", "\xff\xfe", "-rf",  std::string(255, 'n'), " ", "...",
      "a\\x41",    "\xcc\x81",    "tree",     "next", "session.json"};
  for (const std::string& name : names) left_.write(name, name);
  const Generation generation = disk_.save(left_);
  EXPECT_TRUE(generation.refused.empty());
  for (const std::string& name : names) EXPECT_EQ(disk_.read(name), name);
  EXPECT_EQ(generation.size.inodes, names.size() + 1);
}

// Deeper than any path can name: made step by step, as a payload would.
void dig(const TemporaryTree& tree, int levels, const std::string& name) {
  UniqueFd at(::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int level = 0; level < levels; ++level) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    auto deeper = sys::open_at(at.get(), name, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(deeper);
    at = *std::move(deeper);
  }
}

TEST_F(HostileTrees, WhatLiesBeyondTheLongestPathIsRefusedAndTheRestArrives) {
  dig(left_, 40, std::string(200, 'd'));
  left_.write("file", "x");
  const Generation generation = disk_.save(left_);
  ASSERT_EQ(generation.refused.size(), 1U);
  EXPECT_EQ(generation.refused[0].reason, "path of more than 4095 bytes or 256 components");
  EXPECT_EQ(disk_.read("file"), "x");
  EXPECT_EQ(generation.size.inodes, 22U) << "20 levels fit";
  EXPECT_TRUE(remove_tree(disk_.directory().fd(), "tree"));
  disk_.directory().directory("tree");
}

TEST_F(HostileTrees, LevelsAreSavedFilledAndRemovedUpToTheDeepestAndRefusedPastIt) {
  dig(left_, 300, "d");
  const Generation generation = disk_.save(left_);
  ASSERT_EQ(generation.refused.size(), 1U);
  EXPECT_EQ(generation.refused[0].path.size(), 2 * (kMaxDepth + 1) - 1);
  EXPECT_EQ(generation.size.inodes, kMaxDepth + 1);
  const UniqueFd memory(::memfd_create("stream", MFD_CLOEXEC));
  EXPECT_TRUE(write_fill_stream(disk_.tree().get(), 2, memory.get()));
  EXPECT_FALSE(disk_.save(left_).changed);
}

TEST_F(HostileTrees, ThousandsOfRefusedEntriesAreCountedNotListed) {
  for (int i = 0; i < 300; ++i) {
    ASSERT_EQ(::mkfifo(left_.at("fifo" + std::to_string(i)).c_str(), 0666), 0);
  }
  const Generation generation = disk_.save(left_);
  EXPECT_EQ(generation.refused.size(), collect::kMaxRefusalsListed + 1);
  EXPECT_EQ(reason_of(generation, "."), "172 more entries");
}

TEST_F(HostileTrees, RightsBeyondThePermissionsAreDropped) {
  left_.write("setuid", "x");
  ASSERT_EQ(::chmod(left_.at("setuid").c_str(), 06755), 0);
  const bool has_attributes = ::setxattr(left_.at("setuid").c_str(), "user.note", "x", 1, 0) == 0;
  (void)disk_.save(left_);
  EXPECT_EQ(status_of(disk_.at("setuid")).st_mode & 07777U, 0755U);
  EXPECT_EQ(status_of(disk_.at("setuid")).st_uid, ::geteuid());
  if (has_attributes) {
    EXPECT_EQ(::listxattr(disk_.at("setuid").c_str(), nullptr, 0), 0);
  }
}

// Swaps two entries for as long as it lives.
class Swapper {
 public:
  Swapper(const std::string& a, const std::string& b) : pid_(::fork()) {
    if (pid_ != 0) return;
    for (;;) {
      (void)::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
    }
  }
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;
  ~Swapper() {
    (void)::kill(pid_, SIGKILL);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
  }

 private:
  pid_t pid_;
};

// The tree is the daemon's alone; were it not, a fill would still read nothing outside.
TEST_F(HostileTrees, SwappingEntriesDuringAFillReachesNothingOutside) {
  left_.directory("place");
  left_.write("place/secret", "inside");
  left_.write("file", "inside");
  left_.symlink(outside_.path(), "link");
  left_.symlink(outside_.at("secret"), "file-link");
  const Swapper directories(left_.at("place"), left_.at("link"));
  const Swapper files(left_.at("file"), left_.at("file-link"));
  int filled = 0;
  for (int i = 0; i < 500; ++i) {
    const UniqueFd memory(::memfd_create("stream", MFD_CLOEXEC));
    filled += write_fill_stream(left_.fd(), 2, memory.get()) ? 1 : 0;
    ASSERT_EQ(::lseek(memory.get(), 0, SEEK_SET), 0);
    const auto stream = sys::read_all(memory.get(), 1U << 20);
    ASSERT_TRUE(stream);
    // "secret" is a name here; as content it would stand behind an extent of its length.
    const plan::FillExtent extent{0, 6};
    const std::string content =
        std::string(reinterpret_cast<const char*>(&extent), sizeof extent) + "secret";
    EXPECT_EQ(stream->find(content), std::string::npos);
  }
  EXPECT_GT(filled, 0) << "no fill was in time";
}

// Nobody is alive inside; were there somebody, he could swap entries under the walk.
TEST_F(HostileTrees, SwappingEntriesDuringTheWalkReachesNothingOutside) {
  left_.directory("place");
  left_.write("place/secret", "inside");
  left_.symlink(outside_.path(), "link");
  const Swapper swapper(left_.at("place"), left_.at("link"));
  for (int i = 0; i < 200; ++i) {
    const Generation generation = disk_.save(left_);
    for (const char* name : {"place", "link"}) {
      if (!disk_.has(name) || !S_ISDIR(status_of(disk_.at(name)).st_mode)) continue;
      const std::string secret = std::string(name) + "/secret";
      if (disk_.has(secret)) {
        EXPECT_EQ(disk_.read(secret), "inside");
      }
    }
  }
}

}  // namespace
}  // namespace sbx::workspace::test
