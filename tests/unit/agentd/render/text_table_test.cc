#include "agentd/render/text_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>
#include <nlohmann/json.hpp>

#include "agentd/render/display_width.h"

namespace agentd::render {
namespace {

using Json = nlohmann::ordered_json;

class TextTable : public ::testing::Test {
 protected:
  // As agentctl does: widths are the C library's.
  TextTable() { EXPECT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr); }
};

Json table(std::size_t rows, std::size_t columns) {
  Json data{{"columns", Json::array()}, {"rows", Json::array()}};
  for (std::size_t i = 0; i < columns; ++i) data["columns"].push_back("c" + std::to_string(i));
  for (std::size_t r = 0; r < rows; ++r) data["rows"].push_back(Json(columns, Json(r)));
  return data;
}

std::string draw(const char* json) {
  return draw_table(Json::parse(json));
}

// A table of one cell.
std::string draw_cell(const std::string& cell) {
  Json data{{"columns", Json::array({"c"})}, {"rows", Json::array()}};
  data["rows"].push_back(Json::array({cell}));
  return draw_table(data);
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST_F(TextTable, NumbersStandToTheRightUnlessTextIsAmongThem) {
  EXPECT_EQ(draw(R"({"columns": ["name", "n", "mixed", "empty"],
                     "rows": [["a", 1, 1, null], ["bcd", 200, "x", null]]})"),
            "name    n  mixed  empty\n"
            "────  ───  ─────  ─────\n"
            "a       1  1\n"
            "bcd   200  x\n");
}

TEST_F(TextTable, WideCharactersAndMarksKeepColumnsAligned) {
  EXPECT_EQ(draw(R"({"columns": ["k", "v"],
                     "rows": [["\u6771\u4EAC", "x"], ["e\u0301", "y"], ["abc", "z"]]})"),
            "k     v\n────  ─\n\u6771\u4EAC  x\ne\u0301     y\nabc   z\n");
}

TEST_F(TextTable, RowsHaveALimitAndWhatIsLeftOutIsCounted) {
  const TableLimits limits;
  EXPECT_EQ(lines(draw_table(table(limits.rows, 1))), limits.rows + 2);
  const std::string one_more = draw_table(table(limits.rows + 1, 1));
  EXPECT_EQ(lines(one_more), limits.rows + 3);
  EXPECT_TRUE(one_more.ends_with("… 1 more row; the whole table is among the artifacts\n"));
  EXPECT_NE(draw_table(table(limits.rows + 500, 1)).find("… 500 more rows;"), std::string::npos);
}

TEST_F(TextTable, ColumnsHaveALimitAndWhatIsLeftOutIsCounted) {
  const TableLimits limits;
  EXPECT_EQ(draw_table(table(1, limits.columns)).find("more"), std::string::npos);
  const std::string one_more = draw_table(table(1, limits.columns + 1));
  EXPECT_NE(one_more.find("… 1 more column;"), std::string::npos);
  EXPECT_EQ(one_more.find("c" + std::to_string(limits.columns)), std::string::npos);
  EXPECT_NE(draw_table(table(limits.rows + 2, limits.columns + 3))
                .find("… 2 more rows and 3 more columns;"),
            std::string::npos);
}

TEST_F(TextTable, CellsHaveALimitWhateverIsInThem) {
  const TableLimits limits;
  for (const std::string& piece : {std::string("x"), std::string("\x1b"), std::string("\u6771"),
                                   std::string("\u0301"), std::string("\xff")}) {
    std::string cell;
    for (std::size_t i = 0; i < (1U << 20) / piece.size(); ++i) cell += piece;
    const std::string text = draw_cell(cell);
    EXPECT_LT(text.size(), 2000U);
    const std::size_t begin = text.find("─\n") + std::string("─\n").size();
    const std::string row = text.substr(begin, text.rfind('\n') - begin);
    EXPECT_LE(display_width(row), limits.cell) << row;
  }
  const std::string fits(limits.cell, 'x');
  EXPECT_NE(draw_cell(fits).find(fits + "\n"), std::string::npos);
  EXPECT_NE(draw_cell(fits + "x").find(std::string(limits.cell - 1, 'x') + "…\n"),
            std::string::npos);
}

TEST_F(TextTable, ACellIsOneLine) {
  EXPECT_EQ(draw(R"({"columns": ["a\nb"], "rows": [["x\ty\r\n"]]})"),
            "a\\nb\n────────\nx\\ty\\r\\n\n");
}

TEST_F(TextTable, RowsThatAreShortOrNoneAreEmptyCells) {
  EXPECT_EQ(draw(R"({"columns": ["a", "b"], "rows": [[1], [], 7, {"k": 1}]})"),
            "a  b\n─  ─\n1\n\n\n\n");
  EXPECT_EQ(draw(R"({"columns": "a", "rows": 3})"), "\n\n");
}

TEST(DisplayWidth, CutsBetweenCharactersAndSaysSo) {
  ASSERT_NE(std::setlocale(LC_CTYPE, "C.UTF-8"), nullptr);
  EXPECT_EQ(display_width("a\u6771e\u0301"), 4U);
  EXPECT_EQ(cut_to_width("abcd", 4), "abcd");
  EXPECT_EQ(cut_to_width("abcde", 4), "abc…");
  EXPECT_EQ(cut_to_width("\u6771\u6771\u6771", 4), "\u6771…");
  EXPECT_EQ(cut_to_width("abc", 0), "");
}

}  // namespace
}  // namespace agentd::render
