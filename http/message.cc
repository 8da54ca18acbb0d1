#include "http/message.h"

#include <strings.h>

#include <algorithm>
#include <array>

namespace sbx::http {
namespace {

bool same_without_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

struct Phrase {
  int status;
  std::string_view text;
};

constexpr Phrase kPhrases[] = {
    {100, "Continue"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {507, "Insufficient Storage"},
};

}  // namespace

std::string_view to_string(Method method) {
  constexpr std::array<std::string_view, 6> kNames{"GET", "HEAD", "POST", "PUT", "DELETE", ""};
  return kNames[static_cast<std::size_t>(method)];
}

std::optional<std::string_view> Headers::find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (same_without_case(field.name, name)) return field.value;
  }
  return std::nullopt;
}

std::size_t Headers::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(fields_.begin(), fields_.end(),
                    [name](const Field& field) { return same_without_case(field.name, name); }));
}

bool Headers::has_token(std::string_view name, std::string_view token) const {
  for (const Field& field : fields_) {
    if (!same_without_case(field.name, name)) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const auto comma = std::min(rest.find(','), rest.size());
      if (same_without_case(trim(rest.substr(0, comma)), token)) return true;
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return false;
}

void Headers::add(std::string name, std::string value) {
  fields_.push_back({std::move(name), std::move(value)});
}

void Headers::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const Field& field) { return same_without_case(field.name, name); });
  add(std::move(name), std::move(value));
}

Response json_response(std::string body, int status) {
  return {status, {}, "application/json", std::move(body)};
}

Response text_response(std::string body, int status) {
  return {status, {}, "text/plain; charset=utf-8", std::move(body)};
}

Response no_content() {
  return {204, {}, {}, {}};
}

std::string_view reason_phrase(int status) {
  for (const Phrase& phrase : kPhrases) {
    if (phrase.status == status) return phrase.text;
  }
  return {};
}

}  // namespace sbx::http
