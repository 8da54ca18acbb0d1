#include "http/uri.h"

#include <algorithm>

namespace sbx::http {
namespace {

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

// Of a whole target: no blanks, no controls, no fragment.
bool is_target_byte(char c) {
  return static_cast<unsigned char>(c) > 0x20 && c != 0x7F && c != '#';
}

// "http://authority/path" is what a client sends to a proxy, and must be understood (RFC
// 9112 3.2.2).
std::string_view without_authority(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    text.remove_prefix(scheme.size());
    return text.substr(std::min(text.find('/'), text.size()));
  }
  return text;
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (text.size() - i < 3) return std::nullopt;
    const int high = hex_value(text[i + 1]);
    const int low = hex_value(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

std::string percent_encode(std::string_view text, std::string_view keep) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_unreserved(c) || keep.find(c) != std::string_view::npos) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4];
    encoded += kDigits[byte & 0xF];
  }
  return encoded;
}

std::optional<Query> Query::parse(std::string_view text) {
  Query query;
  while (!text.empty()) {
    const auto end = std::min(text.find('&'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (part.empty()) continue;
    const auto equals = std::min(part.find('='), part.size());
    auto name = percent_decode(part.substr(0, equals));
    auto value = percent_decode(part.substr(std::min(equals + 1, part.size())));
    if (!name || !value) return std::nullopt;
    query.all_.emplace_back(*std::move(name), *std::move(value));
  }
  return query;
}

std::optional<std::string_view> Query::find(std::string_view name) const {
  for (const auto& [key, value] : all_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<Target> parse_target(std::string_view text) {
  text = without_authority(text);
  if (!text.starts_with('/') || !std::all_of(text.begin(), text.end(), is_target_byte)) {
    return std::nullopt;
  }
  const auto mark = std::min(text.find('?'), text.size());
  Target target;
  target.path = text.substr(0, mark);
  auto query = Query::parse(text.substr(std::min(mark + 1, text.size())));
  if (!query) return std::nullopt;
  target.query = *std::move(query);
  std::string_view rest = std::string_view(target.path).substr(1);
  for (;;) {
    const auto slash = std::min(rest.find('/'), rest.size());
    auto segment = percent_decode(rest.substr(0, slash));
    if (!segment) return std::nullopt;
    target.segments.push_back(*std::move(segment));
    if (slash == rest.size()) return target;
    rest.remove_prefix(slash + 1);
  }
}

}  // namespace sbx::http
