// Records and tombstones as text: what is written reads back, and nothing else is read.
#include "runtime/daemon/session_record.h"

#include <gmock/gmock.h>

namespace sbx::daemon {
namespace {

using std::chrono::seconds;

SessionRecord record() {
  return {.id = "0123456789abcdef",
          .owner = 1000,
          .work = std::uint64_t{1} << 40,
          .work_inodes = 12345,
          .created = SessionTime(seconds(1'700'000'000)),
          .idle = seconds(600),
          .age = seconds(86400),
          .payload_id = 40000};
}

TEST(SessionRecords, ReadBackAsTheyWereWritten) {
  SessionRecord one = record();
  EXPECT_EQ(*parse_session_record(to_text(one)), one);
  one.owner.reset();
  EXPECT_EQ(*parse_session_record(to_text(one)), one);
}

TEST(SessionRecords, OfAnotherShapeAreRefused) {
  const std::string text = to_text(record());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return parse_session_record(changed).has_value();
  };
  EXPECT_TRUE(with("12345", "12346"));
  EXPECT_FALSE(with("12345", "-1"));
  EXPECT_FALSE(with("12345", "1.5"));
  EXPECT_FALSE(with("12345", "\"12345\""));
  EXPECT_FALSE(with("12345", "99999999999999999999"));
  EXPECT_FALSE(with("40000", "4294967296"));
  EXPECT_FALSE(with("1700000000", "4294967297")) << "sums of times must not overflow";
  EXPECT_FALSE(with("86400", "99999999999"));
  EXPECT_FALSE(with("0123456789abcdef", "0123456789ABCDEF"));
  EXPECT_FALSE(with("0123456789abcdef", "../../etc/passwd"));
  EXPECT_FALSE(with("\"format\":\"1\"", "\"format\":\"2\""));
  EXPECT_FALSE(with("\"work\":", "\"wrok\":"));
  EXPECT_FALSE(with("{", "{\"more\":1,"));
  EXPECT_FALSE(parse_session_record(text.substr(0, text.size() / 2)));
  EXPECT_FALSE(parse_session_record(""));
  EXPECT_FALSE(parse_session_record("[]"));
}

TEST(Tombstones, ReadBackAsTheyWereWritten) {
  Tombstone one{.id = "0123456789abcdef",
                .owner = 1000,
                .expired = SessionTime(seconds(1'700'000'000)),
                .why = Expiry::kAge};
  EXPECT_EQ(*parse_tombstone(to_text(one)), one);
  one.why = Expiry::kIdle;
  one.owner.reset();
  EXPECT_EQ(*parse_tombstone(to_text(one)), one);
  EXPECT_FALSE(parse_tombstone(to_text(record())));
}

TEST(SessionIds, AreSixteenHexadecimalDigits) {
  EXPECT_TRUE(is_session_id("0123456789abcdef"));
  for (const char* text : {"", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", ".lock",
                           "expired", "../0123456789abc"}) {
    EXPECT_FALSE(is_session_id(text)) << text;
  }
}

}  // namespace
}  // namespace sbx::daemon
