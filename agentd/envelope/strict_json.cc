#include "agentd/envelope/strict_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "agentd/redact/quote.h"

namespace agentd::envelope {
namespace {

using Json = nlohmann::json;
using Kind = JsonNode::Kind;

constexpr std::size_t kMaxSubject = 200;

// Builds nodes from nlohmann's events. Returning false ends the parse.
class Builder {
 public:
  explicit Builder(std::string_view text) : text_(text) {}

  bool null() { return add({.kind = Kind::kNull}) != nullptr; }
  bool boolean(bool value) { return scalar(Kind::kBool, value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return scalar(Kind::kNumber, std::to_string(value)); }
  bool number_unsigned(std::uint64_t value) { return scalar(Kind::kNumber, std::to_string(value)); }
  // The token itself, so that no digit is lost.
  bool number_float(double /*value*/, const std::string& token) {
    return scalar(Kind::kNumber, token);
  }
  bool string(std::string& value) { return scalar(Kind::kString, std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }  // no such thing in text

  bool start_object(std::size_t /*size*/) {
    keys_.emplace_back();
    return open(Kind::kObject);
  }
  bool start_array(std::size_t /*size*/) { return open(Kind::kArray); }
  bool end_object() {
    keys_.pop_back();
    return close();
  }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!keys_.back().insert(name).second) {
      (void)fail(json_code::kDuplicateKey, "a key is given twice in one object");
      problem_->subject = redact::first_words(name, kMaxSubject);
      return false;
    }
    open_.back()->keys.push_back(std::move(name));
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) {
    const std::string_view message = error.what();
    const std::string_view rest = text_.substr(std::min(position - 1, text_.size()));
    if (rest.starts_with("NaN") || rest.starts_with("Infinity")) {
      return fail(json_code::kNotANumber,
                  "NaN and Infinity are not JSON; use null or a string instead");
    }
    if (message.find("surrogate") != std::string_view::npos) {
      return fail(json_code::kLoneSurrogate, "a \\u escape is half of a surrogate pair");
    }
    if (message.find("number overflow") != std::string_view::npos) {
      return fail(json_code::kNumberRange, "a number is too large for a double");
    }
    return fail(json_code::kSyntax,
                fmt::format("not valid JSON at byte {} of {}", position, text_.size()));
  }

  [[nodiscard]] JsonNode take_root() { return std::move(root_); }
  [[nodiscard]] std::optional<JsonProblem> take_problem() { return std::move(problem_); }

 private:
  bool fail(std::string_view code, std::string detail) {
    problem_ = JsonProblem{code, std::move(detail)};
    return false;
  }

  bool scalar(Kind kind, std::string text) {
    return add({.kind = kind, .text = std::move(text)}) != nullptr;
  }

  JsonNode* add(JsonNode node) {
    if (++values_ > kMaxJsonValues) {
      (void)fail(json_code::kTooMany, fmt::format("more than {} values", kMaxJsonValues));
      return nullptr;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return &root_;
    }
    open_.back()->items.push_back(std::move(node));
    return &open_.back()->items.back();
  }

  // Pointers in open_ stay valid: only the innermost container grows.
  bool open(Kind kind) {
    if (open_.size() >= kMaxJsonDepth) {
      return fail(json_code::kTooDeep,
                  fmt::format("nested more than {} levels deep", kMaxJsonDepth));
    }
    JsonNode* node = add({.kind = kind});
    if (node == nullptr) return false;
    open_.push_back(node);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  JsonNode root_;
  std::vector<JsonNode*> open_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the open objects
  std::size_t values_ = 0;
  std::optional<JsonProblem> problem_;
};

bool is_long_integer(const JsonNode& node) {
  return node.kind == Kind::kNumber && envelope::is_long_integer(node.text);
}

void write(const JsonNode& node, std::string& out) {
  const auto quoted = [](const std::string& text) {
    return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  };
  if (node.kind == Kind::kNull) {
    out += "null";
  } else if (node.kind == Kind::kString || is_long_integer(node)) {
    out += quoted(node.text);
  } else if (node.kind != Kind::kArray && node.kind != Kind::kObject) {
    out += node.text;
  } else {
    const bool object = node.kind == Kind::kObject;
    out += object ? '{' : '[';
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      if (i > 0) out += ',';
      if (object) out += quoted(node.keys[i]) + ':';
      write(node.items[i], out);
    }
    out += object ? '}' : ']';
  }
}

}  // namespace

const JsonNode* JsonNode::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

std::variant<JsonNode, JsonProblem> parse_strict_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes) {
    return JsonProblem{json_code::kTooLong,
                       fmt::format("{} bytes; at most {} are read", text.size(), kMaxJsonBytes)};
  }
  Builder builder(text);
  try {
    if (Json::sax_parse(text, &builder)) return builder.take_root();
  } catch (const std::exception& error) {  // out of memory
    return JsonProblem{json_code::kTooMany, error.what()};
  }
  return builder.take_problem().value_or(JsonProblem{json_code::kSyntax, "not valid JSON"});
}

bool is_long_integer(std::string_view number) {
  if (number.find_first_not_of("-0123456789") != std::string_view::npos) return false;
  const auto fits = [number](auto value) {
    return std::from_chars(number.data(), number.data() + number.size(), value).ec == std::errc();
  };
  return !fits(std::int64_t{}) && !fits(std::uint64_t{});
}

std::string to_json(const JsonNode& node) {
  std::string out;
  write(node, out);
  return out;
}

}  // namespace agentd::envelope
