// TOML as plain values that know their key and line, and the checks that every reader of a policy,
// language or config file shares. Stage: base.
//
// toml++ is behind this header and nowhere else. Values only; no file is opened here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace sbx {

// More is no configuration file. The parser recurses with the nesting; these bounds keep it
// shallow.
inline constexpr std::size_t kMaxTomlBytes = 64 * 1024;
inline constexpr std::size_t kMaxTomlDotsPerLine = 32;
inline constexpr std::uint32_t kMaxTomlDepth = 8;

enum class TomlKind { kString, kInteger, kFloat, kBool, kArray, kTable, kOther };

struct TomlValue {
  TomlKind kind = TomlKind::kTable;
  std::uint32_t line = 0;  // of the key, or of the element of an array
  std::string key;         // the last component; empty in an array and at the root
  std::string path;        // "limits.pids", "seccomp.allow[2]"; empty at the root
  std::string text;        // kString: the string; kInteger, kFloat, kBool: as TOML writes it
  std::int64_t integer = 0;
  std::vector<TomlValue> items;  // kArray: elements; kTable: values, sorted by key

  // Null when a table has no such key.
  [[nodiscard]] const TomlValue* find(std::string_view name) const;
};

// The root table. kInvalid "origin:line: …" for syntax errors, duplicate keys and sizes above.
[[nodiscard]] Result<TomlValue> parse_toml(std::string_view text, std::string_view origin);

// "origin:line: key 'limits.pids': message".
[[nodiscard]] Error toml_error(std::string_view origin, const TomlValue& value,
                               std::string_view message);

// kInvalid for the first key of `table` that is not among `known`, naming those.
[[nodiscard]] Result<void> check_keys(std::string_view origin, const TomlValue& table,
                                      std::initializer_list<std::string_view> known);
[[nodiscard]] Result<void> check_kind(std::string_view origin, const TomlValue& value,
                                      TomlKind kind);
// The string at `name`; kInvalid when it is missing, no string, or has a NUL or line break.
[[nodiscard]] Result<std::string> required_string(std::string_view origin, const TomlValue& table,
                                                  std::string_view name);
// The strings of the array `value`; kInvalid when it is no array or an element is no string.
[[nodiscard]] Result<std::vector<std::string>> string_list(std::string_view origin,
                                                           const TomlValue& value);

}  // namespace sbx
