// Any JSON, drawn by agentctl as a record, as a page of history and as what agentd says of itself:
// never an exception, and nothing that drives a terminal.
#include <nlohmann/json.hpp>
#include <string>

#include "agentd/render/record_text.h"
#include "runtime/base/escape.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace agentd::render;
  const auto json = nlohmann::ordered_json::parse(sbx::fuzz::as_text(data, size), nullptr, false);
  if (json.is_discarded()) return 0;
  for (const std::string& text : {result_text(json), attempt_lines(json), footer(json),
                                  provider_line(json), history_lines(json)}) {
    sbx::fuzz::require(sbx::escape_for_terminal(text, sbx::Keep::kNewlinesAndTabs) == text);
  }
  return 0;
}
