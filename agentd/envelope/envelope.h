// The envelope: how a generated program says what its result is. Service: agentd. Pure.
//
// One JSON object on the last line of stdout that is not empty:
//   {"type": "table"|"chart"|"text"|"file", "data": …, "artifact_path": …, "note": …}
// Other keys are ignored. Everything here was printed by a program that nobody has read: it is data
// to show, never a claim to believe. In particular an artifact counts only when the runtime
// collected it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace agentd::envelope {

inline constexpr std::size_t kMaxColumns = 1000;
inline constexpr std::size_t kMaxNoteBytes = 4096;

enum class Type : std::uint8_t { kTable, kChart, kText, kFile };
[[nodiscard]] std::string_view to_string(Type type);  // "table"

struct Cell {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kText, kJson };
  Kind kind = Kind::kNull;
  std::string text;  // kNull: empty; kJson: a nested value, compact
  bool operator==(const Cell&) const = default;
};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`
};

struct Envelope {
  Type type = Type::kText;
  Table table{};            // kTable
  std::string text{};       // kText
  std::string data_json{};  // kChart, kFile: "data" as compact JSON, or empty
  std::string artifact{};   // kChart, kFile: the path below /output, as the runtime lists it
  std::string note{};       // may be empty
};

// Which rule was broken: `code` is stable, `detail` a sentence of ours that a model can act on,
// `subject` what it is about in the program's own words, if anything.
struct Violation {
  std::string code;
  std::string detail;
  std::string subject{};
};

// `collected`: the paths below /output that the runtime collected.
[[nodiscard]] std::variant<Envelope, Violation> parse(std::string_view stdout_text,
                                                      std::span<const std::string> collected);

// The last line that is not blank, without white space around it; empty when there is none.
[[nodiscard]] std::string_view last_line(std::string_view text);

}  // namespace agentd::envelope
