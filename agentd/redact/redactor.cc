#include "agentd/redact/redactor.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "agentd/redact/own_secrets.h"
#include "agentd/redact/shapes.h"
#include "runtime/base/utf8.h"

namespace agentd::redact {
namespace {

using Json = nlohmann::ordered_json;

std::string utf8_of(std::string_view bytes) {
  std::string text;
  (void)sbx::append_replacing(text, bytes);
  return text;
}

bool needs_escape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// As nlohmann's dump() has it.
void append_escape(std::string& to, char c) {
  constexpr std::string_view kShort = "btnfr";  // of 8 to 13, but for 11
  constexpr std::string_view kDigits = "0123456789abcdef";
  to += '\\';
  if (c == '"' || c == '\\') {
    to += c;
  } else if (c >= '\b' && c <= '\r' && c != '\v') {
    to += kShort[static_cast<std::size_t>(c - (c < '\v' ? '\b' : '\t'))];
  } else {
    to += "u00";
    to += kDigits[static_cast<unsigned char>(c) >> 4U];
    to += kDigits[static_cast<unsigned char>(c) & 15U];
  }
}

// `text` is UTF-8.
void append_quoted(std::string& to, std::string_view text) {
  to += '"';
  while (!text.empty()) {
    const auto escape =
        std::find_if(text.begin(), text.end(), [](char c) { return needs_escape(c); });
    const auto plain = static_cast<std::size_t>(escape - text.begin());
    to += text.substr(0, plain);
    if (plain == text.size()) break;
    append_escape(to, *escape);
    text.remove_prefix(plain + 1);
  }
  to += '"';
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

}  // namespace

Clean Clean::merged(const Clean& object, const Clean& other) {
  std::string text = object.text_;
  text.back() = ',';
  text.append(other.text_, 1);
  return Clean(std::move(text));
}

Redactor::Redactor(std::vector<Secret> own) : own_(std::make_unique<OwnSecrets>(own)) {
  for (std::size_t byte = 0; byte < starts_.size(); ++byte) {
    const char c = static_cast<char>(byte);
    starts_[byte] = may_start_shape(c) || own_->may_start(c);
  }
}
Redactor::Redactor(Redactor&&) noexcept = default;
Redactor& Redactor::operator=(Redactor&&) noexcept = default;
Redactor::~Redactor() = default;

// An own secret that begins inside of a shape may go on behind it.
std::size_t Redactor::whole_length(std::string_view text, std::size_t from,
                                   std::size_t length) const {
  for (std::size_t i = 1; !own_->empty() && i < length; ++i) {
    length = std::max(length, i + own_->match_at(text, from + i));
  }
  return length;
}

bool Redactor::holds_own(std::string_view text) const {
  for (std::size_t i = 0; !own_->empty() && i < text.size(); ++i) {
    if (own_->match_at(text, i) > 0) return true;
  }
  return false;
}

std::size_t Redactor::reach() const {
  constexpr std::size_t kOthers = 4096;  // a private key in PEM
  return std::max(kOthers, own_->reach());
}

std::vector<Redactor::Hit> Redactor::find(std::string_view text) const {
  std::vector<Hit> hits;
  // Names and numbers, which are most of a record, are too short for any, as each end of a text is.
  const std::size_t shortest = own_->empty() ? kMinShapeBytes : kMinSecretBytes;
  ShapeFinder shapes(text);
  for (std::size_t i = 0; i + shortest <= text.size();) {
    if (!starts_[static_cast<unsigned char>(text[i])]) {
      ++i;
      continue;
    }
    std::size_t length = own_->empty() ? 0 : own_->match_at(text, i);
    std::string_view name = "own-secret";
    if (length == 0 && may_start_shape(text[i])) {
      if (const auto shape = shapes.at(i)) {
        length = whole_length(text, i, shape->length);
        name = shape->name;
      }
    }
    if (length > 0) hits.push_back({i, i + length, name});
    i += std::max<std::size_t>(length, 1);
  }
  return hits;
}

Clean Redactor::clean(std::string_view text) const {
  const std::vector<Hit> hits = find(text);
  if (hits.empty()) return Clean(utf8_of(text));
  std::string result;
  std::size_t at = 0;
  for (const Hit& hit : hits) {
    result += utf8_of(text.substr(at, hit.begin - at));
    result += "[redacted:";
    result += hit.name;
    result += ']';
    at = hit.end;
  }
  result += utf8_of(text.substr(at));
  return Clean(std::move(result));
}

void Redactor::append_json_string(std::string& to, std::string_view text) const {
  if (stays(text)) return append_quoted(to, text);
  append_quoted(to, clean(text).text());
}

bool Redactor::stays(std::string_view text) const {
  return is_ascii(text) && find(text).empty();
}

// NOLINTNEXTLINE(misc-no-recursion): as append_json()
void Redactor::append_json_object(std::string& to, const Json& json) const {
  Json renamed;  // two names may become the same one
  const auto items = json.items();
  if (!std::all_of(items.begin(), items.end(), [&](auto& each) { return stays(each.key()); })) {
    for (const auto& [key, value] : items) renamed[clean(key).text()] = value;
  }
  to += '{';
  for (const auto& [key, value] : (renamed.is_null() ? json : renamed).items()) {
    append_quoted(to, key);
    to += ':';
    append_json(to, value);
    to += ',';
  }
  if (!json.empty()) to.pop_back();
  to += '}';
}

// NOLINTNEXTLINE(misc-no-recursion): the depth is that of records of ours
void Redactor::append_json(std::string& to, const Json& json) const {
  if (json.is_string()) {
    append_json_string(to, json.get_ref<const std::string&>());
  } else if (json.is_object()) {
    append_json_object(to, json);
  } else if (json.is_array()) {
    to += '[';
    for (const Json& item : json) {
      append_json(to, item);
      to += ',';
    }
    if (!json.empty()) to.pop_back();
    to += ']';
  } else {
    to += json.dump();
  }
}

Clean Redactor::clean_json(const Json& json) const {
  std::string text;
  append_json(text, json);
  return Clean(std::move(text));
}

}  // namespace agentd::redact
