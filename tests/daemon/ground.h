// DaemonGround: a place for one sbxd, and that sbxd. Shared by the tests and by bench/.
//
// Socket, state, records and cgroups are in a place of their own, removed at the end. As kSelf the
// caller starts it (root's becomes a user), as kUser an ordinary user does, as in DaemonTest.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/integration/fixture.h"
#include "tests/support/leaks.h"
#include "tests/support/process.h"
#include "tests/support/raw_http.h"

namespace sbx::test {

class DaemonGround {
 public:
  explicit DaemonGround(Caller caller);
  DaemonGround(const DaemonGround&) = delete;
  DaemonGround& operator=(const DaemonGround&) = delete;
  ~DaemonGround();

  // Empty, or why no sbxd can run here.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

  // Starts sbxd and waits until it answers; false with its log otherwise. `config`: lines of
  // sbxd.toml (the user it becomes is added). Again after kill() or stop(): the same places.
  [[nodiscard]] bool start(const std::string& config = {});
  // Lines of runtime.toml for the starts that follow, beside those for the ground's own places.
  void set_runtime(std::string lines) { runtime_ = std::move(lines); }
  // A command of the shell, such as ulimit, before the program in the starts that follow.
  void set_limits(std::string limits) { limits_ = std::move(limits) + "; "; }
  // What start() does first: both configuration files.
  void write_configuration(const std::string& config);
  // Starts it and waits for its end: for what it refuses.
  [[nodiscard]] Finished start_and_fail(const std::string& config);
  [[nodiscard]] bool is_running() const { return process_ != nullptr; }
  void signal(int number) const { process_->signal(number); }
  void kill();      // SIGKILL, reaped
  Finished stop();  // SIGTERM, and its end
  Finished wait_for_end();

  [[nodiscard]] pid_t pid() const { return process_->pid(); }
  [[nodiscard]] const std::string& socket() const { return socket_; }
  [[nodiscard]] std::string state_dir() const { return directory_.path() + "/state"; }
  [[nodiscard]] std::string log() const;
  [[nodiscard]] const TemporaryDirectory& directory() const { return directory_; }
  // Whom the daemon is, or becomes.
  [[nodiscard]] uid_t service_uid() const;
  // The program, with its configuration in front of `words`; and the environment for it.
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& words) const;
  [[nodiscard]] ProcessOptions options() const;

  [[nodiscard]] RawClient connect() const { return RawClient::to_unix(socket_); }
  // One request on a connection of its own.
  [[nodiscard]] RawReply ask(std::string_view method, std::string_view target,
                             std::string_view body = {}) const;
  // A counter or gauge of /metrics by its name and labels; -1 when it is not there.
  [[nodiscard]] double metric(const std::string& name) const;
  // Waits until a metric has this value.
  [[nodiscard]] bool wait_for_metric(const std::string& name, double value) const;

  // What is there of runs: records, and groups. Of a daemon that ended or died: nothing, soon.
  [[nodiscard]] Things runs() const;
  [[nodiscard]] Things left_over(std::chrono::seconds patience = std::chrono::seconds(5)) const;

 private:
  void spawn();
  void remove_groups() const;

  Caller caller_;
  TemporaryDirectory directory_;
  std::optional<UserGround> user_;
  std::string trouble_;
  std::string program_;
  std::string runtime_;
  std::string limits_;
  std::string socket_;
  std::unique_ptr<Process> process_;
};

}  // namespace sbx::test
