// A model's reply: never a crash; what is taken out is text of the reply, line by line.
#include "agentd/envelope/code_block.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace agentd::envelope;
  using sbx::fuzz::require;
  sbx::fuzz::Bytes bytes(data, size);
  const std::uint8_t choice = bytes.byte();
  const Language language = (choice & 1U) != 0 ? Language::kPython : Language::kJavaScript;
  const bool cut = (choice & 2U) != 0;
  const std::string_view reply = bytes.rest();
  const auto extracted = extract_code(reply, language, cut);
  if (const auto* none = std::get_if<NoCode>(&extracted)) {
    require(!none->code.empty() && !none->detail.empty());
    return 0;
  }
  const CodeBlock& block = std::get<CodeBlock>(extracted);
  require(!block.code.empty() && block.code.size() <= kMaxCodeBytes && block.code.ends_with('\n'));
  require(!(cut && !block.closed));
  for (std::string_view rest = block.code; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    require(reply.find(rest.substr(0, end)) != std::string_view::npos);
    rest.remove_prefix(end + 1);
  }
  return 0;
}
