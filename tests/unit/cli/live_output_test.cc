#include "runtime/cli/live_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "runtime/base/sys.h"

namespace sbx::cli {
namespace {

struct Pipe {
  UniqueFd reader;
  UniqueFd writer;

  Pipe() {
    auto ends = sys::pipe();
    EXPECT_TRUE(ends.has_value());
    reader = std::move(ends->first);
    writer = std::move(ends->second);
  }
  std::string rest() {
    writer.reset();
    return *sys::read_all(reader.get(), 1 << 20);
  }
};

TEST(LiveOutput, PassesBytesOnAsTheyAre) {
  Pipe pipe;
  LiveOutput output(pipe.writer.get(), false);
  const std::string bytes("a\0\xff\x1b[31m\n", 9);
  output.append(bytes);
  EXPECT_TRUE(output.flush());
  EXPECT_EQ(output.appended(), bytes.size());
  EXPECT_EQ(pipe.rest(), bytes);
}

TEST(LiveOutput, EscapesControlsForATerminal) {
  Pipe pipe;
  LiveOutput output(pipe.writer.get(), true);
  output.append("red \x1b[31m, tab\t, end\n");
  EXPECT_TRUE(output.flush());
  const std::string shown = pipe.rest();
  EXPECT_EQ(shown.find('\x1b'), std::string::npos);
  EXPECT_NE(shown.find("tab\t, end\n"), std::string::npos);
}

TEST(LiveOutput, ACharacterCutByTheReadIsShownWhole) {
  Pipe pipe;
  LiveOutput output(pipe.writer.get(), true);
  output.append("\xe2\x82");
  output.append("\xac.");
  EXPECT_TRUE(output.flush());
  EXPECT_EQ(pipe.rest(), "\xe2\x82\xac.");
}

TEST(LiveOutput, AnUnfinishedCharacterAtTheEndIsShownAsBytes) {
  Pipe pipe;
  LiveOutput output(pipe.writer.get(), true);
  output.append("x\xe2\x82");
  EXPECT_TRUE(output.flush());
  EXPECT_EQ(pipe.rest(), "x\\xe2\\x82");
}

TEST(LiveOutput, UnfinishedTailCountsOnlyBeginnings) {
  EXPECT_EQ(unfinished_tail(""), 0U);
  EXPECT_EQ(unfinished_tail("abc"), 0U);
  EXPECT_EQ(unfinished_tail("a\xc3"), 1U);
  EXPECT_EQ(unfinished_tail("\xf0\x9f\x98"), 3U);
  EXPECT_EQ(unfinished_tail("\xf0\x9f\x98\x80"), 0U);
  EXPECT_EQ(unfinished_tail("\x80\x80\x80\x80"), 0U);
}

TEST(LiveOutput, AppendNeverBlocksOnAFullPipe) {
  Pipe pipe;
  LiveOutput output(pipe.writer.get(), false);
  const std::string much(256 * 1024, 'x');
  output.append(much);
  EXPECT_TRUE(output.pending());
}

TEST(LiveOutput, AReaderThatLeftIsAnErrorOnceAndQuietAfterwards) {
  ASSERT_NE(::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  Pipe pipe;
  pipe.reader.reset();
  LiveOutput output(pipe.writer.get(), false);
  output.append("x");
  output.write_some();
  EXPECT_EQ(output.error(), EPIPE);
  output.append("more");
  EXPECT_FALSE(output.pending());
  EXPECT_FALSE(output.flush());
}

TEST(LiveOutput, KnowsWhetherALineIsOpen) {
  Pipe pipe;
  LiveOutput output(pipe.writer.get(), false);
  EXPECT_TRUE(output.at_line_start());
  output.append("no end");
  EXPECT_FALSE(output.at_line_start());
  output.append("\n");
  EXPECT_TRUE(output.at_line_start());
}

}  // namespace
}  // namespace sbx::cli
