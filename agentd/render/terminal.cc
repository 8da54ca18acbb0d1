#include "agentd/render/terminal.h"

#include <fmt/core.h>
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <utility>

#include "runtime/base/base64.h"
#include "runtime/base/deadline.h"
#include "runtime/base/scope_exit.h"
#include "runtime/base/sys.h"

namespace agentd::render {

std::optional<ImageProtocol> protocol_from(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, ImageProtocol>, 4> kNames = {{
      {"none", ImageProtocol::kNone},
      {"kitty", ImageProtocol::kKitty},
      {"iterm2", ImageProtocol::kIterm2},
      {"sixel", ImageProtocol::kSixel},
  }};
  for (const auto& [known, protocol] : kNames) {
    if (known == name) return protocol;
  }
  return std::nullopt;
}

ImageProtocol protocol_of_environment(std::string (*variable)(const char* name)) {
  const std::string term = variable("TERM");
  const std::string program = variable("TERM_PROGRAM");
  if (!variable("TMUX").empty() || term.starts_with("screen") || term.starts_with("tmux")) {
    return ImageProtocol::kNone;
  }
  if (term == "xterm-kitty" || term == "xterm-ghostty" || !variable("KITTY_WINDOW_ID").empty()) {
    return ImageProtocol::kKitty;
  }
  if (program == "iTerm.app" || program == "WezTerm") return ImageProtocol::kIterm2;
  if (term == "foot" || term == "mlterm") return ImageProtocol::kSixel;
  return ImageProtocol::kNone;
}

bool answers_sixel(int fd) {
  termios before{};
  if (::tcgetattr(fd, &before) != 0) return false;
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  if (::tcsetattr(fd, TCSANOW, &raw) != 0) return false;
  const sbx::ScopeExit restore([&] {
    (void)::tcsetattr(fd, TCSANOW, &before);  // nothing better can be done
  });
  if (!sbx::sys::write_all(fd, "\x1b[c")) return false;
  std::string answer;  // ESC [ ? 62 ; 4 ; 6 c
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (answer.size() < 64 && answer.find('c') == std::string::npos) {
    pollfd polled{fd, POLLIN, 0};
    char byte = 0;
    if (::poll(&polled, 1, sbx::poll_timeout(deadline)) <= 0) return false;
    if (::read(fd, &byte, 1) != 1) return false;
    answer += byte;
  }
  return answer.find(";4;") != std::string::npos || answer.find(";4c") != std::string::npos;
}

std::string kitty_image(std::string_view png) {
  constexpr std::size_t kChunk = 4096;
  const std::string data = sbx::encode_base64(png);
  std::string out;
  for (std::size_t at = 0; at < data.size(); at += kChunk) {
    const bool more = at + kChunk < data.size();
    // a=T: show at once; f=100: PNG; q=2: the terminal answers nothing.
    out += fmt::format("\x1b_G{}m={};{}\x1b\\", at == 0 ? "a=T,f=100,q=2," : "", more ? 1 : 0,
                       std::string_view(data).substr(at, kChunk));
  }
  return out + "\n";
}

std::string iterm2_image(std::string_view file) {
  return fmt::format("\x1b]1337;File=inline=1;size={}:{}\a\n", file.size(),
                     sbx::encode_base64(file));
}

bool is_png(std::string_view bytes) {
  constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);
  return bytes.starts_with(kSignature);
}

std::string why_not_inline(std::string_view png) {
  constexpr std::size_t kHeader = 24;  // signature, length and name of IHDR, width, height
  const auto big_endian = [&](std::size_t at) {
    std::uint64_t value = 0;
    for (const char byte : png.substr(at, 4))
      value = value << 8U | static_cast<unsigned char>(byte);
    return value;
  };
  if (!is_png(png) || png.size() < kHeader || png.substr(12, 4) != "IHDR") {
    return "it is no picture";
  }
  const std::uint64_t width = big_endian(16);
  const std::uint64_t height = big_endian(20);
  if (width == 0 || height == 0) return "it is no picture";
  if (height > kMaxInlinePixels / width) {
    return fmt::format("{}×{} pixels are too many for a terminal", width, height);
  }
  if (png.size() > kMaxInlineBytes) {
    return fmt::format("{} MiB are too many for a terminal", png.size() >> 20U);
  }
  return {};
}

}  // namespace agentd::render
