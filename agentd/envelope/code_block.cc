#include "agentd/envelope/code_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "agentd/envelope/string_tracker.h"

namespace agentd::envelope {
namespace {

constexpr std::string_view kSpaceOrTab = " \t";
constexpr std::string_view kThought = "<think>";
constexpr std::string_view kThoughtEnd = "</think>";

struct LanguageNames {
  Language language;
  std::string_view name;
  std::array<std::string_view, 6> infos;  // of a fence, in lower case
};
constexpr std::array<LanguageNames, 2> kLanguages = {{
    {Language::kPython, "python", {"python", "py", "python3", "py3", "ipython", "python-repl"}},
    {Language::kJavaScript, "javascript", {"javascript", "js", "node", "nodejs", "mjs", "cjs"}},
}};

const LanguageNames& names_of(Language language) {
  return kLanguages[static_cast<std::size_t>(language)];
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
  }
  return lines;
}

struct Fence {
  char mark = '`';
  std::size_t length = 0;
  std::size_t indent = 0;
  std::string_view info{};
};

std::optional<Fence> fence_of(std::string_view line) {
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (indent > 3 || indent == line.size()) return std::nullopt;
  Fence fence{.mark = line[indent], .indent = indent};
  if (fence.mark != '`' && fence.mark != '~') return std::nullopt;
  const std::size_t end = std::min(line.find_first_not_of(fence.mark, indent), line.size());
  fence.length = end - indent;
  if (fence.length < 3) return std::nullopt;
  fence.info = line.substr(end);
  fence.info.remove_prefix(std::min(fence.info.find_first_not_of(kSpaceOrTab), fence.info.size()));
  fence.info = fence.info.substr(0, fence.info.find_last_not_of(kSpaceOrTab) + 1);
  // "```x```" on one line is code within prose.
  if (fence.mark == '`' && fence.info.find('`') != std::string_view::npos) return std::nullopt;
  return fence;
}

bool closes(std::string_view line, const Fence& opening) {
  const auto fence = fence_of(line);
  return fence && fence->mark == opening.mark && fence->length >= opening.length &&
         fence->info.empty();
}

// The first line after `from` that closes the block; the number of lines when none does.
std::size_t plain_end(const std::vector<std::string_view>& lines, std::size_t from,
                      const Fence& opening) {
  while (from < lines.size() && !closes(lines[from], opening)) ++from;
  return from;
}

std::size_t block_end(const std::vector<std::string_view>& lines, std::size_t from,
                      const Fence& opening, Language language) {
  StringTracker tracker(language);
  for (std::size_t i = from; i < lines.size(); ++i) {
    if (!tracker.inside() && closes(lines[i], opening)) return i;
    tracker.line(lines[i]);
  }
  // A string that never ends: broken code, or text that the tracker does not understand.
  return plain_end(lines, from, opening);
}

enum class Kinship : std::uint8_t { kTarget, kUnnamed, kOther };

Kinship kinship(std::string_view info, Language language) {
  // "python title=x", "{.python}"
  info = info.substr(std::min(info.find_first_not_of("{. "), info.size()));
  const std::string word = lower(info.substr(0, info.find_first_of(" \t,:{}")));
  if (word.empty()) return Kinship::kUnnamed;
  const auto& infos = names_of(language).infos;
  return std::find(infos.begin(), infos.end(), word) != infos.end() ? Kinship::kTarget
                                                                    : Kinship::kOther;
}

struct Block {
  Kinship kinship = Kinship::kOther;
  std::size_t begin = 0;  // lines
  std::size_t end = 0;
  bool closed = false;
  std::size_t indent = 0;
};

std::vector<Block> blocks_of(const std::vector<std::string_view>& lines, Language language) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto opening = fence_of(lines[i]);
    if (!opening) continue;
    Block block{
        .kinship = kinship(opening->info, language), .begin = i + 1, .indent = opening->indent};
    block.end = block.kinship == Kinship::kOther
                    ? plain_end(lines, block.begin, *opening)
                    : block_end(lines, block.begin, *opening, language);
    block.closed = block.end < lines.size();
    i = block.end;
    blocks.push_back(block);
  }
  return blocks;
}

std::string text_of(const std::vector<std::string_view>& lines, const Block& block) {
  std::string code;
  for (std::size_t i = block.begin; i < block.end; ++i) {
    // As much of the fence's own indentation as the line has.
    const std::size_t blanks = std::min(lines[i].find_first_not_of(' '), lines[i].size());
    code += lines[i].substr(std::min(blanks, block.indent));
    code += '\n';
  }
  return code;
}

// The block that is meant, or why there is none.
std::variant<Block, NoCode> choose(const std::vector<Block>& blocks, Language language) {
  const std::string_view name = names_of(language).name;
  for (const Kinship kind : {Kinship::kTarget, Kinship::kUnnamed}) {
    const auto is_kind = [kind](const Block& block) { return block.kinship == kind; };
    const auto count = std::count_if(blocks.begin(), blocks.end(), is_kind);
    if (count == 1) return *std::find_if(blocks.begin(), blocks.end(), is_kind);
    if (count > 1) {
      return NoCode{
          "several_code_blocks",
          fmt::format("the reply holds {} fenced code blocks; exactly one is wanted, with "
                      "the whole program",
                      count)};
    }
  }
  if (!blocks.empty()) {
    return NoCode{"wrong_language",
                  fmt::format("no code block is marked \"{}\", but in another language", name)};
  }
  return NoCode{"no_code_block",
                fmt::format("the reply holds no fenced code block; exactly one marked \"{}\" is "
                            "wanted",
                            name)};
}

// "Here it is: ```python": a fence to whoever wrote it, prose to everybody else.
bool opens_inside_a_line(std::string_view line, Language language) {
  constexpr std::size_t kFence = 3;
  for (const char mark : {'`', '~'}) {
    const std::size_t at = line.find(std::string(kFence, mark));
    if (at == std::string_view::npos || at == 0) continue;
    const std::size_t end = std::min(line.find_first_not_of(mark, at), line.size());
    std::string_view info = line.substr(end);
    info = info.substr(0, info.find_last_not_of(kSpaceOrTab) + 1);
    const bool is_word = !info.empty() && info.find_first_of(kSpaceOrTab) == std::string_view::npos;
    if (is_word && !fence_of(line) && kinship(info, language) == Kinship::kTarget) return true;
  }
  return false;
}

// Without a block of the language, the first fence that stood inside of a line is what is wrong:
// the one that was to close its block opens the next.
std::optional<NoCode> misplaced_fence(const std::vector<std::string_view>& lines,
                                      const std::vector<Block>& blocks, Language language) {
  if (std::any_of(blocks.begin(), blocks.end(),
                  [](const Block& block) { return block.kinship == Kinship::kTarget; })) {
    return std::nullopt;
  }
  const std::size_t before = blocks.empty() ? lines.size() : blocks.front().begin;
  for (std::size_t i = 0; i < before; ++i) {
    if (!opens_inside_a_line(lines[i], language)) continue;
    return NoCode{
        "no_code_block",
        fmt::format("the fence that opens the code block, marked \"{}\", must stand at the "
                    "start of a line of its own",
                    names_of(language).name)};
  }
  return std::nullopt;
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n") == std::string_view::npos;
}

bool opens_thought(std::string_view reply) {
  reply.remove_prefix(std::min(reply.find_first_not_of(" \t\r\n"), reply.size()));
  return reply.starts_with(kThought);
}

// Behind the first line that ends a thought and stands in no code block; 0 when there is none.
std::size_t after_lone_end(std::string_view reply) {
  if (reply.find(kThoughtEnd) == std::string_view::npos) return 0;
  std::optional<Fence> open;
  for (const std::string_view line : split_lines(reply)) {
    if (!open && line == kThoughtEnd) {
      return static_cast<std::size_t>(line.data() - reply.data()) + line.size();
    }
    if (!open) {
      open = fence_of(line);
    } else if (closes(line, *open)) {
      open.reset();
    }
  }
  return 0;
}

}  // namespace

std::string_view to_string(Language language) {
  return names_of(language).name;
}

bool language_from(std::string_view name, Language& language) {
  constexpr std::array<std::pair<std::string_view, Language>, 4> kNames = {{
      {"python", Language::kPython},
      {"javascript", Language::kJavaScript},
      {"js", Language::kJavaScript},
      {"node", Language::kJavaScript},
  }};
  for (const auto& [known, value] : kNames) {
    if (known != name) continue;
    language = value;
    return true;
  }
  return false;
}

std::string_view without_thought(std::string_view reply) {
  if (!opens_thought(reply)) return reply.substr(after_lone_end(reply));
  const std::size_t end = reply.find(kThoughtEnd);
  return end == std::string_view::npos ? reply : reply.substr(end + kThoughtEnd.size());
}

std::variant<CodeBlock, NoCode> extract_code(std::string_view reply, Language language, bool cut) {
  const std::string_view answer = without_thought(reply);
  const std::vector<std::string_view> lines = split_lines(answer);
  const std::vector<Block> blocks = blocks_of(lines, language);
  // What a thought without an end holds are drafts, however complete.
  if (cut && (blocks.empty() || !blocks.back().closed || opens_thought(answer))) {
    return NoCode{"cut_reply",
                  "the reply was cut before the code block ended; write a shorter program"};
  }
  if (auto misplaced = misplaced_fence(lines, blocks, language)) return *std::move(misplaced);
  auto chosen = choose(blocks, language);
  if (auto* none = std::get_if<NoCode>(&chosen)) return std::move(*none);
  const Block& block = std::get<Block>(chosen);
  CodeBlock result{.code = text_of(lines, block), .closed = block.closed};
  if (is_blank(result.code)) return NoCode{"empty_code_block", "the code block is empty"};
  if (result.code.size() > kMaxCodeBytes) {
    return NoCode{"code_too_long", fmt::format("the program has {} bytes; at most {} are run",
                                               result.code.size(), kMaxCodeBytes)};
  }
  result.prose_bytes = reply.size() - std::min(reply.size(), result.code.size());
  return result;
}

}  // namespace agentd::envelope
