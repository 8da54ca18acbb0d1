#include "runtime/daemon/audit_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/support/process.h"

namespace sbx::daemon {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AuditLogTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string file() const { return directory_.path() + "/audit/audit.jsonl"; }
  [[nodiscard]] Result<AuditLog> open() const {
    return AuditLog::open(directory_.path() + "/audit");
  }
  // A daemon's life: some lines, and its end.
  void live(int lines) const {
    auto log = open();
    ASSERT_TRUE(log) << to_string(log.error());
    for (int i = 0; i < lines; ++i) ASSERT_TRUE(log->append(R"("event":"run")"));
  }
  [[nodiscard]] AuditReport verify() const {
    std::ifstream text(file());
    return verify_audit(text, test::read_text(file() + ".head"));
  }
  void cut(off_t bytes) const {
    struct stat info{};
    ASSERT_EQ(::stat(file().c_str(), &info), 0);
    ASSERT_EQ(::truncate(file().c_str(), info.st_size - bytes), 0);
  }

  test::TemporaryDirectory directory_;
};

TEST_F(AuditLogTest, GoesOnWhereTheLastOneEnded) {
  live(3);
  live(0);
  live(2);
  const AuditReport report = verify();
  EXPECT_EQ(report.lines, 5U);
  EXPECT_THAT(report.problems, IsEmpty());
}

TEST_F(AuditLogTest, AStartThatFailsLeavesNoFileWithoutALine) {
  std::filesystem::create_directories(file() + ".head");
  EXPECT_FALSE(open());
  EXPECT_FALSE(std::filesystem::exists(file()));
  std::filesystem::remove(file() + ".head");
  live(1);
  std::filesystem::remove(file() + ".head");
  std::filesystem::create_directories(file() + ".head");
  EXPECT_FALSE(open());
  EXPECT_EQ(test::read_text(file()).empty(), false) << "what has lines stays";
}

TEST_F(AuditLogTest, IsTakenBackByAStartThatFailsLater) {
  open()->take_back();
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_FALSE(std::filesystem::exists(file() + ".head"));
  live(1);
  open()->take_back();
  EXPECT_EQ(verify().lines, 1U) << "but for one that has lines";
}

TEST_F(AuditLogTest, IsItsOwnersAlone) {
  live(1);
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
}

TEST_F(AuditLogTest, HasOneWriter) {
  const auto first = open();
  ASSERT_TRUE(first);
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kHost);
  EXPECT_THAT(second.error().detail, HasSubstr("in use by another sbxd"));
}

TEST_F(AuditLogTest, MarksALineThatWasCutShortAtAnyByte) {
  for (const off_t bytes : {1, 2, 30, 100}) {
    std::filesystem::remove_all(directory_.path() + "/audit");
    live(3);
    // The head was not written yet when the daemon died within the line.
    const std::string before = [&] {
      std::ifstream text(file());
      std::string one;
      std::string two;
      std::getline(text, one);
      std::getline(text, two);
      return head_text(link_of(2, two));
    }();
    std::ofstream(file() + ".head") << before;
    cut(bytes);
    live(2);
    const AuditReport report = verify();
    EXPECT_THAT(report.problems, IsEmpty()) << bytes;
    // Without its line end alone it is a whole line still.
    EXPECT_EQ(report.notes.size(), bytes == 1 ? 0U : 1U) << bytes;
    EXPECT_EQ(report.lines, 5U) << bytes;
  }
}

TEST_F(AuditLogTest, SaysThatLinesAreMissingWhenTheHeadIsAhead) {
  live(5);
  std::ifstream text(file());
  std::string kept;
  for (int i = 0; i < 3; ++i) {
    std::string line;
    std::getline(text, line);
    kept += line + "\n";
  }
  std::ofstream(file()) << kept;
  const auto log = open();
  ASSERT_TRUE(log);
  EXPECT_THAT(log->found(), HasSubstr("lines up to 5 are missing"));
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

// The next line of ours would make the head forget it.
TEST_F(AuditLogTest, RemembersAnEditOfTheLastLineMadeWhileItWasClosed) {
  live(3);
  std::string text = test::read_text(file());
  const std::size_t edited = text.rfind("\"run\"");
  ASSERT_NE(edited, std::string::npos);
  text.replace(edited, 5, "\"ran\"");
  std::ofstream(file()) << text;
  const auto log = open();
  ASSERT_TRUE(log);
  EXPECT_THAT(log->found(), HasSubstr("line 3 is not what the head file says of it"));
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

TEST_F(AuditLogTest, RemembersThatALineTheHeadKnewWasCutShort) {
  live(3);
  cut(30);
  live(2);
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

TEST_F(AuditLogTest, RemembersThatTheHeadWasMissing) {
  live(3);
  std::filesystem::remove(file() + ".head");
  live(2);
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

TEST_F(AuditLogTest, RemembersGarbageWithOrWithoutAHead) {
  for (const char* garbage : {"garbage", "garbage\n", "a\nb\nc"}) {
    for (const int lines : {0, 1, 3}) {
      std::filesystem::remove_all(directory_.path() + "/audit");
      live(lines);
      std::filesystem::remove(lines < 3 ? file() + ".head" : "");
      std::ofstream(file(), std::ios::app) << garbage;
      EXPECT_THAT(verify().problems, testing::Not(IsEmpty())) << garbage << lines;
      live(2);
      EXPECT_THAT(verify().problems, testing::Not(IsEmpty())) << garbage << lines;
    }
  }
}

TEST_F(AuditLogTest, RemembersThatTheHeadWasDamaged) {
  live(1);
  std::ofstream(file() + ".head") << "nonsense\n";
  live(1);
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

TEST_F(AuditLogTest, TakesALineThatTheHeadDoesNotKnowYetForOneOfItsOwn) {
  live(2);
  const std::string head = test::read_text(file() + ".head");
  live(1);
  std::ofstream(file() + ".head") << head;
  {
    const auto log = open();
    ASSERT_TRUE(log);
    EXPECT_THAT(log->found(), HasSubstr("line 3 stands beyond the head"));
  }
  EXPECT_EQ(open()->found(), "") << "the head has been written";
  live(1);
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(AuditLogTest, RemembersThatMoreLinesStoodBeyondTheHeadThanItsDeathLeaves) {
  live(1);
  const std::string head = test::read_text(file() + ".head");
  live(2);
  std::ofstream(file() + ".head") << head;
  const auto log = open();
  ASSERT_TRUE(log);
  EXPECT_THAT(log->found(), HasSubstr("2 lines stand beyond 1"));
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

TEST_F(AuditLogTest, HasAHeadBeforeItHasALine) {
  live(0);
  EXPECT_EQ(parse_head(test::read_text(file() + ".head"))->seq, 0U);
  EXPECT_THAT(verify().problems, IsEmpty());
  std::filesystem::remove(file() + ".head");
  EXPECT_EQ(open()->found(), "") << "there is nothing that it could have lost";
}

TEST_F(AuditLogTest, RefusesAFileThatIsALink) {
  std::filesystem::create_directory(directory_.path() + "/audit");
  std::ofstream(directory_.path() + "/elsewhere") << "x";
  std::filesystem::create_symlink(directory_.path() + "/elsewhere", file());
  EXPECT_FALSE(open());
}

TEST_F(AuditLogTest, IsNotHealthyWhileItIsNotInItsPlace) {
  auto log = open();
  ASSERT_TRUE(log);
  for (const std::string& moved : {file(), file() + ".head"}) {
    EXPECT_TRUE(log->check());
    std::filesystem::rename(moved, moved + ".old");
    const auto gone = log->check();
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().code, ErrorCode::kHost);
    EXPECT_NE(gone.error().fix, "");
    EXPECT_FALSE(log->healthy());
    EXPECT_TRUE(log->append(R"("event":"run")")) << "of a run that is over";
    std::ofstream(moved) << "another";
    EXPECT_FALSE(log->check());
    std::filesystem::rename(moved + ".old", moved);
    EXPECT_TRUE(log->check());
    EXPECT_TRUE(log->healthy());
  }
  EXPECT_EQ(verify().lines, 2U);
  EXPECT_THAT(verify().problems, IsEmpty());
}

TEST_F(AuditLogTest, KeepsALineThatTheDiskRefusesAndTriesAgain) {
  auto log = open();
  ASSERT_TRUE(log);
  ASSERT_TRUE(log->append(R"("event":"run","n":1)"));
  // A limit on the size of files stands for a full disk.
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGXFSZ, &ignore, &before), 0);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  rlimit tight{static_cast<rlim_t>(info.st_size + 10), old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  EXPECT_FALSE(log->append(R"("event":"run","n":2)"));
  EXPECT_FALSE(log->healthy());
  // However many: runs that are over.
  const std::string much = R"("event":"run","x":")" + std::string(kMaxAuditLine - 200, 'x') + '"';
  for (int i = 0; i < 40; ++i) EXPECT_FALSE(log->append(much));
  EXPECT_EQ(log->kept(), 41U);
  EXPECT_EQ(log->lines(), 1U);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  ASSERT_EQ(::sigaction(SIGXFSZ, &before, nullptr), 0);
  EXPECT_TRUE(log->check());
  EXPECT_TRUE(log->healthy());
  const AuditReport report = verify();
  EXPECT_EQ(log->kept(), 0U);
  EXPECT_EQ(report.lines, 42U);
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.notes, IsEmpty()) << "the half that was written was continued";
}

}  // namespace
}  // namespace sbx::daemon
