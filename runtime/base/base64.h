// Base64 (RFC 4648, with padding). Stage: base. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sbx {

[[nodiscard]] std::string encode_base64(std::string_view bytes);
// Canonical text only: padded, no blanks or line ends, unused bits zero. nullopt otherwise.
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);

}  // namespace sbx
