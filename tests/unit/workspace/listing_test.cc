// Pages of a tree's entries: in order, without gaps, bounded.
#include "runtime/workspace/listing.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "tests/unit/workspace/disk.h"

namespace sbx::workspace::test {
namespace {

using ::testing::ElementsAre;

constexpr std::size_t kPlenty = 1U << 20;

std::vector<std::string> paths(const Listing& listing) {
  std::vector<std::string> all;
  for (const ListedEntry& entry : listing.entries) all.push_back(entry.path);
  return all;
}

TEST(Listings, AreInByteOrderOfTheWholePaths) {
  const TemporaryTree tree;
  tree.directory("a");
  tree.write("a/z", "");
  tree.write("a-b", "");  // '-' sorts before '/'
  tree.write("B", "");
  const auto listing = list_entries(tree.fd(), "", kPlenty, kPlenty);
  ASSERT_TRUE(listing);
  EXPECT_THAT(paths(*listing), ElementsAre("B", "a", "a-b", "a/z"));
  EXPECT_FALSE(listing->more);
}

TEST(Listings, SayWhatEachEntryIs) {
  const TemporaryTree tree;
  tree.directory("d");
  tree.write("f", "12345");
  ASSERT_EQ(::chmod(tree.at("f").c_str(), 0750), 0);
  tree.symlink("../target", "l");
  const auto listing = list_entries(tree.fd(), "", kPlenty, kPlenty);
  ASSERT_TRUE(listing);
  ASSERT_EQ(listing->entries.size(), 3U);
  EXPECT_EQ(listing->entries[0].kind, EntryKind::kDirectory);
  EXPECT_EQ(listing->entries[1].kind, EntryKind::kFile);
  EXPECT_EQ(listing->entries[1].size, 5U);
  EXPECT_EQ(listing->entries[1].mode, 0750U);
  EXPECT_EQ(listing->entries[2].kind, EntryKind::kSymlink);
  EXPECT_EQ(listing->entries[2].target, "../target");
}

// Every way of cutting a tree into pages gives the whole tree.
TEST(Listings, InPagesAreTheWholeTreeWhateverThePagesSizes) {
  const TemporaryTree tree;
  for (const char* directory : {"a", "a/b", "c", "x", "x/y"}) tree.directory(directory);
  for (const char* file : {"a/1", "a/b/2", "a.3", "c/4", "x/y/5", "x/6", "z"}) {
    tree.write(file, "");
  }
  tree.write("b" + std::string(200, 'b'), "");
  tree.symlink(std::string(300, 't'), "d");
  const auto whole = list_entries(tree.fd(), "", kPlenty, kPlenty);
  ASSERT_TRUE(whole);
  const auto expected = paths(*whole);
  EXPECT_EQ(expected.size(), 14U);
  EXPECT_TRUE(std::is_sorted(expected.begin(), expected.end()));
  for (const std::size_t entries : {1U, 2U, 3U, 5U, 100U}) {
    for (const std::size_t bytes : {1U, 10U, 250U, 10000U}) {
      std::vector<std::string> gathered;
      for (std::string after;;) {
        const auto page = list_entries(tree.fd(), after, entries, bytes);
        ASSERT_TRUE(page);
        ASSERT_FALSE(page->entries.empty());
        EXPECT_LE(page->entries.size(), entries);
        for (std::string& path : paths(*page)) gathered.push_back(std::move(path));
        if (!page->more) break;
        after = gathered.back();
      }
      EXPECT_EQ(gathered, expected) << entries << " " << bytes;
    }
  }
}

TEST(Listings, OfNothingBehindTheLastAreEmpty) {
  const TemporaryTree tree;
  tree.write("a", "");
  const auto listing = list_entries(tree.fd(), "a", kPlenty, kPlenty);
  ASSERT_TRUE(listing);
  EXPECT_TRUE(listing->entries.empty());
  EXPECT_FALSE(listing->more);
}

}  // namespace
}  // namespace sbx::workspace::test
