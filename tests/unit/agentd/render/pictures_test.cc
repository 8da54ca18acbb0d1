// Pictures for terminals: which protocol is chosen, and that what is written says what the file
// holds, decoded as a terminal would.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <png.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <map>
#include <thread>

#include "agentd/render/png_pixels.h"
#include "agentd/render/sixel.h"
#include "agentd/render/terminal.h"
#include "runtime/base/base64.h"
#include "runtime/base/unique_fd.h"

namespace agentd::render {
namespace {

std::map<std::string, std::string>& variables() {
  static std::map<std::string, std::string> all;
  return all;
}

std::string variable(const char* name) {
  const auto found = variables().find(name);
  return found == variables().end() ? std::string() : found->second;
}

ImageProtocol with(std::map<std::string, std::string> environment) {
  variables() = std::move(environment);
  return protocol_of_environment(variable);
}

TEST(ImageProtocols, AreChosenByWhatTheEnvironmentSays) {
  EXPECT_EQ(with({}), ImageProtocol::kNone);
  EXPECT_EQ(with({{"TERM", "xterm-256color"}}), ImageProtocol::kNone);
  EXPECT_EQ(with({{"TERM", "dumb"}}), ImageProtocol::kNone);
  EXPECT_EQ(with({{"TERM", "xterm-kitty"}}), ImageProtocol::kKitty);
  EXPECT_EQ(with({{"TERM", "xterm-ghostty"}}), ImageProtocol::kKitty);
  EXPECT_EQ(with({{"TERM", "xterm"}, {"KITTY_WINDOW_ID", "1"}}), ImageProtocol::kKitty);
  EXPECT_EQ(with({{"TERM", "xterm-256color"}, {"TERM_PROGRAM", "iTerm.app"}}),
            ImageProtocol::kIterm2);
  EXPECT_EQ(with({{"TERM", "xterm-256color"}, {"TERM_PROGRAM", "WezTerm"}}),
            ImageProtocol::kIterm2);
  EXPECT_EQ(with({{"TERM", "foot"}}), ImageProtocol::kSixel);
}

TEST(ImageProtocols, AMultiplexerPassesNoPictureOn) {
  EXPECT_EQ(with({{"TERM", "xterm-kitty"}, {"TMUX", "/tmp/t,1,0"}}), ImageProtocol::kNone);
  EXPECT_EQ(with({{"TERM", "screen-256color"}, {"TERM_PROGRAM", "iTerm.app"}}),
            ImageProtocol::kNone);
  EXPECT_EQ(with({{"TERM", "tmux-256color"}, {"KITTY_WINDOW_ID", "1"}}), ImageProtocol::kNone);
}

TEST(ImageProtocols, HaveNames) {
  EXPECT_EQ(protocol_from("kitty"), ImageProtocol::kKitty);
  EXPECT_EQ(protocol_from("iterm2"), ImageProtocol::kIterm2);
  EXPECT_EQ(protocol_from("sixel"), ImageProtocol::kSixel);
  EXPECT_EQ(protocol_from("none"), ImageProtocol::kNone);
  EXPECT_EQ(protocol_from("auto"), std::nullopt);
}

// A terminal that answers the query of its attributes with `attributes`, or not at all.
bool answers(const std::string& attributes) {
  const sbx::UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_TRUE(master && ::grantpt(master.get()) == 0 && ::unlockpt(master.get()) == 0);
  const sbx::UniqueFd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_TRUE(slave);
  termios before{};
  EXPECT_EQ(::tcgetattr(slave.get(), &before), 0);
  std::thread terminal([&] {
    char query[3]{};
    EXPECT_EQ(::read(master.get(), query, sizeof query), 3);
    EXPECT_EQ(std::string(query, 3), "\x1b[c");
    EXPECT_EQ(::write(master.get(), attributes.data(), attributes.size()),
              static_cast<ssize_t>(attributes.size()));
  });
  const bool knows = answers_sixel(slave.get());
  terminal.join();
  termios after{};
  EXPECT_EQ(::tcgetattr(slave.get(), &after), 0);
  EXPECT_EQ(after.c_lflag, before.c_lflag) << "the terminal is left as it was";
  return knows;
}

TEST(SixelQuery, BelievesTheTerminalAlone) {
  EXPECT_TRUE(answers("\x1b[?62;4;6c"));
  EXPECT_TRUE(answers("\x1b[?62;22;4c"));
  EXPECT_FALSE(answers("\x1b[?62;22c"));
  EXPECT_FALSE(answers("\x1b[?64;14c"));
  EXPECT_FALSE(answers("")) << "says nothing, and is not waited for";
  EXPECT_FALSE(answers(std::string(100, 'x')));
  const sbx::UniqueFd none(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(answers_sixel(none.get())) << "no terminal";
}

TEST(KittyImages, ArriveWholeInPiecesThatTheProtocolAllows) {
  for (const std::size_t size : {1U, 3000U, 3072U, 3073U, 100'000U}) {
    std::string file;
    for (std::size_t i = 0; i < size; ++i) file += static_cast<char>(i * 7);
    std::string text = kitty_image(file);
    ASSERT_TRUE(text.ends_with("\n"));
    text.pop_back();
    std::string data;
    for (bool first = true; !text.empty(); first = false) {
      ASSERT_TRUE(text.starts_with("\x1b_G"));
      const std::size_t semicolon = text.find(';');
      const std::size_t end = text.find("\x1b\\");
      const std::string control = text.substr(3, semicolon - 3);
      const std::string piece = text.substr(semicolon + 1, end - semicolon - 1);
      text.erase(0, end + 2);
      EXPECT_EQ(control,
                std::string(first ? "a=T,f=100,q=2," : "") + (text.empty() ? "m=0" : "m=1"));
      EXPECT_LE(piece.size(), 4096U);
      EXPECT_TRUE(text.empty() || piece.size() % 4 == 0);
      data += piece;
    }
    EXPECT_EQ(sbx::decode_base64(data).value_or(""), file);
  }
}

TEST(Iterm2Images, CarryTheFileInline) {
  const std::string file("\x89PNG\a\x1b\\\0x", 9);
  EXPECT_EQ(iterm2_image(file),
            "\x1b]1337;File=inline=1;size=9:" + sbx::encode_base64(file) + "\a\n");
}

std::string png_of(const Pixels& pixels, bool alpha = false) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<std::uint32_t>(pixels.width);
  image.height = static_cast<std::uint32_t>(pixels.height);
  image.format = alpha ? PNG_FORMAT_RGBA : PNG_FORMAT_RGB;
  png_alloc_size_t size = 0;
  EXPECT_NE(::png_image_write_to_memory(&image, nullptr, &size, 0, pixels.rgb.data(), 0, nullptr),
            0);
  std::string file(size, '\0');
  EXPECT_NE(
      ::png_image_write_to_memory(&image, file.data(), &size, 0, pixels.rgb.data(), 0, nullptr), 0);
  file.resize(size);
  return file;
}

// Colours that the sixel palette has exactly.
Pixels picture(int width, int height) {
  Pixels pixels{width, height, {}};
  for (int i = 0; i < width * height * 3; ++i) {
    pixels.rgb.push_back(static_cast<std::uint8_t>(i * 5 % 6 * 51));
  }
  return pixels;
}

TEST(PngPixels, AreThoseOfTheFile) {
  const Pixels made = picture(7, 5);
  const auto read = png_pixels(png_of(made));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->width, 7);
  EXPECT_EQ(read->height, 5);
  EXPECT_EQ(read->rgb, made.rgb);
}

TEST(PngPixels, WhatIsTransparentIsWhite) {
  const Pixels clear{1, 1, {9, 9, 9, 0}};
  const auto read = png_pixels(png_of(clear, true));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->rgb, (std::vector<std::uint8_t>{255, 255, 255}));
}

TEST(PngPixels, ABrokenFileHasNone) {
  const std::string good = png_of(picture(64, 64));
  EXPECT_TRUE(is_png(good));
  EXPECT_FALSE(png_pixels(""));
  EXPECT_FALSE(png_pixels("GIF89a"));
  for (std::size_t cut = 8; cut + 40 < good.size(); cut += good.size() / 7) {
    EXPECT_FALSE(png_pixels(good.substr(0, cut))) << cut;
  }
  std::string wrong = good;
  wrong[20] = '\x7F';  // a width that the checksum does not have
  EXPECT_FALSE(png_pixels(wrong));
}

// The header of a PNG file alone.
std::string header_of(std::uint32_t width, std::uint32_t height) {
  std::string file("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (const std::uint32_t side : {width, height}) {
    for (const unsigned shift : {24U, 16U, 8U, 0U}) file += static_cast<char>(side >> shift);
  }
  return file;
}

TEST(InlinePictures, HaveALimitOfPixelsAndOfBytesAtAndOnePast) {
  EXPECT_EQ(why_not_inline(png_of(picture(7, 5))), "");
  EXPECT_EQ(why_not_inline(header_of(8000, 8000)), "") << "64 million";
  EXPECT_NE(why_not_inline(header_of(8000, 8001)).find("8000×8001 pixels"), std::string::npos);
  EXPECT_NE(why_not_inline(header_of(50'000, 50'000)), "");
  EXPECT_NE(why_not_inline(header_of(0xFFFFFFFF, 0xFFFFFFFF)), "");
  std::string large = header_of(1, 1);
  large.resize(kMaxInlineBytes);
  EXPECT_EQ(why_not_inline(large), "");
  EXPECT_NE(why_not_inline(large + "x").find("16 MiB"), std::string::npos);
}

TEST(InlinePictures, AreNotMadeOfWhatHasNoHeader) {
  const std::string whole = header_of(2, 2);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) {
    EXPECT_NE(why_not_inline(whole.substr(0, cut)), "") << cut;
  }
  EXPECT_NE(why_not_inline(header_of(0, 5)), "");
  EXPECT_NE(why_not_inline(header_of(5, 0)), "");
}

TEST(PngPixels, APictureHasALimitAtAndOnePast) {
  const Pixels line{kMaxPictureSide, 1, std::vector<std::uint8_t>(3UL * kMaxPictureSide, 51)};
  EXPECT_TRUE(png_pixels(png_of(line)));
  const Pixels more{kMaxPictureSide + 1, 1,
                    std::vector<std::uint8_t>(3UL * (kMaxPictureSide + 1), 51)};
  EXPECT_FALSE(png_pixels(png_of(more)));
}

// What a terminal would paint: the colours of `text`, row by row.
std::vector<std::uint8_t> painted(const std::string& text, int width, int height) {
  std::map<int, std::array<int, 3>> palette;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(width * height * 3), 7);
  std::size_t at = text.find('#');
  const auto number = [&] {
    int value = 0;
    while (std::isdigit(static_cast<unsigned char>(text[at])) != 0)
      value = 10 * value + (text[at++] - '0');
    return value;
  };
  int colour = 0;
  int x = 0;
  int top = 0;
  int count = 1;
  while (at < text.size() && text[at] != '\x1b') {
    const char c = text[at++];
    if (c == '#') {
      colour = number();
      if (text[at] != ';') continue;
      EXPECT_EQ(text.substr(at, 3), ";2;");
      at += 2;
      for (int& part : palette[colour]) {
        ++at;
        part = number();
      }
    } else if (c == '!') {
      count = number();
    } else if (c == '$' || c == '-') {
      x = 0;
      top += c == '-' ? 6 : 0;
    } else {
      EXPECT_TRUE(c >= '?' && c <= '~') << c;
      for (; count > 0; --count, ++x) {
        for (int row = 0; row < 6; ++row) {
          if (((c - '?') >> row & 1) == 0) continue;
          EXPECT_TRUE(x < width && top + row < height);
          for (int part = 0; part < 3; ++part) {
            rgb[static_cast<std::size_t>(((top + row) * width + x) * 3 + part)] =
                static_cast<std::uint8_t>(palette[colour][static_cast<std::size_t>(part)] * 255 /
                                          100);
          }
        }
      }
      count = 1;
    }
  }
  EXPECT_EQ(text.substr(at), "\x1b\\\n");
  return rgb;
}

TEST(SixelImages, PaintThePicture) {
  for (const auto& [width, height] : {std::pair(1, 1), std::pair(5, 6), std::pair(40, 13)}) {
    const Pixels made = picture(width, height);
    const std::string text = sixel_image(made);
    EXPECT_TRUE(
        text.starts_with("\x1bPq\"1;1;" + std::to_string(width) + ";" + std::to_string(height)));
    EXPECT_EQ(painted(text, width, height), made.rgb) << width << "x" << height;
  }
}

TEST(SixelImages, ALargePictureIsMadeSmallerByAWholeFactor) {
  const Pixels grey{2001, 9, std::vector<std::uint8_t>(2001UL * 9 * 3, 102)};
  const std::string text = sixel_image(grey, 1000);
  EXPECT_TRUE(text.starts_with("\x1bPq\"1;1;667;3")) << text.substr(0, 20);
  EXPECT_EQ(painted(text, 667, 3), std::vector<std::uint8_t>(667UL * 3 * 3, 102));
  EXPECT_EQ(sixel_image({2001, 2, std::vector<std::uint8_t>(2001UL * 2 * 3, 1)}, 1000), "");
}

}  // namespace
}  // namespace agentd::render
