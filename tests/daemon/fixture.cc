#include "tests/daemon/fixture.h"

#include <unistd.h>

#include <sstream>

namespace sbx::test {

void DaemonTest::SetUp() {
  ground_.emplace(GetParam());
  if (!ground_->trouble().empty()) GTEST_SKIP() << ground_->trouble();
  check_.emplace(is_user() ? kTestUser : ::geteuid());
}

void DaemonTest::TearDown() {
  if (!check_) return;
  if (ground_->is_running()) (void)stop();
  const Things left = ground_->left_over();
  EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left) << log();
  const Things leaked = check_->leaked();
  EXPECT_TRUE(leaked.empty()) << "left over:\n" << to_text(leaked);
}

void DaemonTest::start(const std::string& config) {
  ASSERT_TRUE(ground_->start(config)) << "sbxd does not answer; its log:\n" << log();
}

Json DaemonTest::run(const Json& request) const {
  const RawReply reply = ask("POST", "/v1/run", request.dump());
  Json result = Json::parse(reply.body, nullptr, false);
  EXPECT_EQ(reply.status, 200) << reply.body << log();
  EXPECT_TRUE(result.is_object() && result.contains("status")) << reply.body;
  return result.is_object() ? result : Json::object();
}

Json DaemonTest::run_python(const std::string& code) const {
  return run(python(code));
}

Json DaemonTest::problem_of(const RawReply& reply) {
  EXPECT_EQ(reply.field("Content-Type"), "application/problem+json") << reply.head << reply.body;
  Json problem = Json::parse(reply.body, nullptr, false);
  EXPECT_TRUE(problem.is_object() && problem.contains("code")) << reply.body;
  return problem.is_object() ? problem : Json::object();
}

Json python(const std::string& code) {
  return {{"language", "python"}, {"code", code}};
}

std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    events.push_back(Json::parse(line, nullptr, false));
    EXPECT_TRUE(events.back().is_object()) << line;
  }
  return events;
}

}  // namespace sbx::test
