#include "agentd/loop/artifacts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/base/sha256.h"

namespace agentd::loop {
namespace {

using envelope::Cell;

std::string csv_field(std::string_view text, bool is_text) {
  constexpr std::string_view kFormula = "=+-@\t\r";
  std::string field;
  if (is_text && !text.empty() && kFormula.find(text.front()) != std::string_view::npos) {
    field = "'";
  }
  field += text;
  if (field.find_first_of(",\"\r\n") == std::string::npos) return field;
  std::string quoted = "\"";
  for (const char c : field) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string free_name(const std::vector<record::Artifact>& artifacts) {
  for (int n = 1;; ++n) {
    std::string name = n == 1 ? "table.csv" : fmt::format("table-{}.csv", n);
    const bool taken = std::any_of(artifacts.begin(), artifacts.end(),
                                   [&](const auto& each) { return each.name == name; });
    if (!taken) return name;
  }
}

}  // namespace

std::string table_csv(const envelope::Table& table) {
  std::string csv;
  const auto end_line = [&csv] {
    csv.back() = '\r';  // was the comma behind the last field
    csv += '\n';
  };
  for (const std::string& column : table.columns) csv += csv_field(column, true) + ',';
  end_line();
  for (const auto& row : table.rows) {
    for (const Cell& cell : row) {
      const bool is_text = cell.kind == Cell::Kind::kText || cell.kind == Cell::Kind::kJson;
      csv += csv_field(cell.text, is_text) + ',';
    }
    end_line();
  }
  return csv;
}

std::vector<record::Artifact> artifacts_of(sandbox::RunResult run,
                                           const envelope::Envelope* envelope) {
  std::vector<record::Artifact> artifacts;
  for (sandbox::OutputFile& file : run.files) {
    artifacts.push_back({.name = std::move(file.path),
                         .size = file.size,
                         .sha256 = std::move(file.sha256),
                         .media_type = std::move(file.media_type),
                         .content = std::move(file.content)});
  }
  if (envelope != nullptr && envelope->type == envelope::Type::kTable) {
    std::string csv = table_csv(envelope->table);
    artifacts.push_back({.name = free_name(artifacts),
                         .size = csv.size(),
                         .sha256 = sbx::sha256_of(csv),
                         .media_type = "text/csv",
                         .content = std::move(csv)});
  }
  return artifacts;
}

}  // namespace agentd::loop
