// JsonWriter: writes JSON as Clean text, value after value, without a tree of it in between. Pure.
//
// Every string is redacted as it is written. The names of members are ours: what a stranger named
// is for tree(), which redacts names too. Compact, in the form that nlohmann's dump() has.
//
// Each function writes one value: a member of the object that was begun last, by its name, or with
// kItem an item of the list, or the whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "agentd/redact/redactor.h"

namespace agentd::redact {

class JsonWriter {
 public:
  static constexpr std::string_view kItem{};

  // Borrowed; outlives it.
  explicit JsonWriter(const Redactor& redactor) : redactor_(redactor) { text_.reserve(kUsual); }

  void begin_object(std::string_view name) { begin(name, '{'); }
  void end_object() { end('}'); }
  void begin_list(std::string_view name) { begin(name, '['); }
  void end_list() { end(']'); }

  void text(std::string_view name, std::string_view value);
  void text_or_null(std::string_view name, std::string_view value);  // null where it is empty
  void integer(std::string_view name, std::int64_t value);
  void size(std::string_view name, std::uint64_t value);
  void number(std::string_view name, double value);  // null where JSON has no such number
  void boolean(std::string_view name, bool value);
  void null(std::string_view name);
  void tree(std::string_view name, const nlohmann::ordered_json& value);
  void clean(std::string_view name, const Clean& value);  // JSON already

  // What was written, once all that was begun has ended.
  [[nodiscard]] Clean take();

 private:
  static constexpr std::size_t kUsual = 1024;  // bytes: most records need no more

  void put_name(std::string_view name);
  void put(std::string_view name, std::string_view value);
  void begin(std::string_view name, char bracket);
  void end(char bracket);

  const Redactor& redactor_;
  std::string text_;  // each value with a comma behind it, which the end of what it is in takes
};

}  // namespace agentd::redact
