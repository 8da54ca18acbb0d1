// Tests of the built sbxd: started by root, who becomes a user, and by an ordinary user. Each has a
// daemon of its own; what a dead or ended one leaves fails the test.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/daemon/ground.h"
#include "tests/integration/fixture.h"
#include "tests/support/leaks.h"

namespace sbx::test {

using Json = nlohmann::json;

class DaemonTest : public ::testing::TestWithParam<Caller> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Starts sbxd and waits until it answers; a failure shows its log. `config`: lines of sbxd.toml.
  // Again after kill() or stop(): the same places.
  void start(const std::string& config = {});
  // Starts it and waits for its end: for what it refuses.
  [[nodiscard]] Finished start_and_fail(const std::string& config) {
    return ground_->start_and_fail(config);
  }
  void kill() { ground_->kill(); }
  Finished stop() { return ground_->stop(); }
  Finished wait_for_end() { return ground_->wait_for_end(); }
  void signal(int number) const { ground_->signal(number); }

  [[nodiscard]] DaemonGround& ground() { return *ground_; }
  [[nodiscard]] const DaemonGround& ground() const { return *ground_; }
  [[nodiscard]] pid_t pid() const { return ground_->pid(); }
  [[nodiscard]] const std::string& socket() const { return ground_->socket(); }
  [[nodiscard]] std::string state_dir() const { return ground_->state_dir(); }
  [[nodiscard]] std::string audit_file() const { return state_dir() + "/audit/audit.jsonl"; }
  [[nodiscard]] std::string log() const { return ground_->log(); }
  [[nodiscard]] bool is_user() const { return GetParam() == Caller::kUser; }
  [[nodiscard]] const TemporaryDirectory& directory() const { return ground_->directory(); }

  [[nodiscard]] RawClient connect() const { return ground_->connect(); }
  // One request on a connection of its own.
  [[nodiscard]] RawReply ask(std::string_view method, std::string_view target,
                             std::string_view body = {}) const {
    return ground_->ask(method, target, body);
  }
  // POST /v1/run; fails the test when the answer is not a result.
  [[nodiscard]] Json run(const Json& request) const;
  [[nodiscard]] Json run_python(const std::string& code) const;
  // The problem of an answer; fails the test when it is none.
  [[nodiscard]] static Json problem_of(const RawReply& reply);
  [[nodiscard]] double metric(const std::string& name) const { return ground_->metric(name); }
  [[nodiscard]] bool wait_for_metric(const std::string& name, double value) const {
    return ground_->wait_for_metric(name, value);
  }

 private:
  std::optional<DaemonGround> ground_;
  std::optional<LeakCheck> check_;
};

// A request in the words of the API.
[[nodiscard]] Json python(const std::string& code);
// The events of a streamed answer's body, one a line.
[[nodiscard]] std::vector<Json> events_of(const std::string& body);

}  // namespace sbx::test
