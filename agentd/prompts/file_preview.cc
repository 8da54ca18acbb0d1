#include "agentd/prompts/file_preview.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/base/escape.h"
#include "runtime/base/utf8.h"

namespace agentd::prompts {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

struct Preview {
  std::string text;
  bool whole = false;
};

// The first lines, cut between lines where that leaves anything, else between characters.
Preview first_lines(std::string_view content, std::size_t limit) {
  std::size_t end = 0;
  for (std::size_t lines = 0; lines < kMaxPreviewLines && end < content.size(); ++lines) {
    const std::size_t next = std::min(content.find('\n', end), content.size() - 1) + 1;
    if (next > limit) break;
    end = next;
  }
  if (end == 0) end = sbx::utf8_boundary_before(content, std::min(limit, content.size()));
  std::string text(content.substr(0, end));
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  return {std::move(text), end == content.size()};
}

bool is_text(std::string_view beginning) {
  std::string ignored;
  return sbx::append_replacing(ignored, beginning) &&
         beginning.find('\0') == std::string_view::npos;
}

std::string describe(const AttachedFile& file, std::size_t limit) {
  // A name is one line, whatever it holds.
  std::string text =
      fmt::format("/input/{}: {} bytes", sbx::escape_for_terminal(file.name), file.content.size());
  std::string_view content = file.content;
  if (content.empty()) return text + "\n";
  if (content.starts_with(kByteOrderMark)) {
    content.remove_prefix(kByteOrderMark.size());
    text += ", UTF-8 with a byte order mark";
  }
  const Preview preview = first_lines(content, limit);
  if (!is_text(preview.text)) return text + ", not UTF-8 text\n";
  if (limit == 0) return text + "\n";
  return fmt::format("{}, {}:\n{}\n", text, preview.whole ? "all of it" : "it begins with",
                     sbx::escape_for_terminal(preview.text, sbx::Keep::kNewlinesAndTabs));
}

}  // namespace

std::string describe_files(std::span<const AttachedFile> files) {
  std::string text;
  for (const AttachedFile& file : files) {
    const std::size_t left = kMaxPreviewsBytes - std::min(text.size(), kMaxPreviewsBytes);
    text += describe(file, std::min(left, kMaxPreviewBytes));
  }
  return text;
}

}  // namespace agentd::prompts
