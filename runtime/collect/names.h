// Names that a payload chose, made fit to be shown and sent. Stage: collect. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sbx::collect {

// The longest path below /output that is collected: what openat2 takes, without the NUL.
inline constexpr std::size_t kMaxPathBytes = 4095;

// A path as the result shows it: UTF-8, with each byte that is not part of valid UTF-8 as `\xNN`. A
// backslash that would read as such an escape is itself written `\x5c`, so turning every `\xNN`
// back into its byte gives the exact name. Control characters are valid UTF-8 and stay: whoever
// shows the path on a screen escapes them (escape.h).
[[nodiscard]] std::string render_path(std::string_view raw);

// True for a relative path of plain components: no "", ".", "..", no NUL, not over kMaxPathBytes.
[[nodiscard]] bool is_plain_relative_path(std::string_view path);

// By the extension, in any letter case; "application/octet-stream" when it is not known. Never by
// content: that would be a parser of hostile bytes.
[[nodiscard]] std::string_view media_type(std::string_view path);

}  // namespace sbx::collect
