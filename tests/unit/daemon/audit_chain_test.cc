#include "runtime/daemon/audit_chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

namespace sbx::daemon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AuditChain : public ::testing::Test {
 protected:
  void add(std::string_view members) {
    const std::string line = audit_line(last_, "2024-05-01T12:00:00.000Z", members);
    last_ = link_of(last_ ? last_->seq + 1 : 1, line);
    lines_.push_back(line);
  }
  void add_runs(int count) {
    for (int i = 0; i < count; ++i) add(R"("event":"run","n":)" + std::to_string(i));
  }
  [[nodiscard]] AuditReport verify(std::string_view rest = {}) const {
    std::string text;
    for (const std::string& line : lines_) text += line + "\n";
    text += rest;
    std::istringstream file(text);
    return verify_audit(file, last_ ? head_text(*last_) : std::string());
  }

  std::optional<AuditLink> last_;
  std::vector<std::string> lines_;
};

TEST_F(AuditChain, ALineIsJsonWithItsPlace) {
  add_runs(2);
  const auto json = nlohmann::json::parse(lines_[1]);
  EXPECT_EQ(json["seq"], 2);
  EXPECT_EQ(json["prev"], link_of(1, lines_[0]).hash);
  EXPECT_EQ(json["event"], "run");
  const auto place = parse_audit_line(lines_[1]);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->seq, 2U);
}

TEST_F(AuditChain, WhatWasLeftAloneIsIntact) {
  EXPECT_THAT(verify().problems, IsEmpty());
  add_runs(50);
  const AuditReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  EXPECT_THAT(report.notes, IsEmpty());
  EXPECT_EQ(report.lines, 50U);
}

TEST_F(AuditChain, EveryEditOfEveryLineIsFound) {
  add_runs(5);
  const std::vector<std::string> good = lines_;
  for (std::size_t line = 0; line < good.size(); ++line) {
    for (std::size_t at = 0; at < good[line].size(); ++at) {
      lines_ = good;
      lines_[line][at] = static_cast<char>(lines_[line][at] ^ 1);
      EXPECT_THAT(verify().problems, testing::Not(IsEmpty())) << line << ":" << at;
    }
  }
}

TEST_F(AuditChain, EveryRemovalIsFound) {
  add_runs(6);
  const std::vector<std::string> good = lines_;
  for (std::size_t from = 0; from < good.size(); ++from) {
    for (std::size_t to = from + 1; to <= good.size(); ++to) {
      lines_ = good;
      lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(from),
                   lines_.begin() + static_cast<std::ptrdiff_t>(to));
      EXPECT_THAT(verify().problems, testing::Not(IsEmpty())) << from << " to " << to;
    }
  }
}

TEST_F(AuditChain, EveryOtherOrderIsFound) {
  add_runs(4);
  std::vector<std::string> order = lines_;
  std::sort(order.begin(), order.end());
  int others = 0;
  const std::vector<std::string> good = lines_;
  do {
    if (order == good) continue;
    lines_ = order;
    EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
    ++others;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(others, 23);
}

TEST_F(AuditChain, AnInsertedOrRepeatedLineIsFound) {
  add_runs(3);
  lines_.insert(lines_.begin() + 1, lines_[0]);
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

TEST_F(AuditChain, ALastLineThatChangedIsFoundByTheHead) {
  add_runs(2);
  lines_.back() = audit_line(link_of(1, lines_[0]), "2024-05-01T12:00:00.000Z", R"("event":"x")");
  EXPECT_THAT(verify().problems, SizeIs(1));
}

TEST_F(AuditChain, WithoutAHeadItIsNotIntact) {
  add_runs(1);
  std::istringstream file(lines_[0] + "\n");
  EXPECT_THAT(verify_audit(file, "").problems,
              ElementsAre("there is no head file, which tells the last line"));
}

// One fault, one problem; also where there is no line that it could tell.
TEST_F(AuditChain, ADamagedHeadIsOneProblem) {
  for (int lines = 0; lines < 3; ++lines) {
    for (const char* const head : {"x", "1", "                   1 abc\n", "\n"}) {
      std::string text;
      for (const std::string& line : lines_) text += line + "\n";
      std::istringstream file(text);
      EXPECT_THAT(verify_audit(file, head).problems,
                  ElementsAre("the head file, which tells the last line, is damaged"))
          << lines << head;
    }
    add_runs(1);
  }
}

// The head is written after each line, so that the death of sbxd leaves it behind by one.
TEST_F(AuditChain, OneLineBeyondTheHeadIsANoteAndMoreAreAProblem) {
  add_runs(3);
  last_ = link_of(2, lines_[1]);
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_THAT(verify().notes, ElementsAre(HasSubstr("1 line stands beyond number 2")));
  last_ = link_of(1, lines_[0]);
  EXPECT_THAT(verify().problems, ElementsAre(HasSubstr("2 lines stand beyond number 1")));
  last_ = AuditLink{0, std::string(kNoHash)};
  EXPECT_THAT(verify().problems, ElementsAre(HasSubstr("3 lines stand beyond number 0")));
}

TEST_F(AuditChain, AHeadOfNoLineIsThatOfAnEmptyFile) {
  last_ = AuditLink{0, std::string(kNoHash)};
  EXPECT_THAT(verify().problems, IsEmpty());
  EXPECT_THAT(verify().notes, IsEmpty());
}

TEST_F(AuditChain, ATornLastLineIsANoteUntilSbxdMarksIt) {
  add_runs(2);
  const std::string next = audit_line(last_, "2024-05-01T12:00:00.000Z", R"("event":"run")");
  for (std::size_t size = 1; size < next.size(); ++size) {
    const AuditReport report = verify(next.substr(0, size));
    EXPECT_THAT(report.problems, IsEmpty()) << size;
    ASSERT_THAT(report.notes, SizeIs(1)) << size;
    EXPECT_THAT(report.notes[0], HasSubstr(" after " + std::to_string(size) + " bytes"));
  }
  const AuditReport whole = verify(next);
  EXPECT_THAT(whole.problems, IsEmpty());
  EXPECT_THAT(whole.notes, ElementsAre(HasSubstr("line 3: its end alone is missing"),
                                       HasSubstr("1 line stands beyond number 2")));
  EXPECT_EQ(whole.lines, 3U);
}

// With lines and a head and without: somebody wrote it, or a power failure left it.
TEST_F(AuditChain, WhatIsNoBeginningOfTheNextLineIsAProblem) {
  for (int lines = 0; lines < 3; ++lines) {
    for (const char* garbage : {"x", "{}", "\n", "garbage\n", "{\"seq\":4",
                                "{\"seq\":9,\"prev\":\"00", "{\"seq\":1,\"prev\":\"1"}) {
      EXPECT_THAT(verify(garbage).problems, testing::Not(IsEmpty())) << lines << garbage;
    }
    EXPECT_THAT(verify(std::string(1, '\0')).problems, testing::Not(IsEmpty()));
    add_runs(1);
  }
}

TEST_F(AuditChain, AMarkerDoesNotMakeGarbageALine) {
  lines_.emplace_back("garbage");
  add(torn_marker(lines_.back()));
  EXPECT_THAT(verify().problems, SizeIs(1));
}

TEST_F(AuditChain, AMarkedTornLineIsANote) {
  add_runs(2);
  lines_.emplace_back(R"({"seq":3,"pre)");
  add(torn_marker(lines_.back()));
  add_runs(2);
  const AuditReport report = verify();
  EXPECT_THAT(report.problems, IsEmpty());
  ASSERT_THAT(report.notes, SizeIs(1));
  EXPECT_THAT(report.notes[0], HasSubstr("line 3: 13 bytes"));
}

TEST_F(AuditChain, AMarkerVouchesForItsOwnTornLineOnly) {
  add_runs(2);
  lines_.emplace_back(R"({"seq":3,"pre)");
  add(torn_marker("something else"));
  EXPECT_THAT(verify().problems, testing::Not(IsEmpty()));
}

TEST_F(AuditChain, AGapThatSbxdFoundIsAProblem) {
  add_runs(2);
  add(gap_marker({7, std::string(64, 'a')}));
  EXPECT_THAT(verify().problems, SizeIs(1));
}

TEST_F(AuditChain, ALineWithoutEndIsFoundWithoutReadingItWhole) {
  add_runs(1);
  // Once, and once for its rest.
  EXPECT_THAT(verify(std::string(9 * kMaxAuditLine, 'x')).problems, SizeIs(testing::Le(2)));
}

TEST(AuditHead, IsOfOneLengthAndComesBack) {
  const AuditLink link{12345, std::string(64, 'f')};
  const auto parsed = parse_head(head_text(link));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->seq, link.seq);
  EXPECT_EQ(parsed->hash, link.hash);
  EXPECT_EQ(head_text({1, link.hash}).size(), head_text({UINT64_MAX, link.hash}).size());
  for (const char* text : {"", "1", "1 abc\n", "x\n"}) EXPECT_FALSE(parse_head(text)) << text;
}

TEST(AuditLine, OnlyAWholeOneIsTakenForOne) {
  const std::string line = audit_line(std::nullopt, "t", R"("event":"run","limits":{"a":1})");
  ASSERT_TRUE(parse_audit_line(line));
  for (std::size_t size = 0; size < line.size(); ++size) {
    EXPECT_FALSE(parse_audit_line(std::string_view(line).substr(0, size))) << size;
  }
}

}  // namespace
}  // namespace sbx::daemon
