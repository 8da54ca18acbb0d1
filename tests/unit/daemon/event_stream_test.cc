#include "runtime/daemon/event_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/base/base64.h"

namespace sbx::daemon {
namespace {

using Json = nlohmann::json;
using Stream = EventStream::Stream;
using ::testing::ElementsAre;

class EventStreamTest : public ::testing::Test {
 protected:
  // A reader that has room for `room_` bytes.
  EventStream make() {
    return EventStream([this](std::string_view lines) {
      if (lines.size() > room_) return false;
      room_ -= lines.size();
      text_ += lines;
      return true;
    });
  }
  void close(EventStream& events, const std::string& out, std::uint64_t dropped = 0,
             std::size_t head = 0) {
    collect::Outcome outcome;
    outcome.stdout_bytes = out;
    outcome.stdout_dropped = dropped;
    outcome.stdout_head = head;
    events.close(outcome);
    while (const auto line = events.next_closing()) text_ += *line;
    text_ += events.result_prefix() + "{}" + std::string(EventStream::result_suffix());
  }
  [[nodiscard]] std::vector<Json> events() const {
    std::vector<Json> list;
    std::istringstream lines(text_);
    for (std::string line; std::getline(lines, line);) list.push_back(Json::parse(line));
    return list;
  }
  // The bytes of one stream's events, with '#' for each byte lost.
  [[nodiscard]] std::string received(const std::string& stream) const {
    std::string bytes;
    for (const Json& event : events()) {
      if (event["event"] == stream && event.contains("data")) {
        bytes += event["data"].get<std::string>();
      } else if (event["event"] == stream) {
        bytes += decode_base64(event["data_base64"].get<std::string>()).value_or("bad base64");
      } else if (event["event"] == "lost" && event["stream"] == stream) {
        bytes += std::string(event["bytes"].get<std::size_t>(), '#');
      }
    }
    return bytes;
  }
  [[nodiscard]] std::vector<std::string> kinds() const {
    std::vector<std::string> list;
    for (const Json& event : events()) list.push_back(event["event"]);
    return list;
  }
  void expect_numbered() const {
    std::uint64_t expected = 0;
    for (const Json& event : events()) EXPECT_EQ(event["seq"], expected++);
  }

  std::size_t room_ = 1U << 30;
  std::string text_;
};

TEST_F(EventStreamTest, BeginsWithStartedAndEndsWithOneResult) {
  EventStream stream = make();
  text_ += stream.started("0123456789abcdef", R"({"pids":64})", "[]");
  stream.live(Stream::kStdout, "hello\n");
  stream.live(Stream::kStderr, "oh\n");
  close(stream, "hello\n");
  EXPECT_THAT(kinds(), ElementsAre("started", "stdout", "stderr", "result"));
  EXPECT_EQ(events()[0]["id"], "0123456789abcdef");
  EXPECT_EQ(events()[0]["limits"]["pids"], 64);
  expect_numbered();
}

TEST_F(EventStreamTest, WhatWasNotLiveComesAtTheEnd) {
  EventStream stream = make();
  stream.live(Stream::kStdout, "head");
  close(stream, "headtail");
  EXPECT_EQ(received("stdout"), "headtail");
  expect_numbered();
}

TEST_F(EventStreamTest, ACutIsCountedBetweenHeadAndTail) {
  EventStream stream = make();
  stream.live(Stream::kStdout, "head");
  close(stream, "headtail", 5, 4);
  EXPECT_EQ(received("stdout"), "head#####tail");
  EXPECT_THAT(kinds(), ElementsAre("stdout", "lost", "stdout", "result"));
}

TEST_F(EventStreamTest, ACharacterIsNeverSplitBetweenEvents) {
  EventStream stream = make();
  const std::string text = "a€b𝄞c";
  for (const char byte : text) stream.live(Stream::kStdout, std::string(1, byte));
  close(stream, text);
  EXPECT_EQ(received("stdout"), text);
  for (const Json& event : events()) EXPECT_FALSE(event.contains("data_base64"));
}

TEST_F(EventStreamTest, BytesThatAreNotUtf8GoAsBase64) {
  EventStream stream = make();
  stream.live(Stream::kStdout, "a\xff\xfe");
  stream.live(Stream::kStdout, "\xe2\x82");  // the start of a character that never ends
  close(stream, "a\xff\xfe\xe2\x82");
  EXPECT_EQ(received("stdout"), "a\xff\xfe\xe2\x82");
}

TEST_F(EventStreamTest, AReaderThatDoesNotReadLosesCountedBytes) {
  EventStream stream = make();
  stream.live(Stream::kStdout, "first ");
  room_ = 0;
  stream.live(Stream::kStdout, "second ");
  stream.live(Stream::kStdout, "third ");
  room_ = 1000;
  stream.live(Stream::kStdout, "fourth");
  close(stream, "first second third fourth");
  EXPECT_EQ(received("stdout"), "first #############fourth");
  EXPECT_EQ(stream.lost_live(), 13U);
  expect_numbered();
}

TEST_F(EventStreamTest, ALossAtTheEndIsSaidBeforeTheResult) {
  EventStream stream = make();
  room_ = 0;
  stream.live(Stream::kStdout, "gone");
  stream.live(Stream::kStderr, "lost");
  close(stream, "gone");
  EXPECT_EQ(received("stdout"), "####");
  EXPECT_EQ(received("stderr"), "####");
  EXPECT_EQ(kinds().back(), "result");
}

TEST_F(EventStreamTest, ALossAndACutThatMeetAreOne) {
  EventStream stream = make();
  room_ = 0;
  stream.live(Stream::kStdout, "head");
  close(stream, "headtail", 5, 4);
  EXPECT_EQ(received("stdout"), "#########tail");
  EXPECT_THAT(kinds(), ElementsAre("lost", "stdout", "result"));
}

// Whatever the program writes and the reader does, what arrives and what is counted as lost add up.
TEST_F(EventStreamTest, NothingIsMissingAndNothingIsThereTwice) {
  unsigned random = 12345;
  const auto next = [&random](unsigned below) {
    random = random * 1103515245 + 12345;
    return (random >> 16) % below;
  };
  for (int round = 0; round < 300; ++round) {
    text_.clear();
    EventStream stream = make();
    std::string written;
    for (unsigned i = next(20); i > 0; --i) {
      std::string piece;
      for (unsigned n = next(40); n > 0; --n) piece += static_cast<char>(next(256));
      room_ = next(3) == 0 ? next(60) : 1U << 20;
      stream.live(Stream::kStdout, piece);
      written += piece;
    }
    close(stream, written);
    const std::string got = received("stdout");
    ASSERT_EQ(got.size(), written.size());
    const bool lost = stream.lost_live() > 0;
    if (!lost) {
      EXPECT_EQ(got, written);
    }
    expect_numbered();
  }
}

TEST_F(EventStreamTest, LongOutputIsCutIntoEventsOfBoundedSize) {
  EventStream stream = make();
  std::string text;
  while (text.size() < 100'000) text += "€";
  stream.live(Stream::kStdout, text);
  close(stream, text);
  EXPECT_EQ(received("stdout"), text);
  for (const Json& event : events()) {
    EXPECT_LE(event.dump().size(), 20'000U);
    EXPECT_FALSE(event.contains("data_base64"));
  }
}

}  // namespace
}  // namespace sbx::daemon
