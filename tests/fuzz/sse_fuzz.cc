// A model server's stream: the same events however its bytes are cut, and both dialects survive
// whatever the events hold.
#include "agentd/providers/sse.h"

#include "agentd/providers/wire.h"
#include "tests/fuzz/entry.h"

namespace {

using agentd::providers::SseEvent;
using agentd::providers::SseParser;

std::vector<SseEvent> parse(std::string_view text, std::size_t piece) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    for (SseEvent& event : parser.feed(text.substr(0, piece))) events.push_back(std::move(event));
  }
  if (std::string rest = parser.take_rest(); !rest.empty()) {
    events.push_back({"rest", std::move(rest)});
  }
  return events;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace agentd::providers;
  sbx::fuzz::Bytes bytes(data, size);
  const std::size_t piece = bytes.byte() % 16 + 1U;
  const std::string_view text = bytes.rest();
  const std::vector<SseEvent> events = parse(text, text.size() + 1);
  sbx::fuzz::require(parse(text, piece) == events);
  for (const auto& wire : {openai_wire(), anthropic_wire()}) {
    const auto accumulator = wire->accumulator();
    for (const SseEvent& event : events) {
      if (!accumulator->event(event)) break;
    }
    sbx::fuzz::require(accumulator->take().text.size() <= kMaxReplyBytes);
    const auto plain = wire->accumulator();
    plain->whole(text);
    (void)plain->take();
  }
  (void)error_message(text);
  return 0;
}
