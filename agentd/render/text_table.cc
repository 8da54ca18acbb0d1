#include "agentd/render/text_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "agentd/render/display_width.h"
#include "agentd/render/json_view.h"
#include "runtime/base/escape.h"

namespace agentd::render {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kGap = "  ";

struct Cell {
  std::string text;
  std::size_t width = 0;
  bool number = false;
};

Cell cell_of(const Json& value, std::size_t limit) {
  std::string text;
  if (value.is_string()) {
    text = value.get<std::string>();
  } else if (!value.is_null()) {
    text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  // Cut before it is escaped: a cell may be a megabyte of controls.
  Cell cell{.text = cut_to_width(sbx::escape_for_terminal(text.substr(0, 8 * limit)), limit),
            .number = value.is_number()};
  cell.width = display_width(cell.text);
  return cell;
}

struct Column {
  std::size_t width = 0;
  bool right = true;  // until a cell is neither number nor empty
};

void measure(const std::vector<Cell>& row, std::vector<Column>& columns, bool is_head) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    columns[i].width = std::max(columns[i].width, row[i].width);
    if (!is_head && !row[i].number && !row[i].text.empty()) columns[i].right = false;
  }
}

void draw_row(const std::vector<Cell>& row, const std::vector<Column>& columns, std::string& out) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string pad(columns[i].width - row[i].width, ' ');
    if (i > 0) line += kGap;
    line += columns[i].right ? pad + row[i].text : row[i].text + pad;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

std::string rule(const std::vector<Column>& columns) {
  std::string line;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (i > 0) line += kGap;
    for (std::size_t n = 0; n < std::max<std::size_t>(columns[i].width, 1); ++n) line += "─";
  }
  return line + '\n';
}

// The member, or an empty list when it is none.
const Json& list_at(const Json& data, const char* name) {
  static const Json kEmpty = Json::array();
  const Json& found = member(data, name);
  return found.is_array() ? found : kEmpty;
}

std::string left_out(std::size_t rows, std::size_t columns) {
  if (rows == 0 && columns == 0) return {};
  std::string text = "… ";
  if (rows > 0) text += fmt::format("{} more row{}", rows, rows == 1 ? "" : "s");
  if (rows > 0 && columns > 0) text += " and ";
  if (columns > 0) text += fmt::format("{} more column{}", columns, columns == 1 ? "" : "s");
  return text + "; the whole table is among the artifacts\n";
}

}  // namespace

std::string draw_table(const Json& data, const TableLimits& limits) {
  const Json& names = list_at(data, "columns");
  const Json& rows = list_at(data, "rows");
  const std::size_t shown_columns = std::min(names.size(), limits.columns);
  const std::size_t shown_rows = std::min(rows.size(), limits.rows);
  std::vector<Column> columns(shown_columns);
  std::vector<std::vector<Cell>> cells(shown_rows + 1);
  for (std::size_t i = 0; i < shown_columns; ++i) {
    cells[0].push_back(cell_of(names[i], limits.cell));
  }
  measure(cells[0], columns, true);
  for (std::size_t r = 0; r < shown_rows; ++r) {
    for (std::size_t i = 0; i < shown_columns; ++i) {
      const Json& row = rows[r];
      cells[r + 1].push_back(
          cell_of(row.is_array() && i < row.size() ? row[i] : Json(), limits.cell));
    }
    measure(cells[r + 1], columns, false);
  }
  std::string out;
  draw_row(cells[0], columns, out);
  out += rule(columns);
  for (std::size_t r = 1; r < cells.size(); ++r) draw_row(cells[r], columns, out);
  return out + left_out(rows.size() - shown_rows, names.size() - shown_columns);
}

}  // namespace agentd::render
