#include "agentd/service/clean_artifacts.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/sha256.h"
#include "runtime/base/utf8.h"

namespace agentd::service {
namespace {

// UTF-16 or UTF-32.
struct WideEncoding {
  std::size_t unit = 2;  // bytes
  bool big_endian = false;
};
constexpr std::array<WideEncoding, 4> kWide = {{{2, false}, {2, true}, {4, false}, {4, true}}};
constexpr char32_t kSurrogates = 0xD800;
constexpr char32_t kLowSurrogates = 0xDC00;
constexpr char32_t kBehindSurrogates = 0xE000;
constexpr char32_t kSupplementary = 0x10000;
constexpr char32_t kLast = 0x10FFFF;
constexpr char32_t kSwappedMark = 0xFFFE;  // a byte order mark, read the wrong way round

bool is_utf8(std::string_view content) {
  std::string ignored;
  return sbx::append_replacing(ignored, content);
}

// An older encoding that has ASCII in it. What is compressed or compiled soon has a control.
bool is_old_text(std::string_view content) {
  return std::none_of(content.begin(), content.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 &&
           std::string_view("\t\n\r\f").find(c) == std::string_view::npos;
  });
}

char32_t unit_at(std::string_view content, std::size_t at, WideEncoding encoding) {
  char32_t value = 0;
  for (std::size_t i = 0; i < encoding.unit; ++i) {
    const std::size_t from = encoding.big_endian ? i : encoding.unit - 1 - i;
    value = (value << 8U) | static_cast<unsigned char>(content[at + from]);
  }
  return value;
}

// As UTF-8; nullopt when it is not text of that encoding.
std::optional<std::string> decode(std::string_view content, WideEncoding encoding) {
  if (content.size() % encoding.unit != 0) return std::nullopt;
  std::string text;
  for (std::size_t at = 0; at < content.size(); at += encoding.unit) {
    char32_t c = unit_at(content, at, encoding);
    const bool pair = encoding.unit == 2 && c >= kSurrogates && c < kLowSurrogates;
    if (pair && at + 2 * encoding.unit <= content.size()) {
      at += encoding.unit;
      const char32_t low = unit_at(content, at, encoding);
      if (low < kLowSurrogates || low >= kBehindSurrogates) return std::nullopt;
      c = kSupplementary + ((c - kSurrogates) << 10U) + (low - kLowSurrogates);
    }
    const bool surrogate = c >= kSurrogates && c < kBehindSurrogates;
    if (c == 0 || c > kLast || c == kSwappedMark || surrogate) return std::nullopt;
    sbx::append_utf8(text, c);
  }
  return text;
}

void append_unit(std::string& to, char32_t value, WideEncoding encoding) {
  for (std::size_t i = 0; i < encoding.unit; ++i) {
    const std::size_t byte = encoding.big_endian ? encoding.unit - 1 - i : i;
    to += static_cast<char>((value >> (8 * byte)) & 0xFFU);
  }
}

// `text` is UTF-8.
std::string encode(std::string_view text, WideEncoding encoding) {
  std::string content;
  for (std::size_t at = 0; at < text.size();) {
    const sbx::DecodedChar decoded = sbx::decode_utf8(text, at);
    at += decoded.length;
    const char32_t c = decoded.code_point;
    if (encoding.unit == 2 && c >= kSupplementary) {
      append_unit(content, kSurrogates + ((c - kSupplementary) >> 10U), encoding);
      append_unit(content, kLowSurrogates + ((c - kSupplementary) & 0x3FFU), encoding);
    } else {
      append_unit(content, c, encoding);
    }
  }
  return content;
}

std::string clean_wide(const std::string& content, const redact::Redactor& redactor) {
  for (const WideEncoding encoding : kWide) {
    const auto text = decode(content, encoding);
    if (!text) continue;
    const redact::Clean clean = redactor.clean(*text);
    if (clean.text() != *text) return encode(clean.text(), encoding);
  }
  return content;
}

// Each hit as Redactor::clean() has it; all other bytes as they are.
std::string clean_bytes(const std::string& content, const redact::Redactor& redactor) {
  std::string clean;
  std::size_t at = 0;
  for (const redact::Redactor::Hit& hit : redactor.find(content)) {
    clean.append(content, at, hit.begin - at);
    clean += "[redacted:";
    clean += hit.name;
    clean += ']';
    at = hit.end;
  }
  return clean.append(content, at);
}

std::string clean_content(const std::string& content, const redact::Redactor& redactor) {
  // Text without a NUL in UTF-16 has no ASCII in it, and so no key.
  if (content.find('\0') != std::string::npos) return clean_wide(content, redactor);
  if (is_utf8(content)) return redactor.clean(content).text();
  return is_old_text(content) ? clean_bytes(content, redactor) : content;
}

}  // namespace

std::vector<record::Artifact> clean_artifacts(std::vector<record::Artifact> artifacts,
                                              const redact::Redactor& redactor) {
  for (record::Artifact& artifact : artifacts) {
    std::string clean = clean_content(artifact.content, redactor);
    if (clean == artifact.content) continue;
    artifact.content = std::move(clean);
    artifact.size = artifact.content.size();
    artifact.sha256 = sbx::sha256_of(artifact.content);
    artifact.redacted = true;
  }
  return artifacts;
}

}  // namespace agentd::service
