// The walker's packets: what is sent arrives, and nothing else is believed.
#include "runtime/workspace/wire.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "runtime/base/sys.h"

namespace sbx::workspace::wire {
namespace {

class Packets : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = sys::seqpacket_pair();
    ASSERT_TRUE(pair);
    near_ = std::move(pair->first);
    far_ = std::move(pair->second);
  }
  [[nodiscard]] Result<Message> take() {
    auto packet = sys::receive_packet(near_.get(), buffer_, MSG_DONTWAIT);
    if (!packet || !*packet) return invalid("nothing came");
    fds_ = std::move((*packet)->fds);
    return parse(std::span(buffer_).first((*packet)->size));
  }
  UniqueFd near_, far_;
  std::vector<UniqueFd> fds_;
  std::array<std::uint8_t, kMaxPacket> buffer_{};
};

TEST_F(Packets, ArriveWithPathTargetAndDescriptor) {
  ASSERT_TRUE(send(far_.get(), {.kind = Kind::kSymlink}, "a/b", "../target"));
  auto message = take();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->record.kind, Kind::kSymlink);
  EXPECT_EQ(message->path, "a/b");
  EXPECT_EQ(message->target, "../target");
  ASSERT_TRUE(send(far_.get(), {.kind = Kind::kFile}, "f", {}, near_.get()));
  message = take();
  ASSERT_TRUE(message);
  EXPECT_EQ(fds_.size(), 1U);
}

TEST_F(Packets, OfTheLongestNamesFit) {
  const std::string longest(kMaxPathBytes, 'p');
  ASSERT_TRUE(send(far_.get(), {.kind = Kind::kSymlink}, longest, longest));
  const auto message = take();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->path, longest);
  EXPECT_EQ(message->target, longest);
}

TEST_F(Packets, ThatAreTooLongAreCut) {
  ASSERT_TRUE(send(far_.get(), {.kind = Kind::kRefused, .reason = Reason::kPathTooLong},
                   std::string(5000, 'p')));
  const auto message = take();
  ASSERT_TRUE(message);
  EXPECT_EQ(message->path.size(), kMaxPathBytes);
}

std::vector<std::uint8_t> packet(Record record, std::string_view text) {
  std::vector<std::uint8_t> bytes(sizeof record + text.size());
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(bytes.data() + sizeof record, text.data(), text.size());
  return bytes;
}

TEST(Parse, RefusesWhatTheWalkerNeverSends) {
  const auto refused = [](Record record, std::string_view text) {
    return !parse(packet(record, text));
  };
  const auto kind = [](std::uint32_t number) { return static_cast<Kind>(number); };
  EXPECT_TRUE(refused({.kind = kind(0), .path_size = 1}, "a"));
  EXPECT_TRUE(refused({.kind = kind(6), .path_size = 1}, "a"));
  EXPECT_TRUE(refused({.kind = Kind::kFile, .path_size = 2}, "a")) << "shorter than it says";
  EXPECT_TRUE(refused({.kind = Kind::kFile, .path_size = 1}, "ab")) << "longer than it says";
  EXPECT_TRUE(refused({.kind = Kind::kFile, .path_size = 0xffffffffU, .target_size = 2}, "a"));
  EXPECT_TRUE(refused({.kind = Kind::kFile, .path_size = 2}, ".."));
  EXPECT_TRUE(refused({.kind = Kind::kFile, .path_size = 2}, "/a"));
  EXPECT_TRUE(refused({.kind = Kind::kDirectory, .path_size = 4}, "a//b"));
  EXPECT_TRUE(refused({.kind = Kind::kDirectory, .mode = 01777, .path_size = 1}, "a"));
  EXPECT_TRUE(refused({.kind = Kind::kFile, .path_size = 1, .target_size = 1}, "ab"));
  EXPECT_TRUE(refused({.kind = Kind::kSymlink, .path_size = 1}, "a")) << "no target";
  EXPECT_TRUE(refused({.kind = Kind::kSymlink, .path_size = 1, .target_size = 2},
                      std::string_view("at\0", 3)));
  EXPECT_TRUE(refused({.kind = Kind::kRefused}, ""));
  EXPECT_TRUE(refused({.kind = Kind::kEnd, .path_size = 1}, "a"));
  EXPECT_TRUE(
      refused({.kind = Kind::kRefused, .reason = static_cast<Reason>(99), .path_size = 1}, "a"));
  EXPECT_FALSE(parse(std::span<const std::uint8_t>())) << "no record";
}

TEST(Parse, TakesTheEndAlone) {
  EXPECT_TRUE(parse(packet({.kind = Kind::kEnd}, "")));
}

}  // namespace
}  // namespace sbx::workspace::wire
