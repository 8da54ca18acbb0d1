// Tests of the built sbxd: started by root, who becomes a user, and by an ordinary user.
//
// Each test has a daemon of its own: socket, state, records and cgroups are in a place that is
// removed at the end, and what a dead or ended daemon leaves there fails the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/integration/fixture.h"
#include "tests/support/leaks.h"
#include "tests/support/process.h"
#include "tests/support/raw_http.h"

namespace sbx::test {

using Json = nlohmann::json;

class DaemonTest : public ::testing::TestWithParam<Caller> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Starts sbxd and waits until it answers; a failure shows its log. `config`: lines of sbxd.toml
  // (the service user is added). Again after kill() or stop(): the same places.
  void start(const std::string& config = {});
  // Starts it and waits for its end: for what it refuses.
  [[nodiscard]] Finished start_and_fail(const std::string& config);
  // SIGKILL, reaped.
  void kill();
  // SIGTERM, and its end.
  Finished stop();
  void signal(int number) const { process_->signal(number); }
  // Waits for an end that comes by itself.
  Finished wait_for_end();

  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] std::string state_dir() const { return directory_->path() + "/state"; }
  [[nodiscard]] std::string audit_file() const { return state_dir() + "/audit/audit.jsonl"; }
  [[nodiscard]] std::string log() const;
  [[nodiscard]] bool is_user() const { return GetParam() == Caller::kUser; }
  // The program, with its options in front of `words`; environment for it.
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& words) const;
  [[nodiscard]] ProcessOptions options() const;
  [[nodiscard]] const TemporaryDirectory& directory() const { return *directory_; }

  [[nodiscard]] RawClient connect() const { return RawClient::to_unix(socket_); }
  // One request on a connection of its own.
  [[nodiscard]] RawReply ask(std::string_view method, std::string_view target,
                             std::string_view body = {}) const;
  // POST /v1/run; fails the test when the answer is not a result.
  [[nodiscard]] Json run(const Json& request) const;
  [[nodiscard]] Json run_python(const std::string& code) const;
  // The problem of an answer; fails the test when it is none.
  [[nodiscard]] static Json problem_of(const RawReply& reply);
  // A counter or gauge of /metrics by its name and labels; -1 when it is not there.
  [[nodiscard]] double metric(const std::string& name) const;
  // Waits until a metric has this value.
  [[nodiscard]] bool wait_for_metric(const std::string& name, double value) const;

  // What dead or ended daemons left of their runs.
  [[nodiscard]] Things left_over(std::chrono::seconds patience = std::chrono::seconds(5)) const;

 private:
  void write_configuration(const std::string& config);
  void spawn();
  [[nodiscard]] Things look() const;
  void remove_groups() const;

  std::optional<TemporaryDirectory> directory_;
  std::optional<UserGround> user_;
  std::optional<LeakCheck> check_;
  std::unique_ptr<Process> process_;
  std::string socket_;
  std::string program_;
};

// A request in the words of the API.
[[nodiscard]] Json python(const std::string& code);
// The events of a streamed answer's body, one a line.
[[nodiscard]] std::vector<Json> events_of(const std::string& body);

}  // namespace sbx::test
