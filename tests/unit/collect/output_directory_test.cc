// --output-dir against a target in which someone planted something, and against kills.
#include "runtime/collect/output_directory.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <filesystem>

#include "tests/unit/collect/tree.h"

namespace sbx::collect {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

mode_t mode_of(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

class OutputDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override { before_ = ::umask(022); }
  void TearDown() override { (void)::umask(before_); }

  Walk save() {
    auto target = OutputDirectory::open(target_.path());
    EXPECT_TRUE(target) << to_string(target.error());
    return collect_tree(tree_, default_limits(), target->sink());
  }
  TemporaryTree tree_;    // what the sandbox made
  TemporaryTree target_;  // the caller's directory
  TemporaryTree host_;    // what must stay as it is
  mode_t before_ = 022;
};

TEST_F(OutputDirectoryTest, SavesFilesAndTheirDirectoriesWithPlainModes) {
  tree_.directory("d");
  tree_.write("d/a.txt", "one");
  tree_.write("b", "two");
  ASSERT_EQ(::chmod(tree_.at("b").c_str(), 04777), 0);
  const Walk walk = save();
  EXPECT_EQ(target_.read("d/a.txt"), "one");
  EXPECT_EQ(target_.read("b"), "two");
  EXPECT_EQ(mode_of(target_.at("b")), 0644U) << "neither setuid nor executable";
  EXPECT_EQ(mode_of(target_.at("d")), 0755U);
  EXPECT_EQ(walk.find("d/a.txt")->saved_as, target_.at("d/a.txt"));
  EXPECT_THAT(names_in(target_.path()), UnorderedElementsAre("b", "d"));
}

TEST_F(OutputDirectoryTest, HonoursTheUmask) {
  tree_.write("a", "x");
  (void)::umask(077);
  (void)save();
  EXPECT_EQ(mode_of(target_.at("a")), 0600U);
}

TEST_F(OutputDirectoryTest, ReplacesARegularFileAndLeavesItsOtherNamesAlone) {
  host_.write("linked", "host");
  ASSERT_EQ(::link(host_.at("linked").c_str(), target_.at("a").c_str()), 0);
  tree_.write("a", "new");
  const Walk walk = save();
  EXPECT_EQ(target_.read("a"), "new");
  EXPECT_EQ(host_.read("linked"), "host") << "replaced, not written through";
  EXPECT_THAT(names_in(target_.path()), UnorderedElementsAre("a"));
}

TEST_F(OutputDirectoryTest, NeverWritesOverOrThroughALink) {
  host_.write("victim", "host");
  target_.symlink(host_.at("victim"), "file");
  target_.symlink(host_.path(), "dir");
  target_.symlink("nowhere", "dangling");
  tree_.write("file", "evil");
  tree_.write("dangling", "evil");
  tree_.directory("dir");
  tree_.write("dir/victim", "evil");
  tree_.write("dir/new", "evil");
  tree_.write("good", "good");
  target_.write("control", "x");
  EXPECT_EQ(target_.read("dir/victim"), "host") << "control: a naive write would go there";
  const Walk walk = save();
  EXPECT_EQ(host_.read("victim"), "host");
  EXPECT_THAT(names_in(host_.path()), UnorderedElementsAre("victim"));
  EXPECT_THAT(walk.reason("file"), HasSubstr("a symbolic link is there"));
  EXPECT_THAT(walk.reason("dangling"), HasSubstr("a symbolic link is there"));
  EXPECT_THAT(walk.reason("dir/victim"), HasSubstr("dir is there and is not a directory"));
  EXPECT_THAT(walk.reason("dir/new"), HasSubstr("dir is there and is not a directory"));
  EXPECT_EQ(target_.read("good"), "good") << "the rest still arrives";
}

TEST_F(OutputDirectoryTest, RefusesNamesTakenByDirectoriesAndSpecialFiles) {
  target_.directory("dir");
  ASSERT_EQ(::mkfifo(target_.at("fifo").c_str(), 0600), 0);
  target_.write("file", "kept");
  tree_.write("dir", "x");
  tree_.write("fifo", "x");
  tree_.directory("file");
  tree_.write("file/below", "x");
  const Walk walk = save();
  EXPECT_THAT(walk.reason("dir"), HasSubstr("a directory is there"));
  EXPECT_THAT(walk.reason("fifo"), HasSubstr("a special file is there"));
  EXPECT_THAT(walk.reason("file/below"), HasSubstr("is not a directory"));
  EXPECT_EQ(target_.read("file"), "kept");
}

TEST_F(OutputDirectoryTest, SaysThatItWasRemovedMeanwhile) {
  const std::string path = target_.at("out");
  auto target = OutputDirectory::open(path);
  ASSERT_TRUE(target);
  tree_.write("a", "x");
  tree_.directory("d");
  tree_.write("d/b", "x");
  ASSERT_EQ(::rmdir(path.c_str()), 0);
  for (const bool made_again : {false, true}) {
    if (made_again) target_.directory("out");
    const Walk walk = collect_tree(tree_, default_limits(), target->sink());
    EXPECT_EQ(walk.files.size(), 0U);
    EXPECT_THAT(walk.reason("a"), HasSubstr(path + " was removed while the program ran"));
    EXPECT_THAT(walk.reason("d/b"), HasSubstr("was removed"));
  }
  EXPECT_THAT(names_in(path), ::testing::IsEmpty());
}

// Where no file can be made, that shows before a program has run for nothing; access(2) tells root
// that he may.
TEST_F(OutputDirectoryTest, RefusesFileSystemsThatTakeNoFiles) {
  for (const std::string path : {"/proc", "/proc/self/fd", "/sys", "/sys/kernel"}) {
    const auto opened = OutputDirectory::open(path);
    ASSERT_FALSE(opened) << path;
    EXPECT_EQ(opened.error().detail, path + " cannot be written");
    EXPECT_FALSE(OutputDirectory::check(path)) << path;
  }
}

TEST_F(OutputDirectoryTest, SavesUnderTheExactBytesOfAName) {
  const std::string longest(255, '\xFF');
  for (const std::string& name : {std::string("-rf"), std::string("a\nb"), longest}) {
    tree_.write(name, name);
  }
  const Walk walk = save();
  EXPECT_EQ(walk.files.size(), 3U);
  EXPECT_EQ(target_.read("-rf"), "-rf");
  EXPECT_EQ(target_.read(longest), longest);
}

TEST_F(OutputDirectoryTest, NeverLeavesTheTargetWhateverThePathSays) {
  auto target = OutputDirectory::open(target_.path());
  ASSERT_TRUE(target);
  tree_.write("f", "x");
  const UniqueFd fd(::open(tree_.at("f").c_str(), O_RDONLY | O_CLOEXEC));
  for (const char* path : {"../escaped", "/tmp/escaped", "a/../../escaped", "", ".", ".."}) {
    CollectedFile file{.path = path, .raw_path = path, .size = 1};
    EXPECT_FALSE(target->sink()(file, fd.get())) << path;
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/escaped"));
}

TEST_F(OutputDirectoryTest, MakesTheDirectoryWhenItsParentExists) {
  EXPECT_TRUE(OutputDirectory::open(target_.at("new")));
  EXPECT_EQ(mode_of(target_.at("new")), 0755U);
  auto deep = OutputDirectory::open(target_.at("no/such/parent"));
  ASSERT_FALSE(deep);
  EXPECT_EQ(deep.error().code, ErrorCode::kInvalid);
}

TEST_F(OutputDirectoryTest, ChecksBeforeTheRunThatItCanWrite) {
  target_.write("file", "x");
  auto file = OutputDirectory::open(target_.at("file"));
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ErrorCode::kInvalid);
  auto proc = OutputDirectory::open("/proc/self");
  ASSERT_FALSE(proc);
  EXPECT_EQ(proc.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(proc.error().fix.empty());
}

TEST_F(OutputDirectoryTest, LeavesNothingBehindWhenTheCopyFails) {
  auto target = OutputDirectory::open(target_.path());
  ASSERT_TRUE(target);
  target_.write("taken", "old");
  tree_.write("short", "x");
  const UniqueFd fd(::open(tree_.at("short").c_str(), O_RDONLY | O_CLOEXEC));
  for (const char* name : {"fresh", "taken"}) {
    CollectedFile file{.path = name, .raw_path = name, .size = 5};
    EXPECT_FALSE(target->sink()(file, fd.get()));
  }
  EXPECT_THAT(names_in(target_.path()), UnorderedElementsAre("taken"));
  EXPECT_EQ(target_.read("taken"), "old");
}

TEST_F(OutputDirectoryTest, KilledAtAnyMomentItLeavesWholeFilesAndNoTemporaryName) {
  const std::string old_content(100'000, 'o');
  const std::string new_content(100'000, 'n');
  tree_.write("f", new_content);
  const UniqueFd fd(::open(tree_.at("f").c_str(), O_RDONLY | O_CLOEXEC));
  target_.write("f", old_content);
  auto target = OutputDirectory::open(target_.path());
  ASSERT_TRUE(target);
  for (int i = 0; i < 200; ++i) {
    auto pipe = sys::pipe();
    ASSERT_TRUE(pipe);
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        CollectedFile file{.path = "f", .raw_path = "f", .size = new_content.size()};
        if (!target->sink()(file, fd.get())) ::_exit(1);
        if (!sys::write_all(pipe->second.get(), "x")) ::_exit(2);
      }
    }
    char byte = 0;
    ASSERT_EQ(::read(pipe->first.get(), &byte, 1), 1);  // saving over and over by now
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    pipe->second.reset();
    while (::read(pipe->first.get(), &byte, 1) > 0) continue;  // its own child is done at EOF
    ASSERT_THAT(names_in(target_.path()), UnorderedElementsAre("f"));
    ASSERT_EQ(std::filesystem::file_size(target_.at("f")), new_content.size());
  }
}

}  // namespace
}  // namespace sbx::collect
