// Bytes into the sandbox: whole, in order, without blocking, and quietly when nobody reads.
#include "runtime/supervise/pumps.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstring>

#include "runtime/base/sys.h"

namespace sbx::supervise {
namespace {

struct Pipe {
  UniqueFd read_end, write_end;
};

// As the supervisor makes it: its own end does not block. Here neither does.
Pipe make_pipe() {
  auto ends = sys::pipe(O_NONBLOCK);
  return ends ? Pipe{std::move(ends->first), std::move(ends->second)} : Pipe{};
}

// What is in the pipe now; `ended` when its last writer is gone.
std::string drain(int fd, bool& ended) {
  std::string all;
  std::array<char, 65536> chunk;
  for (;;) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    ended = got == 0;
    if (got <= 0) return all;
    all.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

class Pumps : public ::testing::Test {
 protected:
  void SetUp() override {
    (void)::signal(SIGPIPE, SIG_IGN);
    pipe_ = make_pipe();
  }
  Pipe pipe_;
  bool ended_ = false;
};

using Fill = Pumps;
using Stdin = Pumps;

TEST_F(Fill, HandsThePipeOverForWhatFollowsItsEntries) {
  std::vector<plan::FillEntry> entries;
  entries.push_back({.tmpfs = 3, .path = "main.py", .content = "x"});
  UniqueFd rest;
  FillPump pump(std::move(pipe_.write_end), &entries,
                [&rest](UniqueFd pipe) { rest = std::move(pipe); });
  pump.step();
  EXPECT_EQ(pump.fd(), -1);
  ASSERT_TRUE(rest);
  const std::string stream = drain(pipe_.read_end.get(), ended_);
  EXPECT_FALSE(ended_) << "the end is the other's to write";
  EXPECT_EQ(stream.size(), sizeof(plan::FillHeader) + sizeof "main.py" - 1 + 1);
}

TEST_F(Fill, WhoseReaderIsGoneHandsNothingOver) {
  std::vector<plan::FillEntry> entries;
  entries.push_back({.path = "main.py", .content = "x"});
  bool handed = false;
  FillPump pump(std::move(pipe_.write_end), &entries, [&handed](UniqueFd) { handed = true; });
  pipe_.read_end.reset();
  pump.step();
  EXPECT_EQ(pump.fd(), -1);
  EXPECT_FALSE(handed);
}

// One entry of the stream, as sbx-init's filler reads it.
struct Entry {
  plan::FillHeader header;
  std::string path, content;
};

std::vector<Entry> parse(std::string_view stream) {
  std::vector<Entry> entries;
  while (stream.size() >= sizeof(plan::FillHeader)) {
    Entry entry;
    std::memcpy(&entry.header, stream.data(), sizeof entry.header);
    stream.remove_prefix(sizeof entry.header);
    entry.path = stream.substr(0, entry.header.path_size);
    stream.remove_prefix(entry.path.size());
    entry.content = stream.substr(0, static_cast<std::size_t>(entry.header.size));
    stream.remove_prefix(entry.content.size());
    entries.push_back(std::move(entry));
  }
  EXPECT_TRUE(stream.empty());
  return entries;
}

TEST_F(Fill, OfNothingIsTheEndAlone) {
  const std::vector<plan::FillEntry> none;
  FillPump pump(std::move(pipe_.write_end), &none);
  pump.step();
  EXPECT_EQ(pump.fd(), -1);
  const auto entries = parse(drain(pipe_.read_end.get(), ended_));
  EXPECT_TRUE(ended_);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].header.kind, plan::FillKind::kEnd);
}

TEST_F(Fill, SendsEachEntryWithItsKindModeAndPlace) {
  const std::vector<plan::FillEntry> files{
      {.tmpfs = 3, .mode = 0444, .path = "main.py", .content = "print(1)"},
      {.tmpfs = 4, .kind = plan::FillKind::kDirectory, .mode = 0755, .path = "d", .content = {}},
      {.tmpfs = 4, .mode = 0555, .path = "d/empty", .content = {}}};
  FillPump pump(std::move(pipe_.write_end), &files);
  pump.step();
  const auto entries = parse(drain(pipe_.read_end.get(), ended_));
  ASSERT_EQ(entries.size(), 4U);
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(entries[i].header.kind, files[i].kind);
    EXPECT_EQ(entries[i].header.tmpfs, files[i].tmpfs);
    EXPECT_EQ(entries[i].header.mode, files[i].mode);
    EXPECT_EQ(entries[i].path, files[i].path);
    EXPECT_EQ(entries[i].content, files[i].content);
  }
  EXPECT_EQ(entries[3].header.kind, plan::FillKind::kEnd);
}

TEST_F(Fill, LargerThanThePipeGoesOnWhereItStopped) {
  std::string big(1'000'003, '\0');
  for (std::size_t i = 0; i < big.size(); ++i) big[i] = static_cast<char>(i * 31 >> 3);
  const std::vector<plan::FillEntry> files{{.tmpfs = 4, .path = "a", .content = big},
                                           {.tmpfs = 4, .path = "b", .content = big}};
  FillPump pump(std::move(pipe_.write_end), &files);
  std::string stream;
  int steps = 0;
  for (; pump.fd() >= 0 && steps < 1000; ++steps) {
    pump.step();
    stream += drain(pipe_.read_end.get(), ended_);
  }
  stream += drain(pipe_.read_end.get(), ended_);
  EXPECT_GT(steps, 2);
  EXPECT_TRUE(ended_);
  const auto entries = parse(stream);
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].content, big);
  EXPECT_EQ(entries[1].content, big);
}

TEST_F(Fill, EndsQuietlyWhenTheReaderIsGone) {
  const std::vector<plan::FillEntry> files{{.path = "a", .content = "x"}};
  FillPump pump(std::move(pipe_.write_end), &files);
  pipe_.read_end.reset();
  pump.step();
  EXPECT_EQ(pump.fd(), -1);
  pump.step();  // and again: nothing
}

TEST_F(Fill, WithoutAPipeDoesNothing) {
  const std::vector<plan::FillEntry> files{{.path = "a", .content = "x"}};
  FillPump pump(UniqueFd(), &files);
  pump.step();
  EXPECT_EQ(pump.fd(), -1);
}

TEST_F(Stdin, OfATextIsTheTextAndThenTheEnd) {
  StdinPump pump(std::move(pipe_.write_end), "hello", -1);
  EXPECT_GE(pump.sink_fd(), 0);
  EXPECT_EQ(pump.source_fd(), -1);
  pump.write_some();
  EXPECT_EQ(pump.sink_fd(), -1);
  EXPECT_EQ(drain(pipe_.read_end.get(), ended_), "hello");
  EXPECT_TRUE(ended_);
}

TEST_F(Stdin, OfAnEmptyTextEndsAtOnce) {
  const StdinPump pump(std::move(pipe_.write_end), "", -1);
  EXPECT_EQ(drain(pipe_.read_end.get(), ended_), "");
  EXPECT_TRUE(ended_);
}

TEST_F(Stdin, OfALongTextWaitsForTheReader) {
  const std::string big(300'000, 'x');
  StdinPump pump(std::move(pipe_.write_end), big, -1);
  std::string got;
  while (pump.sink_fd() >= 0) {
    pump.write_some();
    got += drain(pipe_.read_end.get(), ended_);
  }
  got += drain(pipe_.read_end.get(), ended_);
  EXPECT_EQ(got, big);
  EXPECT_TRUE(ended_);
}

TEST_F(Stdin, OfASourceIsReadOnlyWhenWhatWasReadIsWritten) {
  Pipe source = make_pipe();
  StdinPump pump(std::move(pipe_.write_end), std::nullopt, source.read_end.get());
  EXPECT_EQ(pump.sink_fd(), -1);
  EXPECT_EQ(pump.source_fd(), source.read_end.get());
  ASSERT_TRUE(sys::write_all(source.write_end.get(), "first"));
  pump.read_some();
  EXPECT_EQ(drain(pipe_.read_end.get(), ended_), "first");
  EXPECT_FALSE(ended_);
  // A reader that does not read: the source is left alone.
  const std::string chunk(60'000, 'y');
  for (int i = 0; i < 3 && pump.source_fd() >= 0; ++i) {
    ASSERT_TRUE(sys::write_all(source.write_end.get(), chunk));
    pump.read_some();
  }
  EXPECT_EQ(pump.source_fd(), -1);
  EXPECT_GE(pump.sink_fd(), 0);
}

TEST_F(Stdin, OfASourceEndsWithIt) {
  Pipe source = make_pipe();
  StdinPump pump(std::move(pipe_.write_end), std::nullopt, source.read_end.get());
  ASSERT_TRUE(sys::write_all(source.write_end.get(), "last"));
  source.write_end.reset();
  pump.read_some();
  pump.read_some();
  EXPECT_EQ(pump.source_fd(), -1);
  EXPECT_EQ(drain(pipe_.read_end.get(), ended_), "last");
  EXPECT_TRUE(ended_);
}

TEST_F(Stdin, OfASourceWithNothingNowGoesOnLater) {
  Pipe source = make_pipe();
  StdinPump pump(std::move(pipe_.write_end), std::nullopt, source.read_end.get());
  pump.read_some();  // EAGAIN
  EXPECT_EQ(pump.source_fd(), source.read_end.get());
  EXPECT_EQ(drain(pipe_.read_end.get(), ended_), "");
  EXPECT_FALSE(ended_);
}

TEST_F(Stdin, IsLeftAloneOnceThePayloadClosedIt) {
  Pipe source = make_pipe();
  StdinPump pump(std::move(pipe_.write_end), std::nullopt, source.read_end.get());
  pipe_.read_end.reset();
  ASSERT_TRUE(sys::write_all(source.write_end.get(), "x"));
  pump.read_some();
  EXPECT_EQ(pump.sink_fd(), -1);
  EXPECT_EQ(pump.source_fd(), -1);
}

}  // namespace
}  // namespace sbx::supervise
