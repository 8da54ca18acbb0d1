// JSON from a client, as plain values that know where they stand. Pure.
//
// SECURITY: the text is hostile. Whatever it is, parsing takes time in its length and memory within
// the bounds below: nesting, number of values and length of names are limited while reading, before
// anything is built. Duplicate names are errors, as two readers would take different ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/problem.h"

namespace sbx::http {

// A value, or what to answer the client.
template <typename T>
using OrProblem = std::variant<T, Problem>;

inline constexpr std::size_t kMaxJsonDepth = 6;
inline constexpr std::size_t kMaxJsonValues = 32'768;
inline constexpr std::size_t kMaxJsonName = 256;

enum class JsonKind : std::uint8_t { kNull, kBool, kInteger, kFloat, kString, kArray, kObject };
[[nodiscard]] std::string_view json_kind_name(JsonKind kind);  // "a string"

struct JsonValue {
  JsonKind kind = JsonKind::kNull;
  std::string key{};               // in an object
  std::string text{};              // kString: the string; numbers in decimal; "true", "false"
  std::vector<JsonValue> items{};  // of arrays and objects

  // Null when an object has no such member.
  [[nodiscard]] const JsonValue* find(std::string_view name) const;
  [[nodiscard]] JsonValue* find(std::string_view name);
};

// One document. 400 `invalid_json`, with the byte at which it goes wrong; 400 `duplicate_field`;
// 413 `body_too_large` past the bounds.
[[nodiscard]] OrProblem<JsonValue> parse_strict_json(std::string_view text);

}  // namespace sbx::http
