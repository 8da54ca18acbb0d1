// Entries of a tree put in place, taken out and opened by paths that a client chose.
#include "runtime/workspace/edit.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <string>

#include "tests/unit/workspace/disk.h"

namespace sbx::workspace::test {
namespace {

constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;

TEST(ValidPath, IsRelativeAndPlain) {
  for (const std::string& path :
       {std::string("a"), std::string("a/b/c"), std::string("..."), std::string("a b\n"),
        std::string("\xff"), std::string("-rf"), std::string(255, 'n'),
        std::string(255, 'n') + "/" + std::string(255, 'm')}) {
    EXPECT_TRUE(is_valid_path(path)) << path;
  }
  for (const std::string& path :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("."),
        std::string("a/../b"), std::string(".."), std::string("a\0b", 3), std::string(256, 'n'),
        "a/" + std::string(256, 'n')}) {
    EXPECT_FALSE(is_valid_path(path)) << path;
  }
  std::string longest;
  while (longest.size() < 3900) longest += std::string(200, 'd') + "/";
  EXPECT_TRUE(is_valid_path(longest + std::string(4095 - longest.size(), 'f')));
  EXPECT_FALSE(is_valid_path(longest + std::string(4096 - longest.size(), 'f')));
  std::string deepest;
  while (deepest.size() < 2 * (kMaxDepth - 1)) deepest += "d/";
  EXPECT_TRUE(is_valid_path(deepest + "f"));
  EXPECT_FALSE(is_valid_path(deepest + "d/f"));
}

// A tree, and a directory beside it for what comes and goes.
class Edit : public ::testing::Test {
 protected:
  Edit() {
    place_.directory("tree");
    place_.directory("beside");
    tree_ = *sys::open(place_.at("tree"), O_RDONLY | O_DIRECTORY);
    beside_ = *sys::open(place_.at("beside"), O_RDONLY | O_DIRECTORY);
  }
  Result<SizeChange> put(const std::string& path, const std::string& content,
                         std::uint64_t bytes = kMuch, std::uint64_t inodes = kMuch) {
    place_.write("beside/new", content);
    return put_file(tree_.get(), path, beside_.get(), "new", bytes, inodes);
  }
  Result<SizeChange> take(const std::string& path) {
    return take_out(tree_.get(), path, beside_.get(), "old" + std::to_string(++taken_));
  }
  [[nodiscard]] std::string read(const std::string& path) const {
    return place_.read("tree/" + path);
  }
  [[nodiscard]] plan::WorkspaceSize size() const { return *measure(tree_.get()); }
  void expect_errno(const Result<SizeChange>& result, int sys_errno) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().sys_errno, sys_errno);
  }

  TemporaryTree place_;
  UniqueFd tree_, beside_;
  int taken_ = 0;
};

// The figure that is kept is what a measurement says.
class Account {
 public:
  explicit Account(plan::WorkspaceSize size) : size_(size) {}
  void add(const Result<SizeChange>& change) {
    ASSERT_TRUE(change) << to_string(change.error());
    ASSERT_TRUE(change->exact);
    size_.bytes += static_cast<std::uint64_t>(change->bytes);
    size_.inodes += static_cast<std::uint64_t>(change->inodes);
  }
  void expect(plan::WorkspaceSize measured) const {
    EXPECT_EQ(size_.bytes, measured.bytes);
    EXPECT_EQ(size_.inodes, measured.inodes);
  }

 private:
  plan::WorkspaceSize size_;
};

TEST_F(Edit, PutsAFileAndTheDirectoriesOnItsWay) {
  Account account(size());
  const auto put_it = put("a/b/c", std::string(5000, 'x'));
  account.add(put_it);
  EXPECT_FALSE(put_it->replaced);
  EXPECT_EQ(read("a/b/c"), std::string(5000, 'x'));
  EXPECT_EQ(status_of(place_.at("tree/a/b")).st_mode & 07777U, 0755U);
  account.expect(size());
}

TEST_F(Edit, ReplacesAFileWhole) {
  ASSERT_TRUE(put("f", std::string(9000, 'o')));
  Account account(size());
  const auto replaced = put("f", "new");
  account.add(replaced);
  EXPECT_TRUE(replaced->replaced);
  EXPECT_EQ(replaced->bytes, -2 * 4096);
  EXPECT_EQ(read("f"), "new");
  account.expect(size());
}

TEST_F(Edit, ReplacesALinkAndNotWhatItNames) {
  place_.write("outside", "kept");
  place_.symlink(place_.at("outside"), "tree/link");
  ASSERT_TRUE(put("link", "new"));
  EXPECT_TRUE(S_ISREG(status_of(place_.at("tree/link")).st_mode));
  EXPECT_EQ(place_.read("outside"), "kept");
}

TEST_F(Edit, GoesThroughNoLinkAndNoFile) {
  place_.directory("outside");
  place_.symlink(place_.at("outside"), "tree/link");
  place_.write("tree/file", "x");
  expect_errno(put("link/f", "x"), ELOOP);
  expect_errno(put("file/f", "x"), ENOTDIR);
  expect_errno(take("link/f"), ELOOP);
  EXPECT_FALSE(open_file(tree_.get(), "link/f"));
  EXPECT_EQ(::access(place_.at("outside/f").c_str(), F_OK), -1);
}

TEST_F(Edit, DoesNotReplaceADirectory) {
  ASSERT_TRUE(put("d/f", "x"));
  expect_errno(put("d", "x"), EISDIR);
  EXPECT_EQ(read("d/f"), "x");
}

TEST_F(Edit, IsRefusedPastTheRoomAndChangesNothing) {
  expect_errno(put("a/f", std::string(4097, 'x'), 4096, kMuch), EDQUOT);
  expect_errno(put("a/b/f", "x", kMuch, 2), EDQUOT);
  EXPECT_EQ(size().inodes, 1U) << "no directory was made";
  EXPECT_TRUE(put("a/f", std::string(4096, 'x'), 4096, 2));
  EXPECT_TRUE(put("a/f", std::string(4096, 'y'), 0, 0)) << "what it replaces is room";
  const Error bytes = put("a/f", std::string(4097, 'y'), 0, 0).error();
  EXPECT_EQ(bytes.operation, kByteQuota);
  EXPECT_EQ(bytes.detail, "4096") << "beyond what it replaces";
  const Error inodes = put("b/c/f", "x", kMuch, 2).error();
  EXPECT_EQ(inodes.operation, kInodeQuota);
  EXPECT_EQ(inodes.detail, "3");
  EXPECT_EQ(read("a/f"), std::string(4096, 'y'));
}

TEST_F(Edit, LeavesNoDirectoriesWhenTheMoveFails) {
  const auto moved = put_file(tree_.get(), "a/b/f", beside_.get(), "nothing", kMuch, kMuch);
  ASSERT_FALSE(moved);
  EXPECT_EQ(size().inodes, 1U);
}

TEST_F(Edit, TakesOutAFileALinkAndAWholeDirectory) {
  ASSERT_TRUE(put("f", std::string(5000, 'x')));
  ASSERT_TRUE(put("d/deep/g", "x"));
  place_.symlink(std::string(200, 't'), "tree/link");
  Account account(size());
  account.add(take("f"));
  account.add(take("link"));
  account.expect(size());
  const auto directory = take("d");
  ASSERT_TRUE(directory);
  EXPECT_FALSE(directory->exact) << "it must be measured";
  EXPECT_EQ(size().inodes, 1U);
  EXPECT_EQ(place_.read("beside/old3/deep/g"), "x");
}

TEST_F(Edit, OfWhatIsNotThereSaysSo) {
  expect_errno(take("nothing"), ENOENT);
  expect_errno(take("no/thing"), ENOENT);
  const auto opened = open_file(tree_.get(), "nothing");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().sys_errno, ENOENT);
}

TEST_F(Edit, OfOneNameOfSeveralIsNotExact) {
  ASSERT_TRUE(put("a", std::string(5000, 'x')));
  ASSERT_EQ(::link(place_.at("tree/a").c_str(), place_.at("tree/b").c_str()), 0);
  const auto replaced = put("a", "new");
  ASSERT_TRUE(replaced);
  EXPECT_FALSE(replaced->exact);
  EXPECT_EQ(read("b"), std::string(5000, 'x')) << "the other name keeps the old content";
}

TEST_F(Edit, KnowsWhatAPutWouldFree) {
  ASSERT_TRUE(put("d/f", std::string(5000, 'x')));
  EXPECT_EQ(*replaceable_bytes(tree_.get(), "d/f"), 8192U);
  EXPECT_EQ(*replaceable_bytes(tree_.get(), "d/g"), 0U);
  EXPECT_EQ(*replaceable_bytes(tree_.get(), "e/f"), 0U);
  EXPECT_EQ(*replaceable_bytes(tree_.get(), "d"), 0U);
}

TEST_F(Edit, OpensRegularFilesAlone) {
  ASSERT_TRUE(put("d/f", "content"));
  place_.symlink("d/f", "tree/link");
  ASSERT_EQ(::mkfifo(place_.at("tree/fifo").c_str(), 0600), 0);
  const auto file = open_file(tree_.get(), "d/f");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->info.st_size, 7);
  EXPECT_EQ(open_file(tree_.get(), "d").error().sys_errno, EISDIR);
  EXPECT_EQ(open_file(tree_.get(), "link").error().sys_errno, ELOOP);
  EXPECT_FALSE(open_file(tree_.get(), "fifo")) << "and does not wait for a writer";
}

TEST_F(Edit, OfAnOpenFileLeavesItsContent) {
  ASSERT_TRUE(put("f", "old"));
  const auto file = open_file(tree_.get(), "f");
  ASSERT_TRUE(file);
  ASSERT_TRUE(put("f", "new"));
  ASSERT_TRUE(take("f"));
  EXPECT_EQ(*sys::read_all(file->fd.get(), 100), "old");
}

}  // namespace
}  // namespace sbx::workspace::test
