// One connection among those of other processes.
#include "agentd/store/database.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/process.h"

namespace agentd::store {
namespace {

// Forked before this process has a database open, for SQLite keeps what a process has locked in its
// memory: the child must find nothing there. It reads once it is told to, and ends.
class OtherReader {
 public:
  explicit OtherReader(const std::string& path) {
    EXPECT_EQ(::pipe(pipe_), 0);
    pid_ = ::fork();
    if (pid_ != 0) return;
    char go = 0;
    if (::read(pipe_[0], &go, 1) != 1) ::_exit(2);
    ::_exit(reads(path) ? 0 : 1);
  }
  ~OtherReader() {
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  OtherReader(const OtherReader&) = delete;
  OtherReader& operator=(const OtherReader&) = delete;

  bool read() {
    int status = -1;
    return ::write(pipe_[1], "g", 1) == 1 && ::waitpid(pid_, &status, 0) == pid_ && status == 0;
  }

 private:
  static bool reads(const std::string& path) {
    auto database = Database::open({.path = path});
    if (!database) return false;
    auto select = database->statement("SELECT n FROM t");
    if (!select) return false;
    const auto row = select->step();
    return row && *row;
  }

  int pipe_[2] = {-1, -1};
  pid_t pid_ = -1;
};

TEST(Database, InThePlaceOfWhichSomethingElseStandsIsNamedWithAFix) {
  const sbx::test::TemporaryDirectory directory;
  const std::string pipe = directory.path() + "/pipe.db";
  const std::string link = directory.path() + "/link.db";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_EQ(::symlink("elsewhere", link.c_str()), 0);
  for (const std::string& path : {pipe, link, directory.path()}) {
    const auto opened = Database::open({.path = path});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().detail, path + " is not a regular file");
    EXPECT_EQ(opened.error().fix, "move it away; a new one is made");
  }
}

// Whoever is the last to close a database takes its log away; a process whose locks are gone is
// not counted, and goes on to write into a log that nobody will find.
TEST(Database, KeepsItsLogWhenAnotherProcessReadsAndLeaves) {
  const sbx::test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/x.db";
  {
    auto made = Database::open({.path = path});
    ASSERT_TRUE(made) << to_string(made.error());
    ASSERT_TRUE(made->execute("CREATE TABLE t(n INTEGER); INSERT INTO t VALUES(1)"));
  }
  OtherReader other(path);
  auto database = Database::open({.path = path});
  ASSERT_TRUE(database) << to_string(database.error());
  ASSERT_TRUE(database->execute("INSERT INTO t VALUES(2)"));
  ASSERT_TRUE(other.read());
  EXPECT_TRUE(std::filesystem::exists(path + "-wal"));
}

}  // namespace
}  // namespace agentd::store
