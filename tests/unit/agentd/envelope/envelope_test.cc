#include "agentd/envelope/envelope.h"

#include <gtest/gtest.h>

namespace agentd::envelope {
namespace {

const std::vector<std::string> kFiles = {"plot.png", "sub/data.csv"};

std::string code_of(std::string_view line) {
  const auto parsed = parse(line, kFiles);
  const auto* violation = std::get_if<Violation>(&parsed);
  return violation == nullptr ? "ok" : violation->code;
}

Envelope good(std::string_view line) {
  auto parsed = parse(line, kFiles);
  const auto* violation = std::get_if<Violation>(&parsed);
  EXPECT_EQ(violation, nullptr) << violation->detail;
  return violation == nullptr ? std::get<Envelope>(std::move(parsed)) : Envelope{};
}

TEST(Envelope, IsTheLastLineThatIsNotBlank) {
  EXPECT_EQ(last_line("a\nb\n"), "b");
  EXPECT_EQ(last_line("a\r\n  b \t\r\n\r\n \n"), "b");
  EXPECT_EQ(last_line("b"), "b");
  EXPECT_EQ(last_line(" \n\t"), "");
  EXPECT_EQ(last_line(""), "");
  EXPECT_EQ(good("progress 1\nprogress 2\n{\"type\":\"text\",\"data\":\"hi\"}\n\n").text, "hi");
}

TEST(Envelope, ATableMayBeColumnsAndRows) {
  const Envelope envelope = good(
      R"({"type":"table","data":{"columns":["a","b",3],"rows":[[1,"x",null],[2.50,true,[1,{"k":2}]]]}})");
  EXPECT_EQ(envelope.table.columns, (std::vector<std::string>{"a", "b", "3"}));
  ASSERT_EQ(envelope.table.rows.size(), 2U);
  EXPECT_EQ(envelope.table.rows[0][0], (Cell{Cell::Kind::kNumber, "1"}));
  EXPECT_EQ(envelope.table.rows[0][2], Cell{});
  EXPECT_EQ(envelope.table.rows[1][1], (Cell{Cell::Kind::kBool, "true"}));
  EXPECT_EQ(envelope.table.rows[1][2], (Cell{Cell::Kind::kJson, R"([1,{"k":2}])"}));
}

TEST(Envelope, ATableMayBeAListOfObjectsWithDifferentKeys) {
  const Envelope envelope =
      good(R"({"type":"table","data":[{"a":1,"b":2},{"b":3,"c":4}],"note":"n","title":"ignored"})");
  EXPECT_EQ(envelope.table.columns, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(envelope.table.rows[1][0], Cell{});
  EXPECT_EQ(envelope.table.rows[1][1].text, "3");
  EXPECT_EQ(envelope.note, "n");
}

TEST(Envelope, AChartOrFileCountsOnlyWhenTheRuntimeCollectedIt) {
  EXPECT_EQ(good(R"({"type":"chart","artifact_path":"/output/plot.png"})").artifact, "plot.png");
  EXPECT_EQ(good(R"({"type":"file","artifact_path":"sub/data.csv","data":{"n":1}})").data_json,
            R"({"n":1})");
  EXPECT_EQ(code_of(R"({"type":"chart","artifact_path":"/output/other.png"})"),
            "artifact_not_collected");
  EXPECT_EQ(code_of(R"({"type":"chart","artifact_path":"/output/../plot.png"})"),
            "artifact_not_collected");
  EXPECT_EQ(code_of(R"({"type":"file","artifact_path":"/etc/passwd"})"), "bad_artifact_path");
  EXPECT_EQ(code_of(R"({"type":"file","artifact_path":7})"), "bad_artifact_path");
  EXPECT_EQ(code_of(R"({"type":"chart","data":[1]})"), "missing_artifact_path");
  EXPECT_EQ(code_of(R"({"type":"chart","artifact_path":null})"), "missing_artifact_path");
}

TEST(Envelope, SaysWhichRuleWasBroken) {
  EXPECT_EQ(code_of("\n \n"), "no_output");
  EXPECT_EQ(code_of("The answer is 42."), "not_json");
  EXPECT_EQ(code_of("42"), "not_an_object");
  EXPECT_EQ(code_of("{}"), "missing_type");
  EXPECT_EQ(code_of(R"({"type":"graph"})"), "unknown_type");
  EXPECT_EQ(code_of(R"({"type":["table"]})"), "unknown_type");
  EXPECT_EQ(code_of(R"({"type":"table"})"), "missing_data");
  EXPECT_EQ(code_of(R"({"type":"table","data":null})"), "missing_data");
  EXPECT_EQ(code_of(R"({"type":"table","data":"x"})"), "bad_table");
  EXPECT_EQ(code_of(R"({"type":"table","data":[]})"), "bad_table") << "no columns";
  EXPECT_EQ(code_of(R"({"type":"table","data":{"columns":["a"]}})"), "bad_table");
  EXPECT_EQ(code_of(R"({"type":"table","data":{"columns":["a"],"rows":[1]}})"), "bad_table");
  EXPECT_EQ(code_of(R"({"type":"table","data":[1]})"), "bad_table");
  EXPECT_EQ(code_of(R"({"type":"table","data":{"columns":["a"],"rows":[[1,2]]}})"), "ragged_row");
  EXPECT_EQ(code_of(R"({"type":"text"})"), "missing_data");
  EXPECT_EQ(code_of(R"({"type":"text","data":3})"), "bad_text");
  EXPECT_EQ(code_of(R"({"type":"text","data":"x","note":3})"), "bad_note");
  EXPECT_EQ(code_of(R"({"type":"table","data":[{"a":NaN}]})"), "not_a_number");
  EXPECT_EQ(code_of(R"({"type":"text","type":"table"})"), "duplicate_key");
}

TEST(Envelope, AnEmptyTableWithColumnsIsATable) {
  EXPECT_TRUE(good(R"({"type":"table","data":{"columns":["a"],"rows":[]}})").table.rows.empty());
}

TEST(Envelope, ColumnsAndNoteHaveLimits) {
  const auto table = [](std::size_t columns) {
    std::string line = R"({"type":"table","data":{"columns":[)";
    for (std::size_t i = 0; i < columns; ++i) line += i == 0 ? "0" : ",0";
    return line + R"(],"rows":[]}})";
  };
  EXPECT_EQ(code_of(table(kMaxColumns)), "ok");
  EXPECT_EQ(code_of(table(kMaxColumns + 1)), "too_many_columns");
  const auto note = [](std::size_t length) {
    return R"({"type":"text","data":"","note":")" + std::string(length, 'n') + "\"}";
  };
  EXPECT_EQ(code_of(note(kMaxNoteBytes)), "ok");
  EXPECT_EQ(code_of(note(kMaxNoteBytes + 1)), "bad_note");
}

TEST(Envelope, ManyRowsWithDifferentKeysDoNotMultiply) {
  std::string line = R"({"type":"table","data":[)";
  for (int i = 0; i < 900; ++i) {
    line += (i == 0 ? "{\"k" : ",{\"k") + std::to_string(i) + "\":1}";
  }
  EXPECT_EQ(code_of(line + "]}"), "bad_table");
}

}  // namespace
}  // namespace agentd::envelope
