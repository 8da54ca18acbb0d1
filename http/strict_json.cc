#include "http/strict_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace sbx::http {
namespace {

using Json = nlohmann::json;

Problem not_json(std::size_t position) {
  return {.status = 400,
          .code = "invalid_json",
          .detail = fmt::format("The body is not valid JSON at byte {}.", position)};
}

Problem over(std::string_view what, std::size_t bound) {
  return {.status = 413,
          .code = problem_code::kBodyTooLarge,
          .detail = fmt::format("The body has {} than {}.", what, bound)};
}

// Shortest decimal text that reads back as the same number, without an exponent where limits lie.
std::string float_text(double number) {
  return std::fabs(number) < 1e15 ? fmt::format("{}", number) : fmt::format("{:e}", number);
}

// Receives the parser's events and builds the value; false ends the parse with problem().
class Builder final : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return add({.kind = JsonKind::kNull}); }
  bool boolean(bool value) override {
    return add({.kind = JsonKind::kBool, .text = value ? "true" : "false"});
  }
  bool number_integer(number_integer_t value) override {
    return add({.kind = JsonKind::kInteger, .text = std::to_string(value)});
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add({.kind = JsonKind::kInteger, .text = std::to_string(value)});
  }
  bool number_float(number_float_t value, const string_t&) override {
    return add({.kind = JsonKind::kFloat, .text = float_text(value)});
  }
  bool string(string_t& value) override {
    return add({.kind = JsonKind::kString, .text = std::move(value)});
  }
  bool binary(binary_t&) override { return false; }  // not in JSON text
  bool start_object(std::size_t) override { return open(JsonKind::kObject); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(JsonKind::kArray); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    problem_ = not_json(position);
    return false;
  }

  [[nodiscard]] std::optional<Problem>& problem() { return problem_; }
  [[nodiscard]] JsonValue& root() { return root_; }

 private:
  bool add(JsonValue value);
  bool open(JsonKind kind);
  bool close() {
    open_.pop_back();
    names_.pop_back();
    return true;
  }
  [[nodiscard]] std::string path_of(const std::string& name) const;

  JsonValue root_;
  // From the root inwards. A value does not move while one inside it is open: only the innermost
  // one's list grows.
  std::vector<JsonValue*> open_;
  std::vector<std::set<std::string>> names_;  // of the members of each, to find a second one fast
  std::string name_;                          // of the next member
  std::size_t values_ = 0;
  std::optional<Problem> problem_;
};

bool Builder::add(JsonValue value) {
  if (++values_ > kMaxJsonValues) {
    problem_ = over("more values", kMaxJsonValues);
    return false;
  }
  value.key = std::move(name_);
  name_.clear();
  if (open_.empty()) {
    root_ = std::move(value);
  } else {
    open_.back()->items.push_back(std::move(value));
  }
  return true;
}

bool Builder::open(JsonKind kind) {
  if (open_.size() >= kMaxJsonDepth) {
    problem_ = over("more levels of nesting", kMaxJsonDepth);
    return false;
  }
  if (!add({.kind = kind})) return false;
  open_.push_back(open_.empty() ? &root_ : &open_.back()->items.back());
  names_.emplace_back();
  return true;
}

bool Builder::key(string_t& name) {
  if (name.size() > kMaxJsonName) {
    problem_ = over("a name with more bytes", kMaxJsonName);
    return false;
  }
  if (!names_.back().insert(name).second) {
    problem_ = {.status = 400,
                .code = "duplicate_field",
                .detail = "The body has this field twice.",
                .field = path_of(name)};
    return false;
  }
  name_ = std::move(name);
  return true;
}

std::string Builder::path_of(const std::string& name) const {
  std::string path;
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (i > 0 && open_[i - 1]->kind == JsonKind::kArray) {
      path += fmt::format("[{}]", open_[i - 1]->items.size() - 1);
    } else if (!open_[i]->key.empty()) {
      path += (path.empty() ? "" : ".") + open_[i]->key;
    }
  }
  return path.empty() ? name : path + "." + name;
}

}  // namespace

std::string_view json_kind_name(JsonKind kind) {
  switch (kind) {
    case JsonKind::kNull:
      return "null";
    case JsonKind::kBool:
      return "true or false";
    case JsonKind::kInteger:
      return "an integer";
    case JsonKind::kFloat:
      return "a number";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kArray:
      return "an array";
    case JsonKind::kObject:
      break;
  }
  return "an object";
}

const JsonValue* JsonValue::find(std::string_view name) const {
  const auto item = std::find_if(items.begin(), items.end(),
                                 [&](const JsonValue& each) { return each.key == name; });
  return item == items.end() ? nullptr : &*item;
}

JsonValue* JsonValue::find(std::string_view name) {
  return const_cast<JsonValue*>(std::as_const(*this).find(name));
}

OrProblem<JsonValue> parse_strict_json(std::string_view text) {
  // The parser would skip it. RFC 8259, 8.1: none is sent, and which one is there says no more.
  if (text.starts_with("\xef\xbb\xbf")) return not_json(1);
  Builder builder;
  try {
    const bool whole = Json::sax_parse(text.begin(), text.end(), &builder);
    if (builder.problem()) return *std::move(builder.problem());
    if (!whole) return not_json(text.size());
  } catch (const std::exception&) {  // out of memory
    return no_memory_for_body();
  }
  return std::move(builder.root());
}

}  // namespace sbx::http
