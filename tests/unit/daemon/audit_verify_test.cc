#include "runtime/daemon/audit_verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "runtime/daemon/audit_chain.h"
#include "runtime/daemon/audit_log.h"
#include "tests/support/process.h"

namespace sbx::daemon {
namespace {

using ::testing::HasSubstr;

class AuditVerify : public ::testing::Test {
 protected:
  struct Answer {
    int exit_code = 0;
    std::string out, error;
  };
  static Answer verify(const std::string& path) {
    Arguments arguments;
    arguments.audit_file = path;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int exit_code = audit_verify(arguments);
    std::fflush(stdout);
    return {exit_code, ::testing::internal::GetCapturedStdout(),
            ::testing::internal::GetCapturedStderr()};
  }
  test::TemporaryDirectory directory_;
};

TEST_F(AuditVerify, AFileIsIntactOrNot) {
  const std::string line = audit_line(std::nullopt, "2026-01-01T00:00:00.000Z", R"("event":"run")");
  const std::string path = directory_.write("audit.jsonl", line + "\n");
  (void)directory_.write("audit.jsonl.head", head_text(link_of(1, line)));
  const Answer right = verify(path);
  EXPECT_EQ(right.exit_code, 0);
  EXPECT_THAT(right.out, HasSubstr("1 lines, intact"));
  (void)directory_.write("audit.jsonl", "");
  EXPECT_EQ(verify(path).exit_code, 1) << "the head knows a line";
}

TEST_F(AuditVerify, WhatIsNoFileIsNotIntactAndNotWaitedFor) {
  const std::string fifo = directory_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const std::string& path : {directory_.path(), fifo, std::string("/dev/null")}) {
    const Answer answer = verify(path);
    EXPECT_EQ(answer.exit_code, 1) << path;
    EXPECT_EQ(answer.out, "") << path;
    EXPECT_THAT(answer.error, HasSubstr(path + " is not a regular file"));
    EXPECT_THAT(answer.error, HasSubstr("fix: "));
  }
  EXPECT_EQ(verify(directory_.path() + "/missing").exit_code, 1);
}

TEST_F(AuditVerify, IsOfOneMomentWhileLinesAreAppended) {
  auto log = AuditLog::open(directory_.path());
  ASSERT_TRUE(log);
  std::atomic<bool> over{false};
  std::thread writer([&] {
    while (!over) {
      (void)log->append(R"("event":"run")");
      ::usleep(100);
    }
  });
  for (int i = 0; i < 20; ++i) {
    const Answer answer = verify(directory_.path() + "/audit.jsonl");
    EXPECT_EQ(answer.exit_code, 0) << answer.out << answer.error;
  }
  over = true;
  writer.join();
}

TEST_F(AuditVerify, AHeadThatIsNoFileIsAnError) {
  const std::string path = directory_.write("audit.jsonl", "");
  std::filesystem::create_directory(path + ".head");
  EXPECT_EQ(verify(path).exit_code, 1);
}

}  // namespace
}  // namespace sbx::daemon
