// A tree as a stream: every entry, in an order in which it can be made, holes as holes.
#include "runtime/workspace/fill_stream.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstring>
#include <map>

#include "runtime/plan/flat_plan.h"
#include "tests/unit/workspace/disk.h"

namespace sbx::workspace::test {
namespace {

using plan::FillHeader;
using plan::FillKind;

struct Filled {
  FillHeader header;
  std::string text;  // content with holes as zeros, or a link's target
  std::uint64_t sent = 0;
};

class Stream {
 public:
  explicit Stream(std::string bytes) : bytes_(std::move(bytes)) { parse(); }
  std::map<std::string, Filled> entries;
  std::vector<std::string> order;
  bool ended = false;

 private:
  template <typename T>
  T take() {
    T value{};
    EXPECT_LE(at_ + sizeof value, bytes_.size());
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string take(std::uint64_t size) {
    EXPECT_LE(at_ + size, bytes_.size());
    const std::string text = bytes_.substr(at_, size);
    at_ += size;
    return text;
  }

  void parse() {
    while (!ended && !::testing::Test::HasFailure()) {
      Filled entry;
      entry.header = take<FillHeader>();
      ended = entry.header.kind == FillKind::kEnd;
      if (ended) break;
      const std::string path = take(entry.header.path_size);
      if (entry.header.kind == FillKind::kSparseFile) {
        take_extents(entry);
      } else if (entry.header.kind != FillKind::kDirectory) {
        entry.text = take(entry.header.size);
      }
      order.push_back(path);
      entries[path] = std::move(entry);
    }
    EXPECT_EQ(at_, bytes_.size());
  }

  void take_extents(Filled& entry) {
    constexpr std::uint64_t kShown = 1U << 20;
    entry.text.assign(std::min(entry.header.size, kShown), '\0');
    for (;;) {
      const auto extent = take<plan::FillExtent>();
      if (extent.size == 0) return;
      EXPECT_EQ(extent.offset % 4096, 0U);
      EXPECT_LE(extent.offset + extent.size, entry.header.size);
      const std::string part = take(extent.size);
      entry.sent += part.size();
      if (extent.offset + extent.size <= entry.text.size()) {
        entry.text.replace(extent.offset, part.size(), part);
      }
    }
  }

  std::string bytes_;
  std::size_t at_ = 0;
};

Stream stream_of(const TemporaryTree& tree) {
  const UniqueFd memory(::memfd_create("stream", MFD_CLOEXEC));
  const auto written = write_fill_stream(tree.fd(), 2, memory.get());
  EXPECT_TRUE(written) << to_string(written.error());
  EXPECT_EQ(::lseek(memory.get(), 0, SEEK_SET), 0);
  auto bytes = sys::read_all(memory.get(), 1U << 30);
  return Stream(bytes ? *std::move(bytes) : "");
}

TEST(FillStream, OfAnEmptyTreeIsTheEnd) {
  const Stream stream = stream_of(TemporaryTree());
  EXPECT_TRUE(stream.ended);
  EXPECT_TRUE(stream.entries.empty());
}

TEST(FillStream, CarriesKindsModesTimesAndContents) {
  const TemporaryTree tree;
  tree.directory("d");
  ASSERT_EQ(::chmod(tree.at("d").c_str(), 0750), 0);
  tree.write("d/tool", "#!/bin/sh\n");
  ASSERT_EQ(::chmod(tree.at("d/tool").c_str(), 0755), 0);
  const timespec times[2] = {{1, 2}, {1234567890, 987654321}};
  ASSERT_EQ(::utimensat(AT_FDCWD, tree.at("d/tool").c_str(), times, 0), 0);
  tree.symlink("/etc/passwd", "link");
  const Stream stream = stream_of(tree);
  EXPECT_THAT(stream.order, ::testing::ElementsAre("d", "link", "d/tool"));
  EXPECT_EQ(stream.entries.at("d").header.kind, FillKind::kDirectory);
  EXPECT_EQ(stream.entries.at("d").header.mode, 0750U);
  EXPECT_EQ(stream.entries.at("link").header.kind, FillKind::kSymlink);
  EXPECT_EQ(stream.entries.at("link").text, "/etc/passwd");
  const Filled& tool = stream.entries.at("d/tool");
  EXPECT_EQ(tool.text, "#!/bin/sh\n");
  EXPECT_EQ(tool.header.tmpfs, 2U);
  EXPECT_EQ(tool.header.mode, 0755U);
  EXPECT_EQ(tool.header.mtime_seconds, 1234567890);
  EXPECT_EQ(tool.header.mtime_nanoseconds, 987654321U);
}

TEST(FillStream, NamesAFileOfSeveralNamesOnce) {
  const TemporaryTree tree;
  tree.write("a", "content");
  ASSERT_EQ(::link(tree.at("a").c_str(), tree.at("b").c_str()), 0);
  const Stream stream = stream_of(tree);
  EXPECT_EQ(stream.entries.at("a").text, "content");
  EXPECT_EQ(stream.entries.at("b").header.kind, FillKind::kHardLink);
  EXPECT_EQ(stream.entries.at("b").text, "a");
}

TEST(FillStream, SendsNeitherHolesNorPagesOfZeros) {
  const TemporaryTree tree;
  tree.write_sparse("hole", off_t{1} << 40);
  std::string mixed(40 * 4096, '\0');
  mixed[5 * 4096 + 17] = 'x';
  mixed.back() = 'y';
  tree.write("zeros", mixed);
  const Stream stream = stream_of(tree);
  EXPECT_EQ(stream.entries.at("hole").header.size, std::uint64_t{1} << 40);
  EXPECT_EQ(stream.entries.at("hole").sent, 0U);
  EXPECT_EQ(stream.entries.at("zeros").text, mixed);
  EXPECT_EQ(stream.entries.at("zeros").sent, 2U * 4096);
}

TEST(FillStream, CarriesFilesOfEverySizeAroundAPageAndAChunk) {
  const TemporaryTree tree;
  std::map<std::string, std::string> contents;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 65535U, 65536U, 65537U, 300'001U}) {
    std::string content(size, 'x');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>('a' + i % 23);
    tree.write(std::to_string(size), content);
    contents[std::to_string(size)] = std::move(content);
  }
  const Stream stream = stream_of(tree);
  for (const auto& [name, content] : contents) {
    EXPECT_EQ(stream.entries.at(name).text, content) << name;
  }
}

TEST(FillStream, OfATreeWithASpecialFileIsRefused) {
  const TemporaryTree tree;
  ASSERT_EQ(::mkfifo(tree.at("fifo").c_str(), 0644), 0);
  const UniqueFd memory(::memfd_create("stream", MFD_CLOEXEC));
  const auto written = write_fill_stream(tree.fd(), 2, memory.get());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().detail, "fifo is a special file");
}

TEST(FillStream, EndsWithAnErrorWhenTheFillerIsGone) {
  (void)::signal(SIGPIPE, SIG_IGN);
  const TemporaryTree tree;
  tree.write("big", std::string(1U << 20, 'x'));
  auto pipe = sys::pipe();
  ASSERT_TRUE(pipe);
  pipe->first.reset();
  const auto written = write_fill_stream(tree.fd(), 2, pipe->second.get());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().sys_errno, EPIPE);
}

}  // namespace
}  // namespace sbx::workspace::test
