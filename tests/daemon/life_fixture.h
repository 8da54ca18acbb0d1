// What the tests of sbxd's life share: requests that go on, and a look at its processes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/fixture.h"

namespace sbx::test {

inline const std::string kSleep = R"({"argv":["/bin/sleep","1000"]})";

inline std::string status_field(pid_t pid, const std::string& name) {
  const std::string text = read_text("/proc/" + std::to_string(pid) + "/status");
  const std::size_t at = text.find("\n" + name + ":\t");
  if (at == std::string::npos) return "?";
  const std::size_t begin = at + name.size() + 3;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// The children of a process, by their names.
inline std::vector<std::pair<std::string, pid_t>> children_of(pid_t pid) {
  std::vector<std::pair<std::string, pid_t>> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const pid_t child = std::stoi(name);
    if (status_field(child, "PPid") != std::to_string(pid)) continue;
    std::string command = read_text(entry.path() / "comm");
    while (!command.empty() && command.back() == '\n') command.pop_back();
    children.emplace_back(std::move(command), child);
  }
  return children;
}

class DaemonLifeTest : public DaemonTest {
 protected:
  RawClient begin(const std::string& body) {
    RawClient client = connect();
    EXPECT_TRUE(client.send(http_request("POST", "/v1/run", body)));
    return client;
  }
  [[nodiscard]] bool wait_for_health(int status) const {
    for (const auto end = std::chrono::steady_clock::now() + kHttpPatience;
         std::chrono::steady_clock::now() < end;) {
      if (ask("GET", "/healthz").status == status) return true;
    }
    return false;
  }
};

}  // namespace sbx::test
