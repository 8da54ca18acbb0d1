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
