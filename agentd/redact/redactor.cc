#include "agentd/redact/redactor.h"

#include <algorithm>
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

}  // namespace

Redactor::Redactor(std::vector<Secret> own) : own_(std::make_unique<OwnSecrets>(own)) {}
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

std::vector<Redactor::Hit> Redactor::find(std::string_view text) const {
  std::vector<Hit> hits;
  ShapeFinder shapes(text);
  for (std::size_t i = 0; i < text.size();) {
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

namespace {

// NOLINTNEXTLINE(misc-no-recursion): the depth is that of records of ours
Json cleaned(const Redactor& redactor, const Json& json) {
  if (json.is_string()) return redactor.clean(json.get_ref<const std::string&>()).text();
  if (json.is_array()) {
    Json list = Json::array();
    for (const Json& item : json) list.push_back(cleaned(redactor, item));
    return list;
  }
  if (json.is_object()) {
    Json object = Json::object();
    for (const auto& [key, value] : json.items()) {
      object[redactor.clean(key).text()] = cleaned(redactor, value);
    }
    return object;
  }
  return json;
}

}  // namespace

Clean Redactor::clean_json(const Json& json) const {
  return Clean(cleaned(*this, json).dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace agentd::redact
