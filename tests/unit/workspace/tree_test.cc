// Trees walked, measured as a tmpfs counts, and removed.
#include "runtime/workspace/tree.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/unit/workspace/disk.h"

namespace sbx::workspace::test {
namespace {

using ::testing::ElementsAre;

class Listing final : public Visitor {
 public:
  Result<void> visit(const Entry& entry) override {
    lines.push_back(entry.path);
    return {};
  }
  Result<void> leave(const std::string& path) override {
    lines.push_back("left " + path);
    return {};
  }
  std::vector<std::string> lines;
};

TEST(Walk, MeetsADirectoryBeforeWhatIsInItAndLeavesItAfterwards) {
  const TemporaryTree tree;
  tree.directory("b");
  tree.directory("b/deep");
  tree.write("b/deep/file", "");
  tree.write("b/first", "");
  tree.write("a", "");
  tree.directory("c");
  Listing listing;
  ASSERT_TRUE(walk(tree.fd(), listing));
  EXPECT_THAT(listing.lines, ElementsAre("a", "b", "c", "b/deep", "b/first", "b/deep/file",
                                         "left b/deep", "left b", "left c"));
}

TEST(Walk, DoesNotEnterLinksToDirectories) {
  const TemporaryTree tree;
  tree.symlink("/etc", "link");
  tree.symlink(".", "loop");
  Listing listing;
  ASSERT_TRUE(walk(tree.fd(), listing));
  EXPECT_THAT(listing.lines, ElementsAre("link", "loop"));
}

class Failing final : public Visitor {
 public:
  Result<void> visit(const Entry& entry) override {
    ++met;
    return entry.name == "b" ? Result<void>(invalid("no")) : Result<void>();
  }
  int met = 0;
};

TEST(Walk, EndsWithTheVisitorsError) {
  const TemporaryTree tree;
  for (const char* name : {"a", "b", "c"}) tree.write(name, "");
  Failing failing;
  const auto walked = walk(tree.fd(), failing);
  ASSERT_FALSE(walked);
  EXPECT_EQ(walked.error().detail, "no");
  EXPECT_EQ(failing.met, 2);
}

TEST(OpenInside, FollowsNoLinkAndLeavesNoTree) {
  const TemporaryTree tree;
  tree.directory("d");
  tree.symlink("d", "link");
  tree.symlink("/etc/passwd", "file");
  for (const char* path : {"link/x", "file", "../x", "d/../../x", "/etc/passwd"}) {
    EXPECT_FALSE(open_inside(tree.fd(), path, O_RDONLY)) << path;
  }
  EXPECT_TRUE(open_inside(tree.fd(), "d", O_RDONLY | O_DIRECTORY));
}

TEST(Directories, OpenADirectoryOnceForTheEntriesInIt) {
  const TemporaryTree tree;
  tree.directory("d");
  Directories directories(tree.fd());
  const auto first = directories.holding("d/a");
  const auto second = directories.holding("d/b");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_FALSE(directories.holding("nothing/a"));
  ASSERT_TRUE(directories.holding("top"));
}

TEST(Measure, OfNothingIsTheTopDirectory) {
  const TemporaryTree tree;
  const auto size = measure(tree.fd());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->bytes, 0U);
  EXPECT_EQ(size->inodes, 1U);
}

TEST(Measure, CountsWholePagesOfDataAndEveryName) {
  const TemporaryTree tree;
  tree.directory("d");
  tree.write("d/one", "x");
  tree.write("two", std::string(4097, 'x'));
  tree.write("empty", "");
  const auto size = measure(tree.fd());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->bytes, 3U * 4096);
  EXPECT_EQ(size->inodes, 5U);
}

TEST(Measure, CountsNoHoles) {
  const TemporaryTree tree;
  tree.write_sparse("hole", off_t{1} << 40);
  tree.write_sparse("island", off_t{1} << 30);
  const auto file = sys::open(tree.at("island"), O_WRONLY);
  ASSERT_TRUE(file);
  ASSERT_EQ(::pwrite(file->get(), "x", 1, 1 << 20), 1);
  const auto size = measure(tree.fd());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->bytes, 4096U);
}

TEST(Measure, CountsAFileOfSeveralNamesOnceAndItsNamesEach) {
  const TemporaryTree tree;
  tree.write("a", "x");
  ASSERT_EQ(::link(tree.at("a").c_str(), tree.at("b").c_str()), 0);
  const auto size = measure(tree.fd());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->bytes, 4096U);
  EXPECT_EQ(size->inodes, 3U);
}

TEST(Measure, CountsAPageForALongLinkAndNoneForAShortOne) {
  const TemporaryTree tree;
  tree.symlink(std::string(127, 't'), "short");
  tree.symlink(std::string(128, 't'), "long");
  const auto size = measure(tree.fd());
  ASSERT_TRUE(size);
  EXPECT_EQ(size->bytes, 4096U);
}

// The rule is the kernel's own: what is measured is what a tmpfs says is used.
TEST(Measure, AgreesWithATmpfsAboutEachKindOfEntry) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no writable /dev/shm";
  const TemporaryTree tree("/dev/shm");
  tree.write("file", std::string(5000, 'x'));
  const auto used = [&](const std::string& name) {
    return static_cast<std::uint64_t>(status_of(tree.at(name)).st_blocks) * 512;
  };
  auto file = sys::open(tree.at("file"), O_RDONLY);
  ASSERT_TRUE(file);
  EXPECT_EQ(*data_bytes(file->get(), 5000), used("file"));
  tree.write_sparse("sparse", 1 << 20);
  file = sys::open(tree.at("sparse"), O_RDWR);
  ASSERT_TRUE(file);
  ASSERT_EQ(::pwrite(file->get(), "x", 1, 300'000), 1);
  EXPECT_EQ(*data_bytes(file->get(), 1 << 20), used("sparse"));
  for (const std::size_t length : {1U, 127U, 128U, 4000U}) {
    const std::string name = "link" + std::to_string(length);
    tree.symlink(std::string(length, 't'), name);
    EXPECT_EQ(link_bytes(length), used(name)) << length;
  }
}

TEST(RemoveTree, TakesEverythingAndTouchesNothingThatALinkNames) {
  const TemporaryTree outside;
  outside.write("kept", "kept");
  const TemporaryTree tree;
  tree.directory("gone");
  tree.symlink(outside.path(), "gone/link");
  tree.symlink(outside.at("kept"), "gone/file");
  tree.directory("gone/deep");
  tree.directory("gone/deep/deeper");
  tree.write("gone/deep/deeper/x", "x");
  ASSERT_EQ(::link(outside.at("kept").c_str(), tree.at("gone/hard").c_str()), 0);
  const auto removed = remove_tree(tree.fd(), "gone");
  ASSERT_TRUE(removed) << to_string(removed.error());
  struct stat info{};
  EXPECT_NE(::lstat(tree.at("gone").c_str(), &info), 0);
  EXPECT_EQ(outside.read("kept"), "kept");
}

TEST(RemoveTree, CanBeDoneBySeveralAtOnce) {
  const TemporaryTree tree;
  tree.directory("gone");
  for (int i = 0; i < 300; ++i) {
    const std::string directory = "gone/d" + std::to_string(i);
    tree.directory(directory);
    for (const char* name : {"/a", "/b", "/c"}) tree.write(directory + name, "x");
  }
  const pid_t other = ::fork();
  if (other == 0) ::_exit(remove_tree(tree.fd(), "gone") ? 0 : 1);
  const auto removed = remove_tree(tree.fd(), "gone");
  EXPECT_TRUE(removed) << to_string(removed.error());
  int status = -1;
  EXPECT_EQ(::waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(remove_tree(tree.fd(), "gone")) << "what is not there is removed";
}

TEST(RemoveTree, OfALinkIsRefused) {
  const TemporaryTree outside;
  const TemporaryTree tree;
  tree.symlink(outside.path(), "link");
  EXPECT_FALSE(remove_tree(tree.fd(), "link"));
  EXPECT_EQ(status_of(tree.at("link")).st_mode & S_IFMT, static_cast<mode_t>(S_IFLNK));
}

}  // namespace
}  // namespace sbx::workspace::test
