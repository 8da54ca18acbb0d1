#include "agentd/loop/artifacts.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "runtime/base/sha256.h"

namespace agentd::loop {
namespace {

using envelope::Cell;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// "12.5%", "49 30 123-45", "$1,200.50", "1.5e-7", or nothing: no letters but an exponent's, so that
// no function, name or cell can be meant.
bool is_plain_figure(std::string_view text) {
  constexpr std::string_view kMarks = " .,%()/-";
  for (const std::string_view currency : {"$", "\u20AC", "\u00A3", "\u00A5"}) {
    if (text.starts_with(currency)) text.remove_prefix(currency.size());
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_digit(text[i]) || kMarks.find(text[i]) != std::string_view::npos) continue;
    const bool exponent = (text[i] == 'e' || text[i] == 'E') && i > 0 && is_digit(text[i - 1]);
    if (!exponent) return false;
    if (i + 1 < text.size() && (text[i + 1] == '+' || text[i + 1] == '-')) ++i;
    if (i + 1 == text.size() || !is_digit(text[i + 1])) return false;
  }
  return true;
}

bool is_formula(std::string_view text) {
  if (text.empty()) return false;
  if (std::string_view("=@\t\r").find(text.front()) != std::string_view::npos) return true;
  const bool sign = text.front() == '+' || text.front() == '-';
  return sign && !is_plain_figure(text.substr(1));
}

std::string csv_field(std::string_view text, bool is_text) {
  std::string field = is_text && is_formula(text) ? "'" : "";
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
