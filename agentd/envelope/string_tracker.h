// Follows a program's text just far enough to know whether a line begins inside a string or comment
// that started on an earlier line. Service: agentd; used by code_block.cc. Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "agentd/envelope/code_block.h"

namespace agentd::envelope {

class StringTracker {
 public:
  explicit StringTracker(Language language) : language_(language) {}

  // True when the next line starts inside a string (or comment) that spans lines.
  [[nodiscard]] bool inside() const;
  // Goes on over one line, without its line end.
  void line(std::string_view text);

 private:
  enum class Context : std::uint8_t {
    kTripleSingle,  // '''
    kTripleDouble,  // """
    kTemplate,      // `…`
    kSubstitution,  // ${…} in a template: code again, whose braces are counted
    kComment,       // /* */
  };
  struct Level {
    Context context;
    int braces = 0;  // kSubstitution: open ones
  };

  std::size_t step_code(std::string_view text, std::size_t i);
  std::size_t step_python(std::string_view text, std::size_t i);
  std::size_t step_javascript(std::string_view text, std::size_t i);
  std::size_t step_inside(std::string_view text, std::size_t i);
  [[nodiscard]] static std::size_t after_quoted(std::string_view text, std::size_t i);

  Language language_;
  std::vector<Level> levels_;
};

}  // namespace agentd::envelope
