// The one fenced code block of a model's reply. Service: agentd. Pure.
//
// Fences are those of CommonMark (three or more backticks or tildes, at most three blanks before
// them), but a fence inside a string of the program that spans lines (Python's """, JavaScript's
// `…`) does not close the block. Prose around the block is ignored, and so is what a reasoning
// model thinks aloud before its answer, with the drafts in it (<think>…</think>, which some servers
// send as part of the reply). Model text is data here: nothing in it is evaluated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

namespace agentd::envelope {

inline constexpr std::size_t kMaxCodeBytes = 256U << 10;

enum class Language : std::uint8_t { kPython, kJavaScript };
[[nodiscard]] std::string_view to_string(Language language);  // "python", as sbxd calls it
// By that name, or an alias of it ("js", "node"); false when it is none.
[[nodiscard]] bool language_from(std::string_view name, Language& language);

struct CodeBlock {
  std::string code;             // with LF line ends, the last one included
  std::size_t prose_bytes = 0;  // of the reply outside the block
  bool closed = true;           // false: the reply ended first
};

// `code` is stable: no_code_block, several_code_blocks, wrong_language, empty_code_block,
// code_too_long, cut_reply. `detail` is a sentence of ours that a model can act on.
struct NoCode {
  std::string code;
  std::string detail;
};

// The reply behind what was thought aloud; the whole of it when nothing was. A thought opens the
// reply with <think>. Some servers send its end alone: that counts on a line of its own.
[[nodiscard]] std::string_view without_thought(std::string_view reply);

// Blocks in another language are prose. A block without a language counts when no other one is in
// the language. `cut`: the provider said that the reply stopped at its length limit; then a block
// that is not closed is NoCode{"cut_reply"}.
[[nodiscard]] std::variant<CodeBlock, NoCode> extract_code(std::string_view reply,
                                                           Language language, bool cut);

}  // namespace agentd::envelope
