#include "runtime/cli/write_out.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "runtime/base/sys.h"

namespace sbx::cli {
namespace {

TEST(WriteOut, WaitsForASlowReaderOfANonblockingPipe) {
  auto ends = sys::pipe(O_NONBLOCK);
  ASSERT_TRUE(ends);
  ASSERT_TRUE(sys::set_nonblocking(ends->first.get(), false));
  const std::string sent(1024 * 1024, 'x');  // more than a pipe holds
  std::string read;
  std::thread reader([&] {
    if (auto all = sys::read_all(ends->first.get(), sent.size())) read = *std::move(all);
  });
  const Result<void> written = write_out(ends->second.get(), sent);
  ends->second = UniqueFd();
  reader.join();
  EXPECT_TRUE(written);
  EXPECT_EQ(read.size(), sent.size());
}

TEST(WriteOut, AReaderThatLeftIsAnError) {
  ASSERT_NE(std::signal(SIGPIPE, SIG_IGN), SIG_ERR);
  auto ends = sys::pipe(O_NONBLOCK);
  ASSERT_TRUE(ends);
  ends->first = UniqueFd();
  const Result<void> written = write_out(ends->second.get(), "x");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().sys_errno, EPIPE);
}

}  // namespace
}  // namespace sbx::cli
