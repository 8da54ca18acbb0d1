#include "agentd/redact/own_secrets.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agentd/redact/redactor.h"
#include "runtime/base/base64.h"

namespace agentd::redact {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

struct Byte {
  char value = 0;
  std::size_t length = 0;
};

std::optional<Byte> hex_digits(std::string_view text, std::size_t skip, std::size_t digits) {
  if (text.size() < skip + digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = skip; i < skip + digits; ++i) {
    const int digit = hex_value(text[i]);
    if (digit < 0) return std::nullopt;
    value = value * 16 + digit;
  }
  if (value > 0xFF) return std::nullopt;
  return Byte{static_cast<char>(value), skip + digits};
}

// One byte as it may be written: itself, %41, \x41, \u0041. The latter three before the first, as
// a secret may hold a "%" or "\".
bool take_byte(std::string_view text, char wanted, std::size_t& at) {
  const std::string_view rest = text.substr(at);
  std::optional<Byte> byte;
  if (rest.starts_with('%')) byte = hex_digits(rest, 1, 2);
  if (rest.starts_with("\\x")) byte = hex_digits(rest, 2, 2);
  if (rest.starts_with("\\u")) byte = hex_digits(rest, 2, 4);
  if (byte && byte->value == wanted) {
    at += byte->length;
    return true;
  }
  if (rest.empty() || rest.front() != wanted) return false;
  ++at;
  return true;
}

std::size_t match_plain(std::string_view text, std::size_t from, std::string_view secret) {
  std::size_t at = from;
  for (const char c : secret) {
    if (!take_byte(text, c, at)) return 0;
  }
  return at - from;
}

// Line ends inside base64 or hex, also as the escapes \n and \r.
std::size_t skip_line_ends(std::string_view text, std::size_t at) {
  for (;;) {
    if (at < text.size() && (text[at] == '\n' || text[at] == '\r')) {
      ++at;
    } else if (at + 1 < text.size() && text[at] == '\\' &&
               (text[at + 1] == 'n' || text[at + 1] == 'r')) {
      at += 2;
    } else {
      return at;
    }
  }
}

// What stands between the bytes of "73 6b", "73:6b" or "73-6b", too.
std::size_t skip_hex_gaps(std::string_view text, std::size_t at) {
  at = skip_line_ends(text, at);
  while (at < text.size() && std::string_view(" :-,").find(text[at]) != std::string_view::npos) {
    at = skip_line_ends(text, at + 1);
  }
  return at;
}

template <typename Skip, typename Fold>
std::size_t match_wrapped(std::string_view text, std::size_t from, std::string_view form, Skip skip,
                          Fold fold) {
  std::size_t at = from;
  for (const char c : form) {
    if (at > from) at = skip(text, at);
    if (at >= text.size() || fold(text[at]) != c) return 0;
    ++at;
  }
  return at - from;
}

char fold_base64(char c) {  // base64url as base64
  if (c == '-') return '+';
  if (c == '_') return '/';
  return c;
}

char fold_hex(char c) {
  return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_base64(char c) {
  const char folded = fold_base64(c);
  return folded == '+' || folded == '/' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

// The characters of base64 that the secret alone decides when `offset` bytes stand before it.
std::string base64_core(std::string_view secret, std::size_t offset) {
  const std::string text = sbx::encode_base64(std::string(offset, '\0') + std::string(secret));
  const std::size_t begin = (offset * 8 + 5) / 6;
  const std::size_t end = (offset + secret.size()) * 8 / 6;
  return text.substr(begin, end - begin);
}

std::string hex_of(std::string_view secret) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string hex;
  for (const char c : secret) {
    hex += kDigits[static_cast<unsigned char>(c) >> 4U];
    hex += kDigits[static_cast<unsigned char>(c) & 15U];
  }
  return hex;
}

}  // namespace

OwnSecrets::OwnSecrets(const std::vector<Secret>& secrets) {
  for (const Secret& secret : secrets) {
    if (secret.reveal().size() < kMinSecretBytes) continue;
    plain_.push_back(secret);
    for (std::size_t offset = 0; offset < 3; ++offset) {
      base64_.emplace_back(base64_core(secret.reveal(), offset));
    }
    hex_.emplace_back(hex_of(secret.reveal()));
  }
  const auto add = [this](char c) { first_.set(static_cast<unsigned char>(c)); };
  for (const Secret& secret : plain_) add(secret.reveal().front());
  for (const Secret& form : base64_) {
    const char c = form.reveal().front();
    add(c);
    if (c == '+') add('-');
    if (c == '/') add('_');
  }
  for (const Secret& form : hex_) {
    const char c = form.reveal().front();
    add(c);
    if (c >= 'a') add(static_cast<char>(c - 'a' + 'A'));
  }
  if (!plain_.empty()) {
    add('%');
    add('\\');
  }
}

std::size_t OwnSecrets::longest() const {
  std::size_t bytes = 0;
  for (const Secret& secret : plain_) bytes = std::max(bytes, secret.reveal().size());
  return bytes;
}

std::size_t OwnSecrets::match_at(std::string_view text, std::size_t at) const {
  if (!may_start(text[at])) return 0;
  std::size_t longest = 0;
  for (const Secret& secret : plain_) {
    longest = std::max(longest, match_plain(text, at, secret.reveal()));
  }
  for (const Secret& form : hex_) {
    longest = std::max(longest, match_wrapped(text, at, form.reveal(), skip_hex_gaps, fold_hex));
  }
  for (const Secret& form : base64_) {
    std::size_t length = match_wrapped(text, at, form.reveal(), skip_line_ends, fold_base64);
    if (length == 0) continue;
    // The character behind holds the secret's last bits.
    if (at + length < text.size() && is_base64(text[at + length])) ++length;
    longest = std::max(longest, length);
  }
  return longest;
}

}  // namespace agentd::redact
