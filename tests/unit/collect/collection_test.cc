// The supervisor's half against packets that a walker should not send, and its sinks.
#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/sha256.h"
#include "runtime/collect/wire.h"
#include "tests/unit/collect/tree.h"

namespace sbx::collect {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::Kind;
using wire::Reason;

class CollectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto sockets = sys::seqpacket_pair();
    ASSERT_TRUE(sockets);
    reader_ = std::move(sockets->first);
    writer_ = std::move(sockets->second);
    tree_.write("file", "content");
    file_ = UniqueFd(::open(tree_.at("file").c_str(), O_RDONLY | O_CLOEXEC));
  }
  void send(const wire::Record& record, std::string_view path, int fd = -1) const {
    ASSERT_TRUE(wire::send(writer_.get(), record, path, fd));
  }
  Walk finish(FileSink sink = content_sink()) {
    writer_.reset();
    return receive(std::move(reader_), std::move(sink));
  }
  TemporaryTree tree_;
  UniqueFd reader_, writer_, file_;
};

TEST_F(CollectionTest, AWalkerThatDiesBeforeTheEndIsAnErrorAndWhatCameIsKept) {
  send({.kind = Kind::kFile, .size = 7}, "file", file_.get());
  const Walk walk = finish();
  ASSERT_TRUE(walk.error);
  EXPECT_EQ(walk.error->code, ErrorCode::kInternal);
  EXPECT_THAT(walk.error->detail, HasSubstr("ended before"));
  EXPECT_THAT(walk.paths(), ElementsAre("file"));
}

TEST_F(CollectionTest, AFileWhoseSizeIsNotTheAnnouncedOneIsRefused) {
  for (const std::uint64_t size : {6U, 8U})
    send({.kind = Kind::kFile, .size = size}, "file", file_.get());
  send({.kind = Kind::kEnd}, "");
  const Walk walk = finish();
  EXPECT_FALSE(walk.error);
  EXPECT_THAT(walk.files, IsEmpty());
  ASSERT_EQ(walk.refused.size(), 2U);
  EXPECT_THAT(walk.refused[0].reason, HasSubstr("changed while it was collected"));
}

TEST_F(CollectionTest, ADescriptorThatIsNoRegularFileIsRefused) {
  send({.kind = Kind::kFile, .size = 0}, "dir", tree_.fd());
  send({.kind = Kind::kEnd}, "");
  EXPECT_THAT(finish().reason("dir"), HasSubstr("not a regular file"));
}

TEST_F(CollectionTest, PathsThatLeaveTheTreeBreakTheProtocol) {
  for (const char* path : {"/etc/passwd", "../x", "a/../b", "a//b", "a/", ".", "..", ""}) {
    wire::Record record{.kind = Kind::kFile, .size = 7};
    std::vector<std::uint8_t> packet(sizeof record + std::strlen(path));
    std::memcpy(packet.data(), &record, sizeof record);
    std::memcpy(packet.data() + sizeof record, path, std::strlen(path));
    EXPECT_FALSE(wire::parse(packet)) << path;
  }
}

TEST_F(CollectionTest, ShortOrUnknownPacketsBreakTheProtocol) {
  EXPECT_FALSE(wire::parse({}));
  std::vector<std::uint8_t> packet(sizeof(wire::Record), 0xFF);
  EXPECT_FALSE(wire::parse(packet));
  packet.pop_back();
  EXPECT_FALSE(wire::parse(packet));
  EXPECT_FALSE(wire::parse(std::vector<std::uint8_t>(wire::kMaxPacket + 1)));
}

TEST_F(CollectionTest, AFilePacketWithoutItsDescriptorIsAnError) {
  send({.kind = Kind::kFile, .size = 7}, "file");
  EXPECT_TRUE(finish().error);
}

TEST_F(CollectionTest, ASinkThatFailsMakesARefusedEntry) {
  send({.kind = Kind::kFile, .size = 7}, "file", file_.get());
  send({.kind = Kind::kEnd}, "");
  const Walk walk = finish([](CollectedFile&, int) -> Result<void> { return invalid("no room"); });
  EXPECT_FALSE(walk.error);
  EXPECT_EQ(walk.reason("file"), "no room");
}

TEST_F(CollectionTest, WithoutASinkFilesAreListedWithTheirHashOnly) {
  send({.kind = Kind::kFile, .size = 7}, "file", file_.get());
  send({.kind = Kind::kEnd}, "");
  const Walk walk = finish({});
  ASSERT_EQ(walk.files.size(), 1U);
  EXPECT_FALSE(walk.files[0].content);
  EXPECT_EQ(walk.files[0].sha256.size(), 64U);
}

TEST_F(CollectionTest, TheSinkGetsTheDescriptorAtItsStart) {
  send({.kind = Kind::kFile, .size = 7}, "file", file_.get());
  send({.kind = Kind::kEnd}, "");
  std::string read;
  const Walk walk = finish([&](CollectedFile&, int fd) -> Result<void> {
    SBX_ASSIGN(read, sys::read_all(fd, 100));
    return {};
  });
  EXPECT_EQ(read, "content");
}

TEST_F(CollectionTest, EveryReasonHasASentence) {
  for (auto reason = static_cast<std::uint32_t>(Reason::kSymlink);
       reason < static_cast<std::uint32_t>(Reason::kLast); ++reason) {
    send({.kind = Kind::kRefused, .reason = static_cast<Reason>(reason), .sys_errno = EACCES},
         std::string(1, static_cast<char>('a' + reason)));
  }
  send({.kind = Kind::kEnd}, "");
  for (const RefusedEntry& entry : finish().refused) EXPECT_NE(entry.reason, "not collected");
}

TEST_F(CollectionTest, ALargeFileIsTakenInSeveralSteps) {
  const std::string content(3 * kHashedPerStep + 1, 'x');
  const UniqueFd large(::memfd_create("large", MFD_CLOEXEC));
  ASSERT_TRUE(sys::write_all(large.get(), content));
  send({.kind = Kind::kFile, .size = content.size()}, "large", large.get());
  send({.kind = Kind::kEnd}, "");
  Collection collection(std::move(reader_), content_sink());
  int steps = 0;
  for (bool over = false; !over && steps < 100; ++steps) {
    const auto done = collection.step();
    ASSERT_TRUE(done);
    over = *done;
    EXPECT_EQ(collection.busy(), steps < 3) << steps;
  }
  EXPECT_EQ(steps, 5) << "four for the file, one for the end";
  ASSERT_EQ(collection.files().size(), 1U);
  EXPECT_EQ(collection.files()[0].sha256, sha256_of(content));
  EXPECT_EQ(collection.files()[0].content, content);
}

TEST_F(CollectionTest, AFileThatShrinksWhileItIsTakenIsRefused) {
  const std::string content(3 * kHashedPerStep, 'x');
  const UniqueFd large(::memfd_create("large", MFD_CLOEXEC));
  ASSERT_TRUE(sys::write_all(large.get(), content));
  send({.kind = Kind::kFile, .size = content.size()}, "large", large.get());
  Collection collection(std::move(reader_), content_sink());
  ASSERT_TRUE(collection.step());
  ASSERT_TRUE(collection.busy());
  ASSERT_EQ(::ftruncate(large.get(), 10), 0);
  ASSERT_TRUE(collection.step());
  EXPECT_FALSE(collection.busy());
  EXPECT_TRUE(collection.files().empty());
  ASSERT_EQ(collection.refused().size(), 1U);
}

TEST_F(CollectionTest, StepDoesNotBlockWhenNothingIsThere) {
  Collection collection(std::move(reader_), {});
  auto done = collection.step();
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
}

}  // namespace
}  // namespace sbx::collect
