// JSON as a program of a model may print it: read strictly, within limits, with named errors.
//
// Stricter than RFC 8259 where it leaves a choice (a key given twice is an error), and no more
// lenient anywhere: Python's NaN and Infinity are errors. Pure; nlohmann/json does the lexing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace agentd::envelope {

inline constexpr std::size_t kMaxJsonBytes = 1U << 20;
inline constexpr std::size_t kMaxJsonDepth = 16;
inline constexpr std::size_t kMaxJsonValues = 200'000;

struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  std::string text{};               // kBool, kNumber: as JSON writes it; kString: decoded
  std::vector<std::string> keys{};  // kObject, in the order of the text, each once
  std::vector<JsonNode> items{};    // kArray: elements; kObject: the values of `keys`

  // Null when an object has no such key.
  [[nodiscard]] const JsonNode* find(std::string_view key) const;
};

// `code` is stable; `detail` is a sentence of ours that a model can act on. What it is about in the
// text's own words, if anything, is `subject`.
struct JsonProblem {
  std::string_view code;
  std::string detail;
  std::string subject{};
};
namespace json_code {
inline constexpr std::string_view kTooLong = "line_too_long";
inline constexpr std::string_view kSyntax = "not_json";
inline constexpr std::string_view kDuplicateKey = "duplicate_key";
inline constexpr std::string_view kNotANumber = "not_a_number";  // NaN, Infinity
inline constexpr std::string_view kNumberRange = "number_out_of_range";
inline constexpr std::string_view kLoneSurrogate = "lone_surrogate";
inline constexpr std::string_view kTooDeep = "too_deep";
inline constexpr std::string_view kTooMany = "too_many_values";
}  // namespace json_code

[[nodiscard]] std::variant<JsonNode, JsonProblem> parse_strict_json(std::string_view text);

// Of a kNumber's text: an integer beyond 64 bits, which readers of JSON make a double of.
[[nodiscard]] bool is_long_integer(std::string_view number);

// Compact, in the order of the text; long integers as strings of their digits, so that none is
// lost.
[[nodiscard]] std::string to_json(const JsonNode& node);

}  // namespace agentd::envelope
