// SIGKILL of sbxd at random moments while sessions are saved and written to: what was acknowledged
// is there, no tree is torn, nothing is left over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include "tests/daemon/session_fixture.h"

namespace sbx::test {
namespace {

class SessionKills : public SessionTest {
 protected:
  // Lets the daemon work for so long, unless it ends by itself, which it must not.
  void let_work(long microseconds) const {
    const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid(), 0)));
    pollfd end{pidfd.get(), POLLIN, 0};
    const timespec patience{0, microseconds * 1000};
    EXPECT_EQ(::ppoll(&end, 1, &patience, nullptr), 0) << "sbxd ended: " << log();
  }
};
SBX_AS_BOTH_CALLERS(SessionKills);

// One client: in turn a run that writes a number into every file, and an upload. Notes what was
// acknowledged.
class Client {
 public:
  Client(const DaemonGround& ground, std::string id, int from)
      : ground_(ground), id_(std::move(id)), run_(from), upload_(from) {}

  void work(const std::atomic<bool>& over) {
    while (!over) {
      const std::string number = std::to_string(run_ + 1);
      const Json request = {
          {"argv",
           {"/bin/sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9; do echo " + number + " > n$i; done"}}};
      const RawReply reply = ground_.ask("POST", "/v1/sessions/" + id_ + "/run", request.dump());
      if (!is_saved(reply)) return;
      ++run_;
      const std::string target = "/v1/sessions/" + id_ + "/files/up/" + std::to_string(upload_ + 1);
      if (ground_.ask("PUT", target, std::string(10'000, 'u')).status != 201) return;
      ++upload_;
    }
  }
  [[nodiscard]] const std::string& id() const { return id_; }
  [[nodiscard]] int run() const { return run_; }
  [[nodiscard]] int upload() const { return upload_; }

 private:
  static bool is_saved(const RawReply& reply) {
    if (reply.status != 200 || reply.cut) return false;
    const Json result = Json::parse(reply.body, nullptr, false);
    return result.is_object() && result.contains("workspace") &&
           result["workspace"]["saved"] == true;
  }

  const DaemonGround& ground_;
  std::string id_;
  int run_;     // the last number that was saved for certain
  int upload_;  // the last upload that was acknowledged
};

TEST_P(SessionKills, LoseNothingThatWasAcknowledgedAndTearNoTree) {
  constexpr int kRounds = 50;
  std::mt19937 random(20240503);  // fixed: a failure can be had again
  std::vector<std::pair<std::string, std::pair<int, int>>> sessions;
  for (int i = 0; i < 2; ++i) sessions.emplace_back(create_id(), std::pair{0, 0});
  int acknowledged = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::atomic<bool> over = false;
    std::vector<std::unique_ptr<Client>> clients;
    std::vector<std::thread> threads;
    for (const auto& [id, counts] : sessions) {
      clients.push_back(
          std::make_unique<Client>(ground(), id, std::max(counts.first, counts.second)));
      threads.emplace_back([client = clients.back().get(), &over] { client->work(over); });
    }
    let_work(static_cast<long>(random() % 400'000));
    kill();
    over = true;
    for (std::thread& thread : threads) thread.join();
    const Things of_the_dead = ground().runs();
    const auto restarted = std::chrono::steady_clock::now();
    start(config());
    EXPECT_LT(std::chrono::steady_clock::now() - restarted, std::chrono::seconds(5));
    for (const std::string& thing : ground().runs())
      EXPECT_EQ(of_the_dead.count(thing), 0U) << thing;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      const Client& client = *clients[i];
      const int before = std::max(sessions[i].second.first, sessions[i].second.second);
      const Json seen =
          run_in(client.id(), "cat n* 2>/dev/null; ls up 2>/dev/null | sort -n | tail -1");
      std::istringstream lines(seen["stdout"].get<std::string>());
      std::vector<int> numbers;
      for (int number = 0; lines >> number;) numbers.push_back(number);
      if (client.run() > before) {
        ASSERT_GE(numbers.size(), 10U) << seen;
        const std::set<int> in_files(numbers.begin(), numbers.begin() + 10);
        EXPECT_EQ(in_files.size(), 1U) << "a torn tree: " << seen["stdout"];
        EXPECT_GE(*in_files.begin(), client.run());
        EXPECT_LE(*in_files.begin(), client.run() + 1);
      }
      if (client.upload() > before) {
        EXPECT_GE(numbers.back(), client.upload()) << seen["stdout"];
      }
      acknowledged += client.run() - before;
      const int highest = numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
      sessions[i].second = {highest, highest};
    }
    EXPECT_TRUE(wait_for_no_leftovers());
  }
  EXPECT_GT(acknowledged, 0) << "the daemon was killed before it had saved anything";
}

}  // namespace
}  // namespace sbx::test
