// Capture: head and tail at each boundary and past it, then against a model too simple to be wrong.
#include "runtime/supervise/capture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sbx::supervise {
namespace {

Captured capture(std::uint64_t limit, const std::vector<std::string>& parts) {
  Capture capture(limit, nullptr);
  for (const std::string& part : parts) capture.add(part);
  return capture.take();
}

// Everything is kept, then cut.
Captured model(std::uint64_t limit, const std::string& all) {
  const std::size_t head = static_cast<std::size_t>(limit - limit / 2);
  const std::size_t tail = static_cast<std::size_t>(limit / 2);
  Captured captured;
  captured.total = all.size();
  captured.head = all.substr(0, head);
  const std::string rest = all.substr(captured.head.size());
  captured.tail = rest.substr(rest.size() - std::min(tail, rest.size()));
  captured.dropped = all.size() - captured.head.size() - captured.tail.size();
  return captured;
}

void expect_equal(const Captured& actual, const Captured& expected) {
  EXPECT_EQ(actual.head, expected.head);
  EXPECT_EQ(actual.tail, expected.tail);
  EXPECT_EQ(actual.dropped, expected.dropped);
  EXPECT_EQ(actual.total, expected.total);
}

TEST(CaptureBoundaries, WhatFitsTheHeadHasNoTail) {
  const Captured captured = capture(8, {"abcd"});
  EXPECT_EQ(captured.head, "abcd");
  EXPECT_EQ(captured.tail, "");
  EXPECT_EQ(captured.dropped, 0U);
}

TEST(CaptureBoundaries, OneByteMoreBeginsTheTail) {
  const Captured captured = capture(8, {"abcde"});
  EXPECT_EQ(captured.head, "abcd");
  EXPECT_EQ(captured.tail, "e");
  EXPECT_EQ(captured.dropped, 0U);
}

TEST(CaptureBoundaries, WhatFitsTheLimitIsWhole) {
  const Captured captured = capture(8, {"abcdefgh"});
  EXPECT_EQ(captured.head + captured.tail, "abcdefgh");
  EXPECT_EQ(captured.dropped, 0U);
}

TEST(CaptureBoundaries, OneByteMoreDropsOneFromTheMiddle) {
  const Captured captured = capture(8, {"abcdefghi"});
  EXPECT_EQ(captured.head, "abcd");
  EXPECT_EQ(captured.tail, "fghi");
  EXPECT_EQ(captured.dropped, 1U);
  EXPECT_EQ(captured.total, 9U);
}

TEST(CaptureBoundaries, AnOddLimitGivesTheHeadTheOddByte) {
  const Captured captured = capture(5, {"abcdefgh"});
  EXPECT_EQ(captured.head, "abc");
  EXPECT_EQ(captured.tail, "gh");
}

TEST(CaptureBoundaries, ALimitOfOneKeepsTheFirstByteAlone) {
  const Captured captured = capture(1, {"a", "b", "c"});
  EXPECT_EQ(captured.head, "a");
  EXPECT_EQ(captured.tail, "");
  EXPECT_EQ(captured.dropped, 2U);
}

TEST(CaptureBoundaries, ALimitOfZeroKeepsNothingAndCountsAll) {
  const Captured captured = capture(0, {"abc", ""});
  EXPECT_EQ(captured.head + captured.tail, "");
  EXPECT_EQ(captured.dropped, 3U);
}

TEST(CaptureBoundaries, TheRingWrapsAtItsEndAndPastIt) {
  // A tail of four: full, then one, three and four more, then one part longer than the ring.
  expect_equal(capture(8, {"head", "1234", "5"}), model(8, "head12345"));
  expect_equal(capture(8, {"head", "1234", "5", "678"}), model(8, "head12345678"));
  expect_equal(capture(8, {"head", "1234", "567", "89"}), model(8, "head123456789"));
  expect_equal(capture(8, {"head", "12", "3456789"}), model(8, "head123456789"));
  expect_equal(capture(8, {"head", "1234", "5", "6789"}), model(8, "head123456789"));
  expect_equal(capture(8, {"head", "123", "456"}), model(8, "head123456"));
}

TEST(CaptureBoundaries, NothingIsNothing) {
  expect_equal(capture(8, {}), Captured{});
  expect_equal(capture(8, {"", ""}), Captured{});
}

TEST(CaptureBoundaries, AnyByteIsKeptAsItIs) {
  const std::string bytes("\0\xff\xfe\n\0", 5);
  EXPECT_EQ(capture(64, {bytes, bytes}).head, bytes + bytes);
}

TEST(CaptureLimit, IsPassedByTheFirstByteTooMuch) {
  Capture capture(4, nullptr);
  capture.add("abcd");
  EXPECT_FALSE(capture.over_limit());
  capture.add("");
  EXPECT_FALSE(capture.over_limit());
  capture.add("e");
  EXPECT_TRUE(capture.over_limit());
}

TEST(CaptureLive, GetsTheHeadOnceAndNothingOfTheRest) {
  std::string live;
  int calls = 0;
  Capture capture(6, [&](std::string_view bytes) {
    live += bytes;
    ++calls;
  });
  capture.add("ab");
  capture.add("cdef");
  capture.add("gh");
  EXPECT_EQ(live, "abc");
  EXPECT_EQ(calls, 2);
}

TEST(CaptureProperty, AgreesWithTheModelForAnyLimitAndAnyParts) {
  std::mt19937 random(1);  // the same each time
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t limit = random() % 24;
    std::string all;
    Capture capture(limit, nullptr);
    for (std::uint64_t parts = random() % 12; parts > 0; --parts) {
      std::string part;
      for (std::uint64_t size = random() % 30; size > 0; --size) {
        part += static_cast<char>('a' + random() % 26);
      }
      capture.add(part);
      all += part;
    }
    SCOPED_TRACE("limit " + std::to_string(limit) + ", " + all);
    EXPECT_EQ(capture.total(), all.size());
    EXPECT_EQ(capture.over_limit(), all.size() > limit);
    expect_equal(capture.take(), model(limit, all));
    if (HasFailure()) return;
  }
}

TEST(CaptureProperty, HoldsNoMoreThanItsLimitHoweverMuchComes) {
  Capture capture(1000, nullptr);
  const std::string part(64 * 1024, 'x');
  for (int i = 0; i < 1000; ++i) capture.add(part);
  const Captured captured = capture.take();
  EXPECT_EQ(captured.head.size() + captured.tail.size(), 1000U);
  EXPECT_LE(captured.head.capacity() + captured.tail.capacity(), 4096U);
  EXPECT_EQ(captured.dropped, 1000U * part.size() - 1000U);
}

}  // namespace
}  // namespace sbx::supervise
