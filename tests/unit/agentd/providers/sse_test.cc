#include "agentd/providers/sse.h"

#include <gtest/gtest.h>

namespace agentd::providers {
namespace {

std::vector<SseEvent> all(std::string_view text, std::size_t piece) {
  SseParser parser;
  std::vector<SseEvent> events;
  for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
    for (SseEvent& event : parser.feed(text.substr(0, piece))) events.push_back(std::move(event));
  }
  return events;
}

TEST(Sse, ReadsEventsHoweverTheirBytesArrive) {
  const std::string text =
      "\xEF\xBB\xBF: comment\r\ndata: one\r\n\r\nevent: ping\ndata\n\ndata:two\ndata:  lines\n"
      "id: 7\nretry: 3\nunknown: x\n\n: keep-alive\n\n\rdata: cr\r\r";
  const std::vector<SseEvent> expected = {
      {"message", "one"}, {"ping", ""}, {"message", "two\n lines"}, {"message", "cr"}};
  for (const std::size_t piece : {1U, 2U, 3U, 7U, 1000U}) {
    EXPECT_EQ(all(text, piece), expected) << "in pieces of " << piece;
  }
}

TEST(Sse, AnEventWithoutItsBlankLineIsTheRest) {
  SseParser parser;
  EXPECT_TRUE(parser.feed("data: a\ndata: b").empty());
  EXPECT_EQ(parser.take_rest(), "a\nb");
  EXPECT_EQ(parser.take_rest(), "");
  EXPECT_TRUE(parser.feed("").empty());
}

TEST(Sse, AnEventHasALimit) {
  const std::string longest = "data: " + std::string(kMaxSseEventBytes - 6, 'x');
  SseParser at_limit;
  EXPECT_EQ(at_limit.feed(longest + "\n\n").size(), 1U);
  EXPECT_FALSE(at_limit.failed());
  SseParser above;
  EXPECT_TRUE(above.feed(longest + "x\n\n").empty());
  EXPECT_TRUE(above.failed());
  SseParser many_lines;
  for (int i = 0; i < 200'000 && !many_lines.failed(); ++i) {
    EXPECT_TRUE(many_lines.feed("data: xxxxxxxxxx\n").empty());
  }
  EXPECT_TRUE(many_lines.failed());
}

}  // namespace
}  // namespace agentd::providers
