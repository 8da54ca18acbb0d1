// The shapes of keys: which text looks like a secret of a well-known kind. Pure; used by Redactor.
//
// A shape is a prefix with what may follow it, or a function for those with more structure. It must
// start where a word starts, so that the "sk-" of "task-force" is none, and what follows must look
// like chance, so that "sk-xxxxxxxx…" and "sk-learn-tutorials-for-beginners" are none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace agentd::redact {

struct Shape {
  std::size_t length = 0;
  std::string_view name;
};

// Asked about one text from its front to its end. Remembers how far runs of characters go, so that
// the whole costs no more than a few passes, whatever the text repeats.
class ShapeFinder {
 public:
  explicit ShapeFinder(std::string_view text) : text_(text) {}

  // The secret that starts exactly at `at`, if one does. Precondition: at < text.size().
  [[nodiscard]] std::optional<Shape> at(std::size_t at);

  enum class Chars : std::uint8_t {
    kAlnum,
    kUpperAlnum,
    kHex,
    kWord,    // letters, digits, "_"
    kToken,   // letters, digits, "_", "-"
    kBearer,  // of a bearer token (RFC 6750)
    kBase64,
  };

 private:
  [[nodiscard]] std::size_t run_length(std::size_t from, Chars chars);
  [[nodiscard]] std::optional<Shape> prefixed(std::size_t at);
  [[nodiscard]] std::optional<Shape> json_web_token(std::size_t at);
  [[nodiscard]] std::optional<Shape> sendgrid_key(std::size_t at);
  [[nodiscard]] std::optional<Shape> slack_webhook(std::size_t at) const;
  [[nodiscard]] std::optional<Shape> named_value(std::size_t at);
  [[nodiscard]] std::optional<Shape> bearer_token(std::size_t at);
  [[nodiscard]] std::optional<Shape> telegram_token(std::size_t at);

  struct Run {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  std::string_view text_;
  std::array<Run, 7> runs_{};  // by Chars: the last one looked at
};

// No shape is shorter.
inline constexpr std::size_t kMinShapeBytes = 20;

// True when `c` can be the first byte of a shape: a quick filter.
[[nodiscard]] bool may_start_shape(char c);

}  // namespace agentd::redact
