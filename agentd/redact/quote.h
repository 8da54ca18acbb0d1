// A bounded piece of somebody else's words that holds no half of a key. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace agentd::redact {

// The words at the start of `text` that fit into `most` bytes; empty when the first does not.
//
// SECURITY: a Redactor knows whole keys alone. Cut between words, a key is there whole, and found,
// or not at all.
[[nodiscard]] inline std::string_view first_words(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  const std::size_t blank = text.find_last_of(" \t\r\n", most);
  return blank == std::string_view::npos ? std::string_view() : text.substr(0, blank);
}

}  // namespace agentd::redact
