// Hostile trees, one attack a test, each with its control: the same act by a naive reader succeeds.
#include <gmock/gmock.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <filesystem>

#include "tests/unit/collect/tree.h"

namespace sbx::collect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Walker, CollectsRegularFilesSortedByBytesWithHashAndContent) {
  const TemporaryTree tree;
  tree.directory("a");
  tree.directory("a/empty");
  tree.write("a/x.csv", "1,2\n");
  tree.write("a.txt", "abc");
  tree.write("B", "");
  const Walk walk = collect_tree(tree);
  ASSERT_FALSE(walk.error);
  EXPECT_THAT(walk.paths(), ElementsAre("B", "a.txt", "a/x.csv"));
  EXPECT_THAT(walk.refused, IsEmpty());
  EXPECT_THAT(walk.limits_hit, IsEmpty());
  const CollectedFile* file = walk.find("a.txt");
  EXPECT_EQ(file->content, "abc");
  EXPECT_EQ(file->size, 3U);
  EXPECT_EQ(file->media_type, "text/plain");
  EXPECT_EQ(file->sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(walk.find("B")->sha256,
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Walker, RefusesASymlinkToAHostFile) {
  const TemporaryTree host;
  host.write("secret", "host secret");
  const TemporaryTree tree;
  tree.symlink(host.at("secret"), "link");
  tree.write("own", "x");
  EXPECT_EQ(tree.read("link"), "host secret") << "control: a naive open follows it";
  const Walk walk = collect_tree(tree);
  EXPECT_THAT(walk.paths(), ElementsAre("own"));
  EXPECT_EQ(walk.reason("link"), "symbolic link");
}

TEST(Walker, RefusesASymlinkToADirectoryAndDoesNotEnterIt) {
  const TemporaryTree host;
  host.write("secret", "host secret");
  const TemporaryTree tree;
  tree.symlink(host.path(), "dir");
  EXPECT_EQ(tree.read("dir/secret"), "host secret") << "control";
  const Walk walk = collect_tree(tree);
  EXPECT_THAT(walk.files, IsEmpty());
  EXPECT_EQ(walk.reason("dir"), "symbolic link");
}

TEST(Walker, RefusesLinksThroughProcAndLoopsAndDanglingOnes) {
  const TemporaryTree tree;
  tree.directory("d");
  tree.symlink("/proc/self/root/etc/passwd", "proc");
  tree.symlink("../d", "d/loop");
  tree.symlink("self", "self");
  tree.symlink("nowhere", "dangling");
  EXPECT_THAT(tree.read("proc"), HasSubstr("root:")) << "control";
  EXPECT_TRUE(std::filesystem::exists(tree.at("d/loop/loop/loop"))) << "control";
  const Walk walk = collect_tree(tree);
  EXPECT_THAT(walk.files, IsEmpty());
  for (const char* name : {"proc", "d/loop", "self", "dangling"}) {
    EXPECT_EQ(walk.reason(name), "symbolic link") << name;
  }
}

TEST(Walker, RefusesAHardLinkToAHostFile) {
  const TemporaryTree host;
  host.write("secret", "host secret");
  const TemporaryTree tree;
  ASSERT_EQ(::link(host.at("secret").c_str(), tree.at("hard").c_str()), 0);
  EXPECT_EQ(tree.read("hard"), "host secret") << "control: it opens like any regular file";
  const Walk walk = collect_tree(tree);
  EXPECT_THAT(walk.files, IsEmpty());
  EXPECT_EQ(walk.reason("hard"), "hard link: the file has 2 names");
}

TEST(Walker, DoesNotBlockOnAFifoOrASocket) {
  const TemporaryTree tree;
  ASSERT_EQ(::mkfifo(tree.at("fifo").c_str(), 0666), 0);
  tree.socket("socket");
  // Control: the naive reader would get a fifo, and without O_NONBLOCK wait for a writer for ever.
  const UniqueFd naive(::open(tree.at("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_TRUE(naive.valid());
  const Walk walk = collect_tree(tree);
  EXPECT_EQ(walk.reason("fifo"), "named pipe");
  EXPECT_EQ(walk.reason("socket"), "socket");
}

TEST(Walker, RefusesADevice) {
  const TemporaryTree tree;
  if (::mknod(tree.at("null").c_str(), S_IFCHR | 0666, ::makedev(1, 3)) != 0) {
    GTEST_SKIP() << "needs mknod (root)";
  }
  const Walk walk = collect_tree(tree);
  EXPECT_EQ(walk.reason("null"), "device or other special file");
}

TEST(Walker, CountsASparseFileByItsApparentSize) {
  const TemporaryTree tree;
  tree.write_sparse("huge", off_t{1} << 40);
  struct stat info{};
  ASSERT_EQ(::stat(tree.at("huge").c_str(), &info), 0);
  EXPECT_LT(info.st_blocks, 64) << "control: on disk it is nearly nothing";
  const Walk walk = collect_tree(tree);
  EXPECT_THAT(walk.files, IsEmpty());
  EXPECT_THAT(walk.reason("huge"), HasSubstr("1099511627776 bytes, over the limit of 16M"));
  EXPECT_THAT(walk.limits_hit, ElementsAre("file_bytes"));
}

TEST(Walker, ReportsWhatItMayNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become someone else";
  const TemporaryTree tree;
  ASSERT_EQ(::chmod(tree.path().c_str(), 0755), 0);
  tree.write("private", "x");
  tree.directory("closed");
  ASSERT_EQ(::chmod(tree.at("private").c_str(), 0600), 0);
  ASSERT_EQ(::chmod(tree.at("closed").c_str(), 0700), 0);
  tree.write("open", "y");
  const Walk walk = collect_tree(tree, default_limits(), content_sink(), [] {
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) {
      ::_exit(9);
    }
  });
  EXPECT_THAT(walk.paths(), ElementsAre("open"));
  EXPECT_EQ(walk.reason("private"), "cannot be read: Permission denied");
  EXPECT_EQ(walk.reason("closed"), "cannot be read: Permission denied");
}

TEST(Walker, KeepsOddNamesExactlyAndShowsBadBytesEscaped) {
  const TemporaryTree tree;
  const std::string longest(255, '\xFF');
  const std::vector<std::string> names = {"-rf",       "a\nb",  "\x1b[2J", "\xff\xfe",
                                          "back\\x41", " lead", longest,   "\xE2\x80\xAEgpj.exe"};
  for (const std::string& name : names) tree.write(name, name);
  const Walk walk = collect_tree(tree);
  ASSERT_EQ(walk.files.size(), names.size());
  for (const CollectedFile& file : walk.files) {
    EXPECT_EQ(file.content, file.raw_path);
    EXPECT_THAT(names, ::testing::Contains(file.raw_path));
  }
  EXPECT_NE(walk.find("-rf"), nullptr);
  EXPECT_NE(walk.find("a\nb"), nullptr) << "control characters are escaped when shown, not before";
  EXPECT_NE(walk.find("\\xff\\xfe"), nullptr);
  EXPECT_NE(walk.find("back\\x5cx41"), nullptr) << "not to be taken for the name \"backA\"";
}

TEST(Walker, KeepsNamesThatAreEqualAfterNfcAndFlagsTheSecond) {
  const TemporaryTree tree;
  const std::string composed = "caf\xC3\xA9.txt";
  const std::string decomposed = "cafe\xCC\x81.txt";
  tree.write(composed, "1");
  tree.write(decomposed, "2");
  tree.write("cafe.txt", "3");
  const Walk walk = collect_tree(tree);
  ASSERT_EQ(walk.files.size(), 3U);
  EXPECT_EQ(walk.find("cafe.txt")->note, "");
  EXPECT_EQ(walk.find(decomposed)->note, "") << "e + U+0301 comes first in byte order";
  EXPECT_EQ(walk.find(composed)->note,
            "same name as \"" + decomposed + "\" after Unicode normalisation (NFC)");
}

// Runs `act` over and over in another process until the scope is left.
class Meddler {
 public:
  explicit Meddler(const std::function<void()>& act) : pid_(::fork()) {
    if (pid_ != 0) return;
    for (;;) act();
  }
  Meddler(const Meddler&) = delete;
  Meddler& operator=(const Meddler&) = delete;
  ~Meddler() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

TEST(Walker, NeverReachesAHostFileThroughANameThatIsSwappedMeanwhile) {
  const TemporaryTree host;
  host.write("secret", "host secret");
  const TemporaryTree tree;
  tree.directory("out");
  tree.write("out/file", "mine");
  tree.symlink(host.at("secret"), "link");
  const std::string file = tree.at("out/file");
  const std::string link = tree.at("link");
  const Meddler swap(
      [&] { (void)::renameat2(AT_FDCWD, file.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE); });
  bool naive_reader_was_fooled = false;
  for (int i = 0; i < 20000 && !naive_reader_was_fooled; ++i) {
    naive_reader_was_fooled = tree.read("out/file") == "host secret";
  }
  EXPECT_TRUE(naive_reader_was_fooled) << "control";
  for (int i = 0; i < 100; ++i) {
    const Walk walk = collect_tree(tree);
    ASSERT_FALSE(walk.error);
    for (const CollectedFile& found : walk.files) ASSERT_EQ(found.content, "mine");
  }
}

TEST(Walker, NoticesAFileThatGrowsWhileItIsCollected) {
  const TemporaryTree tree;
  tree.write("log", "");
  const UniqueFd log(::open(tree.at("log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const Meddler grow([&] {
    if (::lseek(log.get(), 0, SEEK_END) < (1 << 20)) (void)sys::write_all(log.get(), "growing\n");
  });
  for (int i = 0; i < 50; ++i) {
    const Walk walk = collect_tree(tree);
    ASSERT_FALSE(walk.error);
    ASSERT_EQ(walk.files.size() + walk.refused.size(), 1U);
    if (walk.files.empty()) {
      EXPECT_THAT(walk.reason("log"), HasSubstr("changed while it was collected"));
    } else {
      EXPECT_EQ(walk.files[0].content->size(), walk.files[0].size);
    }
  }
}

TEST(Walker, EndsWhenItsReaderIsGone) {
  const TemporaryTree tree;
  for (int i = 0; i < 60; ++i) tree.write("f" + std::to_string(i), "x");
  auto sockets = sys::seqpacket_pair();
  ASSERT_TRUE(sockets);
  sockets->first.reset();
  serve_collection(tree.fd(), sockets->second.get(), default_limits());  // returns, without SIGPIPE
}

}  // namespace
}  // namespace sbx::collect
