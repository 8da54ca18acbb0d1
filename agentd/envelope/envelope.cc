#include "agentd/envelope/envelope.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "agentd/envelope/strict_json.h"
#include "agentd/redact/quote.h"

namespace agentd::envelope {
namespace {

using Kind = JsonNode::Kind;

constexpr std::string_view kOutput = "/output/";
constexpr std::string_view kBlanks = " \t\r\n\v\f";

constexpr std::array<std::pair<std::string_view, Type>, 4> kTypes = {{
    {"table", Type::kTable},
    {"chart", Type::kChart},
    {"text", Type::kText},
    {"file", Type::kFile},
}};

Cell to_cell(const JsonNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return {};
    case Kind::kBool:
      return {Cell::Kind::kBool, node.text};
    case Kind::kNumber:
      return {Cell::Kind::kNumber, node.text};
    case Kind::kString:
      return {Cell::Kind::kText, node.text};
    case Kind::kArray:
    case Kind::kObject:
      break;
  }
  return {Cell::Kind::kJson, to_json(node)};
}

Violation bad_table(std::string detail) {
  return {"bad_table", std::move(detail)};
}

// {"columns": […], "rows": [[…], …]}
std::optional<Violation> read_columns_and_rows(const JsonNode& data, Table& table) {
  const JsonNode* columns = data.find("columns");
  const JsonNode* rows = data.find("rows");
  if (columns == nullptr || columns->kind != Kind::kArray || rows == nullptr ||
      rows->kind != Kind::kArray) {
    return bad_table(R"("data" of a table needs "columns" (a list) and "rows" (a list of lists))");
  }
  for (const JsonNode& column : columns->items) table.columns.push_back(to_cell(column).text);
  for (const JsonNode& row : rows->items) {
    if (row.kind != Kind::kArray) return bad_table("each of \"rows\" must be a list");
    if (row.items.size() != table.columns.size()) {
      return Violation{"ragged_row",
                       fmt::format("row {} has {} cells, but there are {} columns",
                                   table.rows.size() + 1, row.items.size(), table.columns.size())};
    }
    std::vector<Cell>& cells = table.rows.emplace_back();
    for (const JsonNode& cell : row.items) cells.push_back(to_cell(cell));
  }
  return std::nullopt;
}

// [{column: cell, …}, …]: the columns in the order in which they first appear.
std::optional<Violation> read_objects(const JsonNode& data, Table& table) {
  std::unordered_map<std::string_view, std::size_t> places;
  for (const JsonNode& row : data.items) {
    if (row.kind != Kind::kObject) return bad_table("each element of \"data\" must be an object");
    for (const std::string& key : row.keys) {
      if (places.emplace(key, table.columns.size()).second) table.columns.push_back(key);
    }
    if (table.columns.size() > kMaxColumns) break;  // said by the caller
  }
  if (table.columns.size() > kMaxColumns) return std::nullopt;
  if (data.items.size() * table.columns.size() > kMaxJsonValues) {
    return bad_table("the rows have too many different keys");
  }
  for (const JsonNode& row : data.items) {
    std::vector<Cell>& cells = table.rows.emplace_back(table.columns.size());
    for (std::size_t i = 0; i < row.keys.size(); ++i) {
      cells[places.at(row.keys[i])] = to_cell(row.items[i]);
    }
  }
  return std::nullopt;
}

std::optional<Violation> read_table(const JsonNode* data, Table& table) {
  std::optional<Violation> broken;
  if (data == nullptr) {
    broken = Violation{"missing_data", "a table needs \"data\""};
  } else if (data->kind == Kind::kObject) {
    broken = read_columns_and_rows(*data, table);
  } else if (data->kind == Kind::kArray) {
    broken = read_objects(*data, table);
  } else {
    broken =
        bad_table("\"data\" of a table is an object with columns and rows, or a list of objects");
  }
  if (!broken && table.columns.size() > kMaxColumns) {
    broken = Violation{"too_many_columns", fmt::format("{} columns; at most {} are shown",
                                                       table.columns.size(), kMaxColumns)};
  }
  if (!broken && table.columns.empty()) broken = bad_table("the table has no columns");
  return broken;
}

std::optional<Violation> read_artifact(const JsonNode* path, std::span<const std::string> collected,
                                       std::string& artifact) {
  if (path == nullptr || path->kind == Kind::kNull) {
    return Violation{"missing_artifact_path",
                     "a chart or file needs \"artifact_path\", the path of what was saved"};
  }
  if (path->kind != Kind::kString) {
    return Violation{"bad_artifact_path", "\"artifact_path\" must be a string"};
  }
  std::string_view name = path->text;
  if (name.starts_with(kOutput)) {
    name.remove_prefix(kOutput.size());
  } else if (name.starts_with('/')) {
    return Violation{"bad_artifact_path", "\"artifact_path\" must be beneath /output"};
  }
  if (std::find(collected.begin(), collected.end(), name) == collected.end()) {
    return Violation{"artifact_not_collected",
                     "the file that \"artifact_path\" names is not in /output after the run",
                     std::string(redact::first_words(name, kMaxNoteBytes))};
  }
  artifact = name;
  return std::nullopt;
}

std::optional<Violation> read_note(const JsonNode* note, std::string& text) {
  if (note == nullptr || note->kind == Kind::kNull) return std::nullopt;
  if (note->kind != Kind::kString) return Violation{"bad_note", "\"note\" must be a string"};
  if (note->text.size() > kMaxNoteBytes) {
    return Violation{"bad_note", fmt::format("\"note\" is longer than {} bytes", kMaxNoteBytes)};
  }
  text = note->text;
  return std::nullopt;
}

std::optional<Violation> read_type(const JsonNode& root, Type& type) {
  constexpr std::string_view kAllowed = R"("type" must be "table", "chart", "text" or "file")";
  const JsonNode* node = root.find("type");
  if (node == nullptr) return Violation{"missing_type", std::string(kAllowed)};
  for (const auto& [name, value] : kTypes) {
    if (node->kind != Kind::kString || node->text != name) continue;
    type = value;
    return std::nullopt;
  }
  return Violation{"unknown_type", std::string(kAllowed)};
}

std::optional<Violation> read_content(const JsonNode& root, std::span<const std::string> collected,
                                      Envelope& envelope) {
  const JsonNode* data = root.find("data");
  if (data != nullptr && data->kind == Kind::kNull) data = nullptr;
  switch (envelope.type) {
    case Type::kTable:
      return read_table(data, envelope.table);
    case Type::kText:
      if (data == nullptr) return Violation{"missing_data", "a text needs \"data\""};
      if (data->kind != Kind::kString) {
        return Violation{"bad_text", "\"data\" of a text must be a string"};
      }
      envelope.text = data->text;
      return std::nullopt;
    case Type::kChart:
    case Type::kFile:
      if (data != nullptr) envelope.data_json = to_json(*data);
      return read_artifact(root.find("artifact_path"), collected, envelope.artifact);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Type type) {
  for (const auto& [name, value] : kTypes) {
    if (value == type) return name;
  }
  return {};
}

std::string_view last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(kBlanks);
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const std::size_t line_end = text.rfind('\n');
  if (line_end != std::string_view::npos) text.remove_prefix(line_end + 1);
  text.remove_prefix(text.find_first_not_of(kBlanks));
  return text;
}

std::variant<Envelope, Violation> parse(std::string_view stdout_text,
                                        std::span<const std::string> collected) {
  const std::string_view line = last_line(stdout_text);
  if (line.empty()) return Violation{"no_output", "the program printed nothing"};
  auto parsed = parse_strict_json(line);
  if (const auto* problem = std::get_if<JsonProblem>(&parsed)) {
    return Violation{std::string(problem->code), "the last line of stdout: " + problem->detail,
                     problem->subject};
  }
  const JsonNode& root = std::get<JsonNode>(parsed);
  if (root.kind != Kind::kObject) {
    return Violation{"not_an_object", "the last line of stdout must be one JSON object"};
  }
  Envelope envelope;
  if (auto broken = read_type(root, envelope.type)) return *std::move(broken);
  if (auto broken = read_content(root, collected, envelope)) return *std::move(broken);
  if (auto broken = read_note(root.find("note"), envelope.note)) return *std::move(broken);
  return envelope;
}

}  // namespace agentd::envelope
