// A daemon with sessions, and the calls on them in a few words.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/daemon/fixture.h"

namespace sbx::test {

class SessionTest : public DaemonTest {
 protected:
  void SetUp() override {
    DaemonTest::SetUp();
    if (!IsSkipped()) start(config());
  }
  // The host's /usr as root: these tests are about files, and /bin/sh is all they need.
  [[nodiscard]] virtual std::string config() const {
    return "image = \"host\"\n[ceilings]\nwork = \"2G\"\n";
  }

  [[nodiscard]] Json create(const Json& wish = Json::object()) const {
    const RawReply reply = ask("POST", "/v1/sessions", wish.dump());
    EXPECT_EQ(reply.status, 201) << reply.body << log();
    return Json::parse(reply.body, nullptr, false);
  }
  [[nodiscard]] std::string create_id(const Json& wish = Json::object()) const {
    return create(wish).value("id", "");
  }
  static std::string target(const std::string& id, const std::string& rest = "") {
    return "/v1/sessions/" + id + rest;
  }
  static Json shell(const std::string& script) { return {{"argv", {"/bin/sh", "-c", script}}}; }
  [[nodiscard]] RawReply ask_run(const std::string& id, const Json& request) const {
    return ask("POST", target(id, "/run"), request.dump());
  }
  // A run that must begin.
  [[nodiscard]] Json run_in(const std::string& id, const std::string& script) const {
    const RawReply reply = ask_run(id, shell(script));
    EXPECT_EQ(reply.status, 200) << reply.body << log();
    Json result = Json::parse(reply.body, nullptr, false);
    EXPECT_TRUE(result.is_object() && result.contains("workspace")) << reply.body;
    return result.is_object() ? result : Json::object();
  }
  [[nodiscard]] RawReply put(const std::string& id, const std::string& path,
                             std::string_view content) const {
    return ask("PUT", target(id, "/files/" + path), content);
  }
  [[nodiscard]] RawReply get(const std::string& id, const std::string& path) const {
    return ask("GET", target(id, "/files/" + path));
  }
  [[nodiscard]] static std::string code_of(const RawReply& reply) {
    const Json problem = problem_of(reply);
    return problem.is_object() ? problem.value("code", "") : "";
  }
  // What lies beside the trees and tombstones: leftovers of the daemon's own work.
  [[nodiscard]] std::vector<std::string> leftovers() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(state_dir() + "/sessions")) {
      const std::string name = entry.path().filename();
      if (name == ".lock" || name == "expired") continue;
      if (name[0] == '.') found.push_back(name);
      if (name[0] == '.' || !entry.is_directory()) continue;
      for (const auto& inner : std::filesystem::directory_iterator(entry.path())) {
        const std::string beside = inner.path().filename();
        if (beside != "tree" && beside != "session.json") found.push_back(name + "/" + beside);
      }
    }
    return found;
  }
  // Waits for removals that go on behind an answer.
  [[nodiscard]] bool wait_for_no_leftovers() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!leftovers().empty() && std::chrono::steady_clock::now() < deadline) {
      (void)ask("GET", "/healthz");
    }
    return leftovers().empty();
  }
  // The most memory that the daemon ever had.
  [[nodiscard]] std::uint64_t peak_bytes() const {
    const std::string status = read_text("/proc/" + std::to_string(pid()) + "/status");
    const std::size_t at = status.find("VmHWM:");
    return at == std::string::npos ? 0 : std::stoull(status.substr(at + 6)) * 1024;
  }
};

}  // namespace sbx::test
