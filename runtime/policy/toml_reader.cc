#include "runtime/policy/toml_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>

// SECURITY: toml++ 3.3 asserts in release builds by telling the compiler that the condition holds,
// and some inputs break it ("[ = 1" does): undefined behaviour. Here every assertion is a check
// that throws. The header has to be included first, since it defines the macros without asking.
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
#include <toml++/impl/preprocessor.h>
#undef TOML_ASSERT
#undef TOML_ASSERT_ASSUME
#define TOML_ASSERT(condition) ::sbx::policy::parser_check(static_cast<bool>(condition))
#define TOML_ASSERT_ASSUME(condition) TOML_ASSERT(condition)

namespace sbx::policy {
namespace {

struct ParserCheckFailed : std::exception {};

constexpr void parser_check(bool holds) {
  if (!holds) throw ParserCheckFailed();
}

}  // namespace
}  // namespace sbx::policy

#include <toml++/toml.h>

namespace sbx::policy {
namespace {

std::string_view kind_name(TomlKind kind) {
  switch (kind) {
    case TomlKind::kString:
      return "a string";
    case TomlKind::kInteger:
      return "an integer";
    case TomlKind::kFloat:
      return "a number";
    case TomlKind::kBool:
      return "true or false";
    case TomlKind::kArray:
      return "an array";
    case TomlKind::kTable:
      return "a table";
    case TomlKind::kOther:
      return "a date or time";
  }
  return {};
}

// Shortest text that reads back as the same number, without an exponent for the sizes of limits.
std::string float_text(double number) {
  if (!std::isfinite(number)) return std::isnan(number) ? "nan" : (number < 0 ? "-inf" : "inf");
  return std::fabs(number) < 1e15 ? fmt::format("{}", number) : fmt::format("{:e}", number);
}

void set_scalar(TomlValue& value, const toml::node& node) {
  if (const auto* string = node.as_string()) {
    value.kind = TomlKind::kString;
    value.text = string->get();
  } else if (const auto* integer = node.as_integer()) {
    value.kind = TomlKind::kInteger;
    value.integer = integer->get();
    value.text = std::to_string(value.integer);
  } else if (const auto* number = node.as_floating_point()) {
    value.kind = TomlKind::kFloat;
    value.text = float_text(number->get());
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = TomlKind::kBool;
    value.text = boolean->get() ? "true" : "false";
  } else {
    value.kind = TomlKind::kOther;
  }
}

// Copies `node` into `value`, whose key, path and line the caller has set. False: nested too
// deeply.
bool convert(const toml::node& node, TomlValue& value, std::uint32_t depth) {
  if (depth > kMaxTomlDepth) return false;
  if (const auto* table = node.as_table()) {
    value.kind = TomlKind::kTable;
    for (const auto& [key, child] : *table) {
      TomlValue& item = value.items.emplace_back();
      item.key = key.str();
      item.path = value.path.empty() ? item.key : value.path + '.' + item.key;
      item.line = key.source().begin.line;
      if (!convert(child, item, depth + 1)) return false;
    }
  } else if (const auto* array = node.as_array()) {
    value.kind = TomlKind::kArray;
    for (const auto& child : *array) {
      TomlValue& item = value.items.emplace_back();
      item.path = fmt::format("{}[{}]", value.path, value.items.size() - 1);
      item.line = child.source().begin.line;
      if (!convert(child, item, depth + 1)) return false;
    }
  } else {
    set_scalar(value, node);
  }
  return true;
}

// SECURITY: a table nested as deeply as the text is long would overflow the stack in the parser's
// own destructors; its bound on nested values does not count dotted keys.
Result<void> check_size(std::string_view text, std::string_view origin) {
  if (text.size() > kMaxTomlBytes) {
    return invalid(fmt::format("{}: longer than {} bytes", origin, kMaxTomlBytes));
  }
  std::size_t line = 1;
  std::size_t dots = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '.' && ++dots > kMaxTomlDotsPerLine) {
      return invalid(
          fmt::format("{}:{}: more than {} dots in one line", origin, line, kMaxTomlDotsPerLine));
    }
  }
  return {};
}

bool breaks_check(std::string_view text) {
  try {
    (void)toml::parse(text);  // only whether it gets through
  } catch (const ParserCheckFailed&) {
    return true;
  } catch (const std::exception&) {
    // An ordinary error, for instance of a text that was cut in the middle.
  }
  return false;
}

// The parser reads forward only, so the lines up to the bad one break the check and fewer do not.
std::size_t line_of_failed_check(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') ends.push_back(i + 1);
  }
  const auto bad = std::partition_point(ends.begin(), ends.end(), [text](std::size_t end) {
    return !breaks_check(text.substr(0, end));
  });
  return static_cast<std::size_t>(bad - ends.begin()) + 1;
}

}  // namespace

const TomlValue* TomlValue::find(std::string_view name) const {
  const auto item = std::find_if(items.begin(), items.end(),
                                 [name](const TomlValue& each) { return each.key == name; });
  return item == items.end() ? nullptr : &*item;
}

Result<TomlValue> parse_toml(std::string_view text, std::string_view origin) {
  SBX_TRY(check_size(text, origin));
  try {
    const toml::table table = toml::parse(text);
    TomlValue root;
    if (!convert(table, root, 0)) {
      return invalid(fmt::format("{}: nested more than {} levels deep", origin, kMaxTomlDepth));
    }
    return root;
  } catch (const toml::parse_error& error) {
    return invalid(
        fmt::format("{}:{}: {}", origin, error.source().begin.line, error.description()));
  } catch (const ParserCheckFailed&) {
    return invalid(fmt::format("{}:{}: not valid TOML", origin, line_of_failed_check(text)));
  } catch (const std::exception& error) {  // out of memory
    return invalid(fmt::format("{}: {}", origin, error.what()));
  }
}

Error toml_error(std::string_view origin, const TomlValue& value, std::string_view message) {
  if (value.path.empty()) return invalid(fmt::format("{}: {}", origin, message));
  return invalid(fmt::format("{}:{}: key '{}': {}", origin, value.line, value.path, message));
}

Result<void> check_keys(std::string_view origin, const TomlValue& table,
                        std::initializer_list<std::string_view> known) {
  for (const TomlValue& item : table.items) {
    if (std::find(known.begin(), known.end(), item.key) != known.end()) continue;
    return toml_error(origin, item,
                      fmt::format("unknown key; known here: {}", fmt::join(known, ", ")));
  }
  return {};
}

Result<void> check_kind(std::string_view origin, const TomlValue& value, TomlKind kind) {
  if (value.kind == kind) return {};
  return toml_error(origin, value,
                    fmt::format("must be {}, not {}", kind_name(kind), kind_name(value.kind)));
}

Result<std::string> required_string(std::string_view origin, const TomlValue& table,
                                    std::string_view name) {
  const TomlValue* value = table.find(name);
  if (value == nullptr) return toml_error(origin, table, fmt::format("key '{}' is missing", name));
  SBX_TRY(check_kind(origin, *value, TomlKind::kString));
  if (value->text.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
    return toml_error(origin, *value, "must be one line");
  }
  return value->text;
}

Result<std::vector<std::string>> string_list(std::string_view origin, const TomlValue& value) {
  SBX_TRY(check_kind(origin, value, TomlKind::kArray));
  std::vector<std::string> strings;
  for (const TomlValue& item : value.items) {
    SBX_TRY(check_kind(origin, item, TomlKind::kString));
    strings.push_back(item.text);
  }
  return strings;
}

}  // namespace sbx::policy
