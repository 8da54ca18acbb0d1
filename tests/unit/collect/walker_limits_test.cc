// Every bound of the walk, at the bound and one past it.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "runtime/collect/names.h"
#include "tests/unit/collect/tree.h"

namespace sbx::collect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

CollectLimits small_limits() {
  return {.files = 3, .file_bytes = 10, .files_bytes = 25, .file_depth = 2};
}

TEST(WalkerLimits, AllowsExactlyTheLimitOnFiles) {
  const TemporaryTree tree;
  for (const char* name : {"1", "2", "3"}) tree.write(name, "x");
  EXPECT_THAT(collect_tree(tree, small_limits()).limits_hit, IsEmpty());
  tree.write("4", "x");
  const Walk walk = collect_tree(tree, small_limits());
  EXPECT_THAT(walk.paths(), ElementsAre("1", "2", "3"));
  EXPECT_EQ(walk.reason("4"), "over the limit of 3 files (files)");
  EXPECT_THAT(walk.limits_hit, ElementsAre("files"));
}

TEST(WalkerLimits, AllowsExactlyTheLimitOnOneFileAndTheRestStillArrives) {
  const TemporaryTree tree;
  tree.write("a", std::string(11, 'x'));
  tree.write("b", std::string(10, 'x'));
  const Walk walk = collect_tree(tree, small_limits());
  EXPECT_THAT(walk.paths(), ElementsAre("b"));
  EXPECT_EQ(walk.reason("a"), "11 bytes, over the limit of 10 for one file (file_bytes)");
  EXPECT_THAT(walk.limits_hit, ElementsAre("file_bytes"));
}

TEST(WalkerLimits, AllowsExactlyTheLimitOnAllFilesTogether) {
  const TemporaryTree tree;
  tree.write("a", std::string(10, 'x'));
  tree.write("b", std::string(10, 'x'));
  tree.write("c", std::string(6, 'x'));
  tree.write("d", std::string(5, 'x'));
  const Walk walk = collect_tree(tree, small_limits());
  EXPECT_THAT(walk.paths(), ElementsAre("a", "b", "d"));
  EXPECT_THAT(walk.reason("c"), HasSubstr("over their limit of 25 (files_bytes)"));
  EXPECT_THAT(walk.limits_hit, ElementsAre("files_bytes"));
}

TEST(WalkerLimits, EntersExactlyTheLimitOnDepth) {
  const TemporaryTree tree;
  for (const char* name : {"a", "a/b", "a/b/c"}) tree.directory(name);
  tree.write("a/b/in", "x");
  tree.write("a/b/c/out", "x");
  const Walk walk = collect_tree(tree, small_limits());
  EXPECT_THAT(walk.paths(), ElementsAre("a/b/in"));
  EXPECT_EQ(walk.reason("a/b/c"), "more than 2 directories deep (file_depth)");
  EXPECT_THAT(walk.limits_hit, ElementsAre("file_depth"));
}

TEST(WalkerLimits, FilesNearTheTopComeFirstWhereALimitCuts) {
  const TemporaryTree tree;
  tree.directory("a");
  for (int i = 0; i < 10; ++i) tree.write("a/" + std::to_string(i), "x");
  tree.write("result.csv", "x");
  const Walk walk = collect_tree(tree, small_limits());
  EXPECT_THAT(walk.paths(), ElementsAre("a/0", "a/1", "result.csv"));
}

TEST(WalkerLimits, ListsExactlyTheLimitOfRefusalsAndCountsTheOthers) {
  const TemporaryTree tree;
  for (std::uint32_t i = 0; i < kMaxRefusalsListed; ++i) {
    tree.symlink("/etc/passwd", std::to_string(i));
  }
  EXPECT_EQ(collect_tree(tree).refused.size(), kMaxRefusalsListed);
  tree.symlink("/etc/passwd", "one more");
  tree.write("result", "x");
  const Walk walk = collect_tree(tree);
  ASSERT_EQ(walk.refused.size(), kMaxRefusalsListed + 1);
  EXPECT_EQ(walk.refused.back().path, ".");
  EXPECT_THAT(walk.refused.back().reason, HasSubstr("1 more entries"));
  EXPECT_THAT(walk.paths(), ElementsAre("result")) << "the rest still arrives";
  EXPECT_THAT(walk.limits_hit, IsEmpty());
}

TEST(WalkerLimits, LooksAtExactlyTheLimitOfEntries) {
  const TemporaryTree tree("/dev/shm");
  CollectLimits limits = small_limits();
  const auto bound = static_cast<int>(kEntriesPerFile * limits.files + kEntriesBase);
  for (int i = 0; i < bound; ++i) tree.symlink("x", "link" + std::to_string(i));
  EXPECT_THAT(collect_tree(tree, limits).limits_hit, IsEmpty());
  tree.write("z", "x");
  const Walk walk = collect_tree(tree, limits);
  EXPECT_THAT(walk.files, IsEmpty()) << "z is one past the bound";
  EXPECT_THAT(walk.limits_hit, ElementsAre("files"));
  tree.write("a", "x");
  EXPECT_THAT(collect_tree(tree, limits).paths(), ElementsAre("a")) << "the first in byte order";
}

void make_empty_files(const TemporaryTree& tree, int from, int to) {
  for (int i = from; i < to; ++i) {
    const UniqueFd file(::openat(tree.fd(), std::to_string(i).c_str(), O_CREAT | O_WRONLY, 0644));
  }
}

std::chrono::microseconds cpu_time_of_children() {
  rusage usage{};
  (void)::getrusage(RUSAGE_CHILDREN, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

TEST(WalkerLimits, AHundredThousandFilesEndQuicklyAndInAFewLines) {
  const TemporaryTree tree("/dev/shm");
  constexpr int kFiles = 100'000;
  make_empty_files(tree, 0, kFiles);
  const auto naive = std::distance(std::filesystem::directory_iterator(tree.path()), {});
  EXPECT_EQ(naive, kFiles) << "control";
  const auto before = cpu_time_of_children();
  const Walk walk = collect_tree(tree);
  EXPECT_LT(cpu_time_of_children() - before, std::chrono::seconds(2));
  ASSERT_FALSE(walk.error);
  EXPECT_EQ(walk.files.size(), 64U);
  EXPECT_EQ(walk.files[2].path, "10") << "the first in byte order, whatever order they are read in";
  ASSERT_EQ(walk.refused.size(), kMaxRefusalsListed + 1);
  EXPECT_THAT(walk.refused.back().reason,
              StartsWith(std::to_string(kFiles - 64 - 128) + " more entries"));
  EXPECT_THAT(walk.limits_hit, ElementsAre("files"));

  constexpr auto kBound = static_cast<int>(kMaxNamesRead);
  make_empty_files(tree, kFiles, kBound);
  EXPECT_THAT(collect_tree(tree).refused.back().reason,
              StartsWith(std::to_string(kBound - 64 - 128) + " more entries"));
  make_empty_files(tree, kBound, kBound + 1);
  EXPECT_THAT(collect_tree(tree).refused.back().reason, StartsWith("at least "));
}

TEST(WalkerLimits, ATreeDeeperThanAnyPathIsRefusedAtTheLimit) {
  const TemporaryTree tree("/dev/shm");
  constexpr int kDepth = 2000;
  UniqueFd directory(::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(::mkdirat(directory.get(), "ddd", 0755), 0) << "control: the tree can be made";
    directory.reset(::openat(directory.get(), "ddd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  tree.write("top", "x");
  const Walk walk = collect_tree(tree);
  EXPECT_THAT(walk.paths(), ElementsAre("top"));
  ASSERT_EQ(walk.refused.size(), 1U);
  EXPECT_EQ(walk.refused[0].reason, "more than 16 directories deep (file_depth)");
}

TEST(WalkerLimits, APathLongerThanThePathLimitIsRefusedAndShownCut) {
  const TemporaryTree tree;
  CollectLimits limits = default_limits();
  limits.file_depth = 100;
  const std::string component(254, 'd');
  UniqueFd directory(::open(tree.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 16; ++i) {  // 16 x 255 = 4080 bytes with the slashes
    ASSERT_EQ(::mkdirat(directory.get(), component.c_str(), 0755), 0);
    directory.reset(
        ::openat(directory.get(), component.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  for (const int length : {15, 16}) {  // 4095 and 4096 bytes
    const std::string name(static_cast<std::size_t>(length), 'f');
    const UniqueFd file(::openat(directory.get(), name.c_str(), O_CREAT | O_WRONLY, 0644));
    ASSERT_TRUE(file.valid());
  }
  const Walk walk = collect_tree(tree, limits);
  ASSERT_EQ(walk.files.size(), 1U);
  EXPECT_EQ(walk.files[0].path.size(), kMaxPathBytes);
  ASSERT_EQ(walk.refused.size(), 1U);
  EXPECT_EQ(walk.refused[0].reason, "path longer than 4095 bytes, shown cut");
}

}  // namespace
}  // namespace sbx::collect
