// What a terminal can show, and pictures in its terms. Pure but for the environment and the query.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace agentd::render {

enum class ImageProtocol : std::uint8_t { kNone, kKitty, kIterm2, kSixel };
[[nodiscard]] std::optional<ImageProtocol> protocol_from(std::string_view name);  // "kitty", …

// By what the environment says of the terminal (`variable` looks one up); a multiplexer passes
// pictures on to nobody. kNone when it says nothing.
[[nodiscard]] ImageProtocol protocol_of_environment(std::string (*variable)(const char* name));

// Asks the terminal on `fd` (Primary Device Attributes) whether it knows sixel. Waits for its
// answer at most a moment; false for one that says nothing.
[[nodiscard]] bool answers_sixel(int fd);

// A PNG file in the kitty graphics protocol, and any image file in iTerm2's. Both carry base64
// only: the file's bytes reach the terminal in no other way.
[[nodiscard]] std::string kitty_image(std::string_view png);
[[nodiscard]] std::string iterm2_image(std::string_view file);

[[nodiscard]] bool is_png(std::string_view bytes);

// SECURITY: a terminal decodes what it is sent, and may take four bytes for each pixel that the
// header claims; what is larger is only saved.
inline constexpr std::uint64_t kMaxInlinePixels = 64'000'000;
inline constexpr std::size_t kMaxInlineBytes = 16U << 20;
// Why a PNG file is not sent to a terminal; "" when it is.
[[nodiscard]] std::string why_not_inline(std::string_view png);

}  // namespace agentd::render
