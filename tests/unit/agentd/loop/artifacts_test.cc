#include "agentd/loop/artifacts.h"

#include <gtest/gtest.h>

#include "tests/agent/support/fakes.h"

namespace agentd::loop {
namespace {

using envelope::Cell;

TEST(TableCsv, QuotesWhatNeedsItAndDisarmsFormulas) {
  const envelope::Table table{
      .columns = {"a,b", "=cmd", "plain"},
      .rows = {{{Cell::Kind::kText, "x \"y\"\nz"}, {Cell::Kind::kNumber, "-1.50"}, {}},
               {{Cell::Kind::kText, "-1+1"},
                {Cell::Kind::kText, "@SUM(A1)"},
                {Cell::Kind::kBool, "true"}}}};
  EXPECT_EQ(table_csv(table),
            "\"a,b\",'=cmd,plain\r\n\"x \"\"y\"\"\nz\",-1.50,\r\n'-1+1,'@SUM(A1),true\r\n");
}

std::string as_cell(const std::string& text) {
  const envelope::Table table{.columns = {"c"}, .rows = {{{Cell::Kind::kText, text}}}};
  const std::string csv = table_csv(table);
  return csv.substr(3, csv.size() - 5);  // without the heading and the line end
}

TEST(TableCsv, LeavesFiguresWithASignAsTheyAre) {
  for (const char* figure : {"-", "--", "-1", "-12.5%", "+49 30 123", "+49 (0)30/123-45", "-1.5e-7",
                             "+2E5", "-$12.50", "-\u20AC5", "- 3"}) {
    EXPECT_EQ(as_cell(figure), figure);
  }
  EXPECT_EQ(as_cell("-1,200.50"), "\"-1,200.50\"");
}

TEST(TableCsv, DisarmsWhatOnlyLooksLikeAFigure) {
  for (const char* formula :
       {"-A1", "+A1", "-1+A1", "-1-A1", "+1;x", "-e5", "-1e", "-1e+", "-1eA1", "-$A$1",
        "+cmd|' /C calc'!A0", "-1*1", "-@SUM(1)", "+1:1", "=1", "@x", "\t=1"}) {
    EXPECT_EQ(as_cell(formula), std::string("'") + formula);
  }
}

TEST(Artifacts, ATableAddsItselfWholeUnderAFreeName) {
  sandbox::RunResult run = test::ok_run("");
  run.files = {{.path = "table.csv", .size = 1, .content = "x"}, {.path = "p.png"}};
  const envelope::Envelope table{.type = envelope::Type::kTable,
                                 .table = {.columns = {"c"}, .rows = {}}};
  const auto artifacts = artifacts_of(run, &table);
  ASSERT_EQ(artifacts.size(), 3U);
  EXPECT_EQ(artifacts[2].name, "table-2.csv");
  EXPECT_EQ(artifacts[2].content, "c\r\n");
  EXPECT_EQ(artifacts[2].size, 3U);
  EXPECT_EQ(artifacts_of(run, nullptr).size(), 2U);
}

}  // namespace
}  // namespace agentd::loop
