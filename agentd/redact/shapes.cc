#include "agentd/redact/shapes.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <cstdint>

#include "agentd/redact/prefixes.h"

namespace agentd::redact {
namespace {

using Chars = ShapeFinder::Chars;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_alnum(char c) {
  return is_digit(c) || is_upper(c) || is_lower(c);
}

bool belongs(char c, Chars chars) {
  switch (chars) {
    case Chars::kAlnum:
      return is_alnum(c);
    case Chars::kUpperAlnum:
      return is_digit(c) || is_upper(c);
    case Chars::kHex:
      return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    case Chars::kWord:
      return is_alnum(c) || c == '_';
    case Chars::kToken:
      return is_alnum(c) || c == '_' || c == '-';
    case Chars::kBearer:
      return is_alnum(c) || std::string_view("-._~+/=").find(c) != std::string_view::npos;
    case Chars::kBase64:
      return is_alnum(c) || c == '+' || c == '/';
  }
  return false;
}

enum class Digits : std::uint8_t { kNeeded, kByChance };

// Words and placeholders repeat few characters, or hold no digit; chance has both. Where length and
// characters leave hardly a word, the digit is not asked for: a key of 16 may be without.
bool looks_random(std::string_view token, Digits wanted = Digits::kNeeded) {
  token = token.substr(0, 256);  // enough to tell
  std::bitset<256> seen;
  std::size_t digits = 0;
  std::size_t letters = 0;
  for (const char c : token) {
    seen.set(static_cast<unsigned char>(c));
    digits += is_digit(c) ? 1 : 0;
    letters += is_digit(c) || !is_alnum(c) ? 0 : 1;
  }
  const std::size_t distinct = std::min<std::size_t>(8, token.size() / 2);
  return seen.count() >= distinct && letters > 0 && (digits > 0 || wanted == Digits::kByChance);
}

// Words, dates and numbers with dashes between are short and plain. A key has a long piece of
// chance, or one that mixes all that there is.
bool has_a_piece_of_chance(std::string_view token) {
  constexpr std::size_t kLong = 16;
  constexpr std::size_t kMixed = 8;
  token = token.substr(0, 256);
  while (!token.empty()) {
    const std::string_view piece = token.substr(0, token.find_first_of("-_"));
    token.remove_prefix(std::min(piece.size() + 1, token.size()));
    const bool digit = std::any_of(piece.begin(), piece.end(), is_digit);
    const bool lower = std::any_of(piece.begin(), piece.end(), is_lower);
    const bool upper = std::any_of(piece.begin(), piece.end(), is_upper);
    if (piece.size() >= kLong && digit && (lower || upper)) return true;
    if (piece.size() >= kMixed && digit && lower && upper) return true;
  }
  return false;
}

// Letters of chance: a long piece with as many capitals as small ones, more or less, in and out of
// each other. Camel case has few, and such as YOUR-TOKEN nothing else.
bool has_mixed_letters(std::string_view token) {
  constexpr std::size_t kLong = 16;
  token = token.substr(0, 256);
  while (!token.empty()) {
    const std::string_view piece = token.substr(0, token.find_first_of("-_"));
    token.remove_prefix(std::min(piece.size() + 1, token.size()));
    std::size_t upper = 0;
    std::size_t changes = 0;
    for (std::size_t i = 0; i < piece.size(); ++i) {
      upper += is_upper(piece[i]) ? 1 : 0;
      changes += i > 0 && is_upper(piece[i]) != is_upper(piece[i - 1]) ? 1 : 0;
    }
    const bool mixed = upper * 10 >= piece.size() * 3 && upper * 10 <= piece.size() * 7;
    if (piece.size() >= kLong && mixed && changes * 4 >= piece.size()) return true;
  }
  return false;
}

// One line end or other filler between the lines of a private key, as it stands in a text, a string
// literal or JSON. 0: none.
std::size_t filler_length(std::string_view text) {
  if (text.empty()) return 0;
  if (text.starts_with("\\n") || text.starts_with("\\r")) return 2;
  return std::string_view(" \t\r\n\"',\\").find(text.front()) != std::string_view::npos ? 1 : 0;
}

// "Proc-Type: 4,ENCRYPTED", "Version: GnuPG v2.0.22 (GNU/Linux)": the lines that may stand before
// the body of a private key, with the fillers around them.
std::size_t key_headers_length(std::string_view text) {
  constexpr std::size_t kMaxLine = 200;
  std::size_t at = 0;
  for (;;) {
    while (at < text.size() && filler_length(text.substr(at)) > 0) {
      at += filler_length(text.substr(at));
    }
    std::string_view line = text.substr(at, kMaxLine);
    line = line.substr(0, std::min(line.find('\n'), line.find("\\n")));
    if (line.size() == kMaxLine || line.find(": ") == std::string_view::npos) return at;
    at += line.size();
  }
}

// "-----BEGIN … PRIVATE KEY-----" and what follows: to its END line, or as far as lines of base64
// go. Prose that mentions such a line has words, not lines, behind it.
std::optional<Shape> private_key(std::string_view rest) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  constexpr std::string_view kEnd = "-----END ";
  constexpr std::string_view kDashes = "-----";
  constexpr std::size_t kMaxLabel = 80;
  constexpr std::size_t kMaxKey = 32U << 10;
  constexpr std::size_t kShortLine = 16;  // the last line of a key
  constexpr std::size_t kLine = 40;
  if (!rest.starts_with(kBegin)) return std::nullopt;
  rest = rest.substr(0, kMaxKey);
  const std::size_t label_end = rest.substr(0, kMaxLabel).find(kDashes, kBegin.size());
  if (label_end == std::string_view::npos) return std::nullopt;
  const std::string_view label = rest.substr(kBegin.size(), label_end - kBegin.size());
  if (label.find("PRIVATE KEY") == std::string_view::npos) return std::nullopt;
  std::size_t at = label_end + kDashes.size();
  std::size_t end = at;
  at += key_headers_length(rest.substr(at));
  std::size_t line = 0;
  std::size_t longest = 0;
  while (at < rest.size()) {
    const std::string_view here = rest.substr(at);
    if (here.starts_with(kEnd)) {
      const std::size_t close = here.substr(0, kMaxLabel).find(kDashes, kEnd.size());
      end = at + (close == std::string_view::npos ? kEnd.size() : close + kDashes.size());
      return longest < kShortLine ? std::nullopt : std::optional(Shape{end, "private-key"});
    }
    if (here.starts_with(kBegin)) break;
    if (const std::size_t filler = filler_length(here); filler > 0) {
      line = 0;
      at += filler;
      continue;
    }
    if (!belongs(here.front(), Chars::kBase64) && here.front() != '=') break;
    ++at;
    longest = std::max(longest, ++line);
    if (line >= kShortLine) end = at;
  }
  return longest < kLine ? std::nullopt : std::optional(Shape{end, "private-key"});
}

bool is_hex(char c) {
  return belongs(c, Chars::kHex);
}

// Whether a word may start at `at`. Escapes count as what they stand for: in `\nsk-…`, `%3Dsk-…`
// and "ESC[31msk-…" the letter before the key is none of a word.
bool starts_word(std::string_view text, std::size_t at) {
  if (at == 0 || !is_alnum(text[at - 1])) return true;
  const char before = text[at - 1];
  if (at >= 2 && text[at - 2] == '\\') return true;
  if (at >= 3 && text[at - 3] == '%' && is_hex(text[at - 2]) && is_hex(before)) return true;
  if (at >= 4 && text.substr(at - 4, 2) == "\\x" && is_hex(text[at - 2])) return true;
  if (at >= 6 && text.substr(at - 6, 2) == "\\u" && is_hex(text[at - 2])) return true;
  if (before != 'm') return false;
  std::size_t i = at - 1;
  while (i > 0 && (is_digit(text[i - 1]) || text[i - 1] == ';')) --i;
  return i >= 2 && text[i - 1] == '[' && text[i - 2] == '\x1b';
}

constexpr std::array<bool, 256> first_bytes() {
  std::array<bool, 256> set{};
  for (const Prefixed& shape : kPrefixed) {
    set[static_cast<unsigned char>(shape.prefix.front())] = true;
  }
  for (const char c : std::string_view("e-ShaAsSbB0123456789")) {
    set[static_cast<unsigned char>(c)] = true;
  }
  return set;
}

}  // namespace

std::size_t ShapeFinder::run_length(std::size_t from, Chars chars) {
  Run& run = runs_[static_cast<std::size_t>(chars)];
  if (from < run.begin || from >= run.end) {
    run = {from, from};
    while (run.end < text_.size() && belongs(text_[run.end], chars)) ++run.end;
  }
  return run.end - from;
}

std::optional<Shape> ShapeFinder::prefixed(std::size_t at) {
  const std::string_view rest = text_.substr(at);
  for (const Prefixed& shape : kPrefixed) {
    // The first character alone rules out most, without a call.
    if (rest.front() != shape.prefix.front() || !rest.starts_with(shape.prefix)) continue;
    const std::size_t run = run_length(at + shape.prefix.size(), shape.chars);
    if (run < shape.min) continue;
    // A key of fixed length that goes on is another word.
    if (shape.max != 0 && run > shape.max) continue;
    const std::string_view token = rest.substr(shape.prefix.size(), run);
    if (!(shape.unmistakable && has_mixed_letters(token))) {
      const Digits digits = shape.min == shape.max ? Digits::kByChance : Digits::kNeeded;
      if (!looks_random(token, digits)) continue;
      if (shape.by_pieces && !has_a_piece_of_chance(token)) continue;
    }
    return Shape{shape.prefix.size() + run, shape.name};
  }
  return std::nullopt;
}

// Three parts of base64url; the first two are JSON objects, which start with "{\"": "eyJ".
std::optional<Shape> ShapeFinder::json_web_token(std::size_t at) {
  constexpr std::size_t kMinPart = 10;
  std::size_t end = at;
  for (int part = 0; part < 3; ++part) {
    if (part > 0) {
      if (end >= text_.size() || text_[end] != '.') return std::nullopt;
      ++end;
    }
    if (part < 2 && !text_.substr(end).starts_with("eyJ")) return std::nullopt;
    const std::size_t run = run_length(end, Chars::kToken);
    if (run < kMinPart) return std::nullopt;
    end += run;
  }
  return Shape{end - at, "json-web-token"};
}

// SG.<22>.<43>
std::optional<Shape> ShapeFinder::sendgrid_key(std::size_t at) {
  const std::size_t first = run_length(at + 3, Chars::kToken);
  const std::size_t dot = at + 3 + first;
  if (first < 16 || dot >= text_.size() || text_[dot] != '.') return std::nullopt;
  const std::size_t second = run_length(dot + 1, Chars::kToken);
  if (second < 32) return std::nullopt;
  return Shape{dot + 1 + second - at, "sendgrid-key"};
}

std::optional<Shape> ShapeFinder::slack_webhook(std::size_t at) const {
  constexpr std::string_view kHost = "hooks.slack.com/services/";
  if (!text_.substr(at).starts_with(kHost)) return std::nullopt;
  std::size_t end = at + kHost.size();
  while (end < text_.size() && (is_alnum(text_[end]) || text_[end] == '/')) ++end;
  if (end - at < kHost.size() + 30) return std::nullopt;
  return Shape{end - at, "slack-webhook"};
}

// What is a secret by the name in front of it: `aws_secret_access_key = wJalr…` (the value alone
// has no mark), `AccountKey=…==`.
std::optional<Shape> ShapeFinder::named_value(std::size_t at) {
  struct Named {
    std::string_view name;  // in lower case
    std::size_t min;
    std::string_view shape;
  };
  constexpr std::array kNamed = {Named{"aws_secret_access_key", 40, "aws-secret"},
                                 Named{"secretaccesskey", 40, "aws-secret"},
                                 Named{"accountkey", 80, "azure-key"}};
  for (const Named& named : kNamed) {
    const std::string_view word = text_.substr(at, named.name.size());
    const bool same = std::equal(word.begin(), word.end(), named.name.begin(), named.name.end(),
                                 [](char a, char b) { return (is_upper(a) ? a + 32 : a) == b; });
    if (!same) continue;
    const std::size_t value = text_.find_first_not_of(" \t=:\"'\\>", at + named.name.size());
    if (value == std::string_view::npos || value - at > named.name.size() + 8) continue;
    const std::size_t end = value + run_length(value, Chars::kBase64);
    if (end - value < named.min || !looks_random(text_.substr(value, end - value))) continue;
    const std::size_t padded = std::min(text_.find_first_not_of('=', end), text_.size());
    return Shape{padded - at, named.shape};
  }
  return std::nullopt;
}

// "Authorization: Bearer …", whoever's token it is.
std::optional<Shape> ShapeFinder::bearer_token(std::size_t at) {
  constexpr std::string_view kWord = "earer ";
  if (!text_.substr(at + 1).starts_with(kWord)) return std::nullopt;
  const std::size_t token = at + 1 + kWord.size();
  const std::size_t run = run_length(token, Chars::kBearer);
  if (run < 24 || !looks_random(text_.substr(token, run))) return std::nullopt;
  return Shape{token + run - at, "bearer-token"};
}

// 123456789:AA…, the token of a Telegram bot.
std::optional<Shape> ShapeFinder::telegram_token(std::size_t at) {
  std::size_t end = at;
  while (end < text_.size() && is_digit(text_[end])) ++end;
  if (end - at < 8 || end - at > 10 || !text_.substr(end).starts_with(":AA")) return std::nullopt;
  const std::size_t run = run_length(end + 1, Chars::kToken);
  if (run != 35) return std::nullopt;
  return Shape{end + 1 + run - at, "telegram-token"};
}

bool may_start_shape(char c) {
  static constexpr std::array<bool, 256> kSet = first_bytes();
  return kSet[static_cast<unsigned char>(c)];
}

std::optional<Shape> ShapeFinder::at(std::size_t at) {
  if (text_[at] == '-') return private_key(text_.substr(at));
  if (!starts_word(text_, at)) return std::nullopt;
  if (is_digit(text_[at])) return telegram_token(at);
  if (auto shape = prefixed(at)) return shape;
  switch (text_[at]) {
    case 'e':
      return json_web_token(at);
    case 'S':
      if (text_.substr(at).starts_with("SG.")) return sendgrid_key(at);
      return named_value(at);
    case 'h':
      return slack_webhook(at);
    case 'b':
    case 'B':
      return bearer_token(at);
    case 'a':
    case 'A':
    case 's':
      return named_value(at);
    default:
      return std::nullopt;
  }
}

}  // namespace agentd::redact
