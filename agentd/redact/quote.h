// A bounded piece of somebody else's words that holds no half of a key. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace agentd::redact {

// The words at the start of `text` that fit into `most` bytes; empty when the first does not.
//
// SECURITY: a Redactor finds whole keys. Cut between words, a key is there whole, and found, or not
// at all. A private key in PEM alone is of many words: what is left of one are whole lines of it,
// which are found without those that followed.
[[nodiscard]] inline std::string_view first_words(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const std::size_t blank = text.find_last_of(" \t\r\n", most);
  return blank == std::string_view::npos ? std::string_view() : text.substr(0, blank);
}

}  // namespace agentd::redact
