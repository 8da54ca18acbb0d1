// How many columns text takes on a terminal. Pure; by the C library's tables, so the caller has set
// a UTF-8 LC_CTYPE (agentctl does, to C.UTF-8).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace agentd::render {

// Of text without controls. What has no width of its own (a combining mark) takes none.
[[nodiscard]] std::size_t display_width(std::string_view text);

// As much as fits into `width` columns, with "…" where something is left out.
[[nodiscard]] std::string cut_to_width(std::string_view text, std::size_t width);

}  // namespace agentd::render
