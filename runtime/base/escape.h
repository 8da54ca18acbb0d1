// Text from inside, made safe for a terminal, and names from outside, kept readable. Stage: base.
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace sbx {

enum class Keep {
  kNothing,          // names and cells: one line
  kNewlinesAndTabs,  // text of several lines
};

// SECURITY: the result holds no C0 or C1 control, DEL, bidirectional control, line or paragraph
// separator, and is UTF-8, so it can move no cursor, end no line, start no escape sequence (ESC,
// CSI, OSC, DCS, also as C1) and reverse no text. Bytes that are not UTF-8 become `\xNN`, controls
// `\n`, `\t`, `\r` or `\xNN`, other characters `\u{NNNN}`. For reading, not for parsing: a
// backslash stays.
[[nodiscard]] std::string escape_for_terminal(std::string_view text, Keep keep = Keep::kNothing);

// True for what no name of a caller's needs, and what makes one look like another: a control
// character (C0 or DEL).
[[nodiscard]] bool has_control_character(std::string_view name);

}  // namespace sbx
