// Any text in a prompt: it never ends its own wrapping, and is wrapped once.
#include <string>
#include <string_view>

#include "agentd/prompts/data_wrapper.h"
#include "runtime/base/utf8.h"
#include "tests/fuzz/entry.h"

namespace {

constexpr std::string_view kBegin = "<data>\n";
constexpr std::string_view kEnd = "\n</data>";

// As a reader would take it who cares for nothing but letters.
std::string folded(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ') continue;
    letters += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return letters;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using sbx::fuzz::require;
  const std::string_view text = sbx::fuzz::as_text(data, size);
  const std::string wrapped = agentd::prompts::wrap_data(text);
  const std::string_view all(wrapped);
  require(all.starts_with(kBegin) && all.ends_with(kEnd));
  require(all.size() >= kBegin.size() + kEnd.size());
  const std::string inside =
      folded(all.substr(kBegin.size(), all.size() - kBegin.size() - kEnd.size()));
  require(inside.find("</data") == std::string::npos && inside.find("<data") == std::string::npos);
  std::string same;
  require(sbx::append_replacing(same, wrapped));  // it is UTF-8

  const std::string cut = agentd::prompts::head_and_tail(text, 64);
  require(text.size() <= 64 ? cut == text : cut.size() < 64 + 64);
  return 0;
}
