// Text of strangers, made fit to stand in a prompt. Pure.
#pragma once

#include <string>
#include <string_view>

namespace agentd::prompts {

// "<data>\nTEXT\n</data>". SECURITY: inside, everything that could be read as an opening or closing
// tag of that name has its "<" written as "&lt;": in any letter case, with blanks, attributes,
// invisible characters or full-width forms in it. So the text cannot end its own wrapping. Bytes
// that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string wrap_data(std::string_view text);

// The first and the last part of a text that is longer than `limit` bytes, with a line between that
// says how much is missing. Cuts between characters.
[[nodiscard]] std::string head_and_tail(std::string_view text, std::size_t limit);

}  // namespace agentd::prompts
