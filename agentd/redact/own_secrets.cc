#include "agentd/redact/own_secrets.h"

#include <algorithm>
#include <array>
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

// At most so many escapes of an escape: "%25252B", "\\\\u002B".
constexpr std::size_t kMaxNested = 8;

constexpr std::size_t kMaxDigits = 8;  // of a number, which fits into 32 bits then
// Of a byte's forms below: &amp;…amp;#x00000041;
constexpr std::size_t kWidestByte = 1 + 4 * kMaxNested + 2 + kMaxDigits + 1;
// Between two bytes; more of them end what is looked for.
constexpr std::size_t kMaxWrap = 32;

// The number that starts `text`, of so many digits, at most kMaxDigits; nullopt where there are
// fewer.
std::optional<std::uint32_t> number(std::string_view text, std::size_t digits, unsigned base) {
  if (digits > kMaxDigits || text.size() < digits) return std::nullopt;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, digits)) {
    const int digit = hex_value(c);
    if (digit < 0 || static_cast<unsigned>(digit) >= base) return std::nullopt;
    value = value * base + static_cast<unsigned>(digit);
  }
  return value;
}

// Below, `wanted` as it may be written at the front of `text`: how long that is; 0: not so.

std::size_t numbered(std::string_view text, char wanted, std::size_t skip, std::size_t digits,
                     unsigned base) {
  if (text.size() < skip) return 0;
  const auto value = number(text.substr(skip), digits, base);
  return value == static_cast<unsigned char>(wanted) ? skip + digits : 0;
}

// %2B, %252B
std::size_t percent_escape(std::string_view text, char wanted) {
  std::size_t skip = 1;
  for (std::size_t nested = 0; nested < kMaxNested; ++nested, skip += 2) {
    if (const std::size_t length = numbered(text, wanted, skip, 2, 16)) return length;
    if (!text.substr(skip).starts_with("25")) break;
  }
  return 0;
}

// \x2B, \u002B, \U0000002B, \53, \053, \+; with more backslashes, as a quoted text has them.
std::size_t backslash_escape(std::string_view text, char wanted) {
  std::size_t at = 1;
  while (at < kMaxNested && at < text.size() && text[at] == '\\') ++at;
  if (at == text.size()) return 0;
  const char kind = text[at];
  if (kind == 'x') return numbered(text, wanted, at + 1, 2, 16);
  if (kind == 'u') return numbered(text, wanted, at + 1, 4, 16);
  if (kind == 'U') return numbered(text, wanted, at + 1, 8, 16);
  for (const std::size_t digits : {3U, 2U, 1U}) {
    if (const std::size_t length = numbered(text, wanted, at, digits, 8)) return length;
  }
  const bool is_sign = hex_value(kind) < 0 && !(kind >= 'a' && kind <= 'z') &&
                       !(kind >= 'A' && kind <= 'Z') && kind != '\\';
  return is_sign && kind == wanted ? at + 1 : 0;
}

// &#43; &#x2B; &plus; &amp;#43;
std::size_t entity(std::string_view text, char wanted) {
  constexpr std::array<std::pair<std::string_view, char>, 9> kNamed = {{{"amp;", '&'},
                                                                        {"lt;", '<'},
                                                                        {"gt;", '>'},
                                                                        {"quot;", '"'},
                                                                        {"apos;", '\''},
                                                                        {"plus;", '+'},
                                                                        {"sol;", '/'},
                                                                        {"equals;", '='},
                                                                        {"lowbar;", '_'}}};
  std::size_t at = 1;
  for (std::size_t nested = 0; nested < kMaxNested; ++nested, at += 4) {
    const std::string_view rest = text.substr(at);
    for (const auto& [name, value] : kNamed) {
      if (value == wanted && rest.starts_with(name)) return at + name.size();
    }
    if (!rest.starts_with("amp;")) break;
  }
  if (!text.substr(at).starts_with('#')) return 0;
  const bool is_hex = at + 1 < text.size() && (text[at + 1] == 'x' || text[at + 1] == 'X');
  at += is_hex ? 2 : 1;
  const std::size_t digits = text.substr(at, kMaxDigits + 1).find(';');
  if (digits == std::string_view::npos || digits == 0) return 0;
  const std::size_t length = numbered(text, wanted, at, digits, is_hex ? 16 : 10);
  return length == 0 ? 0 : length + 1;
}

// One byte of a secret in one of these forms, or as it is: the latter last, as a secret may hold
// what begins them.
std::size_t byte_length(std::string_view text, char wanted) {
  if (text.empty()) return 0;
  std::size_t length = 0;
  if (text.front() == '%') length = percent_escape(text, wanted);
  if (text.front() == '\\') length = backslash_escape(text, wanted);
  if (text.front() == '&') length = entity(text, wanted);
  if (text.front() == '=') length = numbered(text, wanted, 1, 2, 16);  // quoted-printable
  if (length > 0) return length;
  return text.front() == wanted ? 1 : 0;
}

// What wraps a text into lines: blanks and line ends, these also as the escapes \n and \r, or
// behind the "=" of quoted-printable or the "\" of a shell. None that begins at `end` or behind.
std::size_t skip_blanks(std::string_view text, std::size_t at, std::size_t end) {
  const auto is = [&](std::size_t where, std::string_view what) {
    return where < text.size() && what.find(text[where]) != std::string_view::npos;
  };
  while (at < end) {
    if (is(at, "\n\r \t")) {
      ++at;
    } else if ((is(at, "\\") && is(at + 1, "nr\n\r")) || (is(at, "=") && is(at + 1, "\n\r"))) {
      at += 2;
    } else {
      return at;
    }
  }
  return at;
}

std::size_t skip_wrap(std::string_view text, std::size_t at) {
  return skip_blanks(text, at, at + kMaxWrap - 1);  // the last may be of two bytes
}

std::size_t match_plain(std::string_view text, std::size_t from, std::string_view secret) {
  std::size_t at = from;
  for (const char c : secret) {
    std::size_t length = byte_length(text.substr(at), c);
    if (length == 0 && at > from) {
      at = skip_wrap(text, at);
      length = byte_length(text.substr(at), c);
    }
    if (length == 0) return 0;
    at += length;
  }
  return at - from;
}

// What stands between the bytes of "73 6b", "73:6b" or "73-6b", too.
std::size_t skip_hex_gaps(std::string_view text, std::size_t at) {
  const std::size_t end = at + kMaxWrap - 1;
  at = skip_blanks(text, at, end);
  while (at < end && at < text.size() &&
         std::string_view(":-,").find(text[at]) != std::string_view::npos) {
    at = skip_blanks(text, at + 1, end);
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

char fold_base32(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

bool is_base32(char c) {
  const char folded = fold_base32(c);
  return (folded >= 'A' && folded <= 'Z') || (c >= '2' && c <= '7');
}

// The characters of base64 that the secret alone decides when `offset` bytes stand before it.
std::string base64_core(std::string_view secret, std::size_t offset) {
  const std::string text = sbx::encode_base64(std::string(offset, '\0') + std::string(secret));
  const std::size_t begin = (offset * 8 + 5) / 6;
  const std::size_t end = (offset + secret.size()) * 8 / 6;
  return text.substr(begin, end - begin);
}

// The same of base32.
std::string base32_core(std::string_view secret, std::size_t offset) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
  const std::size_t skip = (5 - offset * 8 % 5) % 5;  // bits of a digit begun before
  std::string core;
  for (std::size_t bit = skip; bit + 5 <= secret.size() * 8; bit += 5) {
    std::size_t digit = 0;
    for (std::size_t i = bit; i < bit + 5; ++i) {
      const auto byte = static_cast<unsigned char>(secret[i / 8]);
      digit = digit * 2 + ((byte >> (7 - i % 8)) & 1U);
    }
    core += kDigits[digit];
  }
  return core;
}

std::string as_base64url(std::string text) {
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  return text;
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
    longest_ = std::max(longest_, secret.reveal().size());
    add(Kind::kPlain, secret, {secret.reveal().front(), '%', '\\', '&', '='});
    add_hex(hex_of(secret.reveal()));
    for (std::size_t offset = 0; offset < 5; ++offset) {
      add_base32(base32_core(secret.reveal(), offset));
    }
    for (std::size_t offset = 0; offset < 3; ++offset) {
      const std::string once = base64_core(secret.reveal(), offset);
      const std::string url = as_base64url(once);
      add_base64(once);
      for (std::size_t again = 0; again < 3; ++again) {
        add_base64(base64_core(once, again));
        if (url != once) add_base64(base64_core(url, again));
      }
    }
  }
}

std::size_t OwnSecrets::reach() const {
  // Two digits of hex; base64 twice has less than two, and base32 too.
  constexpr std::size_t kWidest = std::max(kWidestByte + kMaxWrap, 2 * (1 + kMaxWrap));
  return kWidest * longest_;
}

void OwnSecrets::add(Kind kind, Secret text, std::initializer_list<char> first) {
  for (const char c : first) {
    std::vector<std::size_t>& forms = by_first_[static_cast<unsigned char>(c)];
    if (forms.empty() || forms.back() != forms_.size()) forms.push_back(forms_.size());
  }
  forms_.push_back({kind, std::move(text)});
}

void OwnSecrets::add_hex(std::string text) {
  const char c = text.front();
  const char other = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  add(Kind::kHex, Secret(std::move(text)), {c, other});
}

void OwnSecrets::add_base32(std::string text) {
  const char c = text.front();
  const char other = c >= 'A' ? static_cast<char>(c - 'A' + 'a') : c;
  add(Kind::kBase32, Secret(std::move(text)), {c, other});
}

void OwnSecrets::add_base64(std::string text) {
  const char c = text.front();
  const char url = as_base64url(std::string(1, c)).front();
  add(Kind::kBase64, Secret(std::move(text)), {c, url});
}

std::size_t OwnSecrets::match(const Form& form, std::string_view text, std::size_t at) {
  const std::string_view wanted = form.text.reveal();
  if (form.kind == Kind::kPlain) return match_plain(text, at, wanted);
  if (form.kind == Kind::kHex) return match_wrapped(text, at, wanted, skip_hex_gaps, fold_hex);
  const bool is_64 = form.kind == Kind::kBase64;
  std::size_t length = is_64 ? match_wrapped(text, at, wanted, skip_wrap, fold_base64)
                             : match_wrapped(text, at, wanted, skip_wrap, fold_base32);
  // The character behind holds the secret's last bits.
  const std::size_t end = at + length;
  if (length > 0 && end < text.size() && (is_64 ? is_base64(text[end]) : is_base32(text[end]))) {
    ++length;
  }
  return length;
}

std::size_t OwnSecrets::match_at(std::string_view text, std::size_t at) const {
  std::size_t longest = 0;
  for (const std::size_t form : by_first_[static_cast<unsigned char>(text[at])]) {
    longest = std::max(longest, match(forms_[form], text, at));
  }
  return longest;
}

}  // namespace agentd::redact
