// sbx-bench-share: times requests to agentd, with a relay before its sbxd (bench/agent/share.py).
//
// It says "listening" when agentd can be started with the relay's socket, reads the path of
// agentd's own, and prints JSON: the milliseconds of each round. Exit: 0 measured; 1 not; 2 usage.
#include <fmt/core.h>
#include <sys/socket.h>

#include <charconv>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/src/share_relay.h"
#include "bench/src/timed.h"
#include "tests/support/raw_http.h"

namespace sbx::bench {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr const char* kUsage = "usage: sbx-bench-share SBXD-SOCKET RELAY-SOCKET ROUNDS BODY\n";
constexpr unsigned kWarmUps = 5;

// From the submission to the end of the event stream, which ends when the record is stored.
Result<double> time_request(test::RawClient& agentd, const std::string& submission) {
  const Clock::time_point began = Clock::now();
  const test::RawReply taken = agentd.ask(submission);
  const std::string location = taken.field("Location");
  if (taken.status != 202 || taken.cut || location.empty()) {
    return invalid("agentd did not take the request: " + taken.head + taken.body);
  }
  const test::RawReply events = agentd.ask(test::http_request("GET", location + "/events"));
  const double took = std::chrono::duration<double, std::milli>(Clock::now() - began).count();
  const bool succeeded = events.body.find("\"succeeded\"") != std::string::npos;
  if (events.status == 200 && !events.cut && succeeded) return took;
  return invalid("the request did not succeed: " + events.head + events.body);
}

// What all threads of him who listens there have used; nothing where the kernel does not tell.
std::optional<double> cpu_milliseconds(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  double sum = 0;
  std::error_code error;
  const std::string threads = fmt::format("/proc/{}/task", peer.pid);
  for (const auto& thread : std::filesystem::directory_iterator(threads, error)) {
    std::uint64_t nanoseconds = 0;
    if (!(std::ifstream(thread.path() / "schedstat") >> nanoseconds)) return std::nullopt;
    sum += static_cast<double>(nanoseconds) / 1e6;
  }
  return error ? std::nullopt : std::optional(sum);
}

Result<Json> measure(ShareRelay& relay, test::RawClient& agentd, unsigned rounds,
                     const std::string& body) {
  const std::vector<std::string> bare{"/usr/bin/python3", "-I", "-S", "-c", "pass"};
  const std::string submission =
      test::http_request("POST", "/v1/requests", body, "Content-Type: application/json\r\n");
  Json samples;
  std::optional<double> before;
  for (unsigned round = 0; round < kWarmUps + rounds; ++round) {
    if (round == kWarmUps) before = cpu_milliseconds(agentd.fd());
    SBX_ASSIGN(const double alone, time_process(bare, "/dev/null"));
    SBX_ASSIGN(const double whole, time_request(agentd, submission));
    SBX_ASSIGN(const Taken taken, relay.taken());
    if (round < kWarmUps) continue;
    samples["bare"].push_back(alone);
    samples["whole"].push_back(whole);
    samples["sbxd"].push_back(taken.sbxd);
    samples["relay"].push_back(taken.relay);
  }
  const std::optional<double> after = cpu_milliseconds(agentd.fd());
  samples["agentd_cpu"] = before && after ? Json((*after - *before) / rounds) : Json();
  return samples;
}

Result<void> run(char** words, unsigned rounds) {
  SBX_ASSIGN(ShareRelay relay, ShareRelay::start(words[1], words[0]));
  std::cout << "listening" << std::endl;
  std::string path;
  if (!std::getline(std::cin, path)) return invalid("stdin does not name agentd's socket");
  test::RawClient agentd = test::RawClient::to_unix(path);
  if (!agentd.connected()) return sys_error("connect", path);
  SBX_ASSIGN(const Json samples, measure(relay, agentd, rounds, words[3]));
  std::cout << samples << std::endl;
  return {};
}

}  // namespace
}  // namespace sbx::bench

int main(int argc, char** argv) {
  unsigned rounds = 0;
  const std::string_view number = argc == 5 ? argv[3] : "";
  const auto read = std::from_chars(number.data(), number.data() + number.size(), rounds);
  if (rounds == 0 || read.ptr != number.data() + number.size()) {
    (void)std::fputs(sbx::bench::kUsage, stderr);
    return 2;
  }
  try {
    const auto done = sbx::bench::run(argv + 1, rounds);
    if (done) return 0;
    fmt::print(stderr, "share: {}\n", to_string(done.error()));
  } catch (const std::exception& error) {
    fmt::print(stderr, "share: {}\n", error.what());
  }
  return 1;
}
