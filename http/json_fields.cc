#include "http/json_fields.h"

#include <fmt/core.h>

#include <utility>

namespace sbx::http {
namespace {

constexpr std::size_t kMaxShown = 128;

}  // namespace

std::string shown_text(std::string_view text) {
  return std::string(text.substr(0, kMaxShown)) + (text.size() > kMaxShown ? "…" : "");
}

Problem wrong_type(const std::string& field, JsonKind wanted, JsonKind given) {
  return {.status = 400,
          .code = "wrong_type",
          .detail = fmt::format("{} must be {}, not {}.", field, json_kind_name(wanted),
                                json_kind_name(given)),
          .field = field};
}

Problem invalid_value(const std::string& field, std::string detail,
                      std::vector<std::string> allowed) {
  return {.status = 422,
          .code = "invalid_value",
          .detail = std::move(detail),
          .field = field,
          .allowed = std::move(allowed)};
}

Problem missing_field(const std::string& field, std::string detail) {
  return {.status = 400, .code = "missing_field", .detail = std::move(detail), .field = field};
}

Problem unknown_field(const std::string& field, std::vector<std::string> allowed) {
  return {.status = 400,
          .code = "unknown_field",
          .detail = "There is no such field.",
          .field = shown_text(field),
          .allowed = std::move(allowed)};
}

}  // namespace sbx::http
