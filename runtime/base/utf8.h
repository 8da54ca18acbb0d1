// UTF-8 as untrusted bytes may hold it. Stage: base. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sbx {

// One decoding step. When not valid, `length` bytes (at least 1) are a maximal ill-formed part, the
// unit that Unicode (and Python's "replace") turns into one U+FFFD.
struct DecodedChar {
  char32_t code_point = 0;
  std::size_t length = 0;
  bool valid = false;
};

// Precondition: offset < bytes.size(). Overlong forms, surrogates and values past U+10FFFF are not
// valid.
[[nodiscard]] DecodedChar decode_utf8(std::string_view bytes, std::size_t offset);
// The nearest place at or before `at`, and at or behind it, that lies inside of no character and of
// no ill-formed part: what is cut there reads as it did. At most three bytes away. Precondition:
// at <= bytes.size().
[[nodiscard]] std::size_t utf8_boundary_before(std::string_view bytes, std::size_t at);
[[nodiscard]] std::size_t utf8_boundary_behind(std::string_view bytes, std::size_t at);
void append_utf8(std::string& text, char32_t code_point);
// Appends `bytes` with U+FFFD for each ill-formed part. True when there was none.
bool append_replacing(std::string& text, std::string_view bytes);
// Appends `\xNN`.
void append_hex_byte(std::string& text, char byte);

}  // namespace sbx
