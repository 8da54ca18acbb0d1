#include "agentd/redact/json_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <utility>

namespace agentd::redact {

void JsonWriter::put_name(std::string_view name) {
  if (name.empty()) return;
  text_ += '"';
  text_ += name;
  text_ += "\":";
}

void JsonWriter::put(std::string_view name, std::string_view value) {
  put_name(name);
  text_ += value;
  text_ += ',';
}

void JsonWriter::begin(std::string_view name, char bracket) {
  put_name(name);
  text_ += bracket;
}

void JsonWriter::end(char bracket) {
  if (text_.back() == ',') text_.pop_back();
  text_ += bracket;
  text_ += ',';
}

void JsonWriter::text(std::string_view name, std::string_view value) {
  put_name(name);
  redactor_.append_json_string(text_, value);
  text_ += ',';
}

void JsonWriter::text_or_null(std::string_view name, std::string_view value) {
  if (value.empty()) return null(name);
  text(name, value);
}

void JsonWriter::integer(std::string_view name, std::int64_t value) {
  const fmt::format_int digits(value);
  put(name, {digits.data(), digits.size()});
}

void JsonWriter::size(std::string_view name, std::uint64_t value) {
  const fmt::format_int digits(value);
  put(name, {digits.data(), digits.size()});
}

// A whole one stays a float to those who tell the two apart.
void JsonWriter::number(std::string_view name, double value) {
  if (!std::isfinite(value)) return null(name);
  fmt::basic_memory_buffer<char, 32> digits;
  fmt::format_to(std::back_inserter(digits), "{}", value);
  const std::string_view text(digits.data(), digits.size());
  const bool whole = text.find_first_not_of("-0123456789") == std::string_view::npos;
  put_name(name);
  text_ += text;
  text_ += whole ? ".0," : ",";
}

void JsonWriter::boolean(std::string_view name, bool value) {
  put(name, value ? "true" : "false");
}

void JsonWriter::null(std::string_view name) {
  put(name, "null");
}

void JsonWriter::tree(std::string_view name, const nlohmann::ordered_json& value) {
  clean(name, redactor_.clean_json(value));
}

void JsonWriter::clean(std::string_view name, const Clean& value) {
  put(name, value.text());
}

Clean JsonWriter::take() {
  if (!text_.empty()) text_.pop_back();
  return Clean(std::exchange(text_, {}));
}

}  // namespace agentd::redact
