// Base64 (RFC 4648, with padding). Stage: collect. Pure.
#pragma once

#include <string>
#include <string_view>

namespace sbx::collect {

[[nodiscard]] std::string encode_base64(std::string_view bytes);

}  // namespace sbx::collect
