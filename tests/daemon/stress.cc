#include "tests/daemon/stress.h"

#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

namespace sbx::test {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxComplaints = 10;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// The first few, from any thread.
class Complaints {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    if (list_.size() < kMaxComplaints) list_.push_back(std::move(text));
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(list_); }

 private:
  std::mutex mutex_;
  std::vector<std::string> list_;
};

// One connection's share of the load.
class LoadClient {
 public:
  LoadClient(const DaemonGround& ground, const LoadOptions& options, std::atomic<int>& next,
             Complaints& complaints)
      : ground_(ground), options_(options), next_(next), complaints_(complaints) {}

  void work(const Progress& progress) {
    RawClient client = ground_.connect();
    for (int number = next_++; number < options_.requests; number = next_++) {
      if (!client.connected()) client = ground_.connect();
      request(client, number);
      if (progress) progress(number);
    }
  }
  LoadResult result;

 private:
  static std::string nonce_of(int number) { return "nonce-" + std::to_string(number) + "-end"; }

  void request(RawClient& client, int number) {
    const std::string nonce = nonce_of(number);
    const bool python = options_.python_every > 0 && number % options_.python_every == 0;
    const bool stream = number % 3 == 0;
    Json body;
    if (python) {
      body = {{"language", "python"}, {"code", "print('" + nonce + "')"}};
    } else {
      body = {{"argv", {"/bin/echo", nonce}}};
    }
    const RawReply reply =
        client.ask(http_request("POST", stream ? "/v1/run?stream=1" : "/v1/run", body.dump()));
    if (reply.status == 0 || reply.cut) {
      ++result.lost;
      complaints_.add(nonce + " got no whole answer");
      client.close();
      return;
    }
    judge(reply, stream, nonce);
  }

  void judge(const RawReply& reply, bool stream, const std::string& nonce) {
    std::string text = reply.body;
    if (stream && reply.status == 200) {
      text = text.substr(text.rfind('\n', text.size() - 2) + 1);  // the last line
    }
    const Json json = Json::parse(text, nullptr, false);
    const Json run = stream && json.is_object() ? json.value("result", Json()) : json;
    if (reply.status != 200 || !run.is_object()) {
      ++result.other;
      complaints_.add(nonce + ": " + std::to_string(reply.status) + " " + text.substr(0, 300));
    } else if (run.value("status", "") == "ok" && run.value("stdout", "") == nonce + "\n") {
      ++result.exact;
    } else if (run.value("stdout", "").find("nonce-") != std::string::npos) {
      ++result.crossed;
      complaints_.add(nonce + " got " + run.value("stdout", ""));
    } else {
      ++result.other;
      complaints_.add(nonce + ": " + text.substr(0, 300));
    }
  }

  const DaemonGround& ground_;
  const LoadOptions& options_;
  std::atomic<int>& next_;
  Complaints& complaints_;
};

// Reads until `text` has come; false at the end.
bool read_until(RawClient& client, std::string_view text) {
  std::string seen;
  std::array<char, 4096> buffer;
  while (seen.find(text) == std::string::npos) {
    const ssize_t got = ::read(client.fd(), buffer.data(), buffer.size());
    if (got <= 0) return false;
    seen.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace

LoadResult load(const DaemonGround& ground, const LoadOptions& options, const Progress& progress) {
  std::atomic<int> next{0};
  Complaints complaints;
  std::vector<LoadClient> clients(static_cast<std::size_t>(options.connections),
                                  LoadClient(ground, options, next, complaints));
  const auto began = Clock::now();
  std::vector<std::thread> threads;
  for (LoadClient& client : clients) {
    threads.emplace_back([&client, &progress] { client.work(progress); });
  }
  for (std::thread& thread : threads) thread.join();
  LoadResult all;
  all.seconds = seconds_since(began);
  for (const LoadClient& client : clients) {
    all.exact += client.result.exact;
    all.crossed += client.result.crossed;
    all.lost += client.result.lost;
    all.other += client.result.other;
  }
  all.complaints = complaints.take();
  return all;
}

SleepersResult sleepers(const DaemonGround& ground, int count, const Progress& progress) {
  const Json body = {{"argv", {"/bin/sh", "-c", "echo up; exec sleep 3600"}},
                     {"limits", {{"memory", "16M"}, {"pids", 4}, {"wall_seconds", 3600}}}};
  const std::string request = http_request("POST", "/v1/run?stream=1", body.dump());
  SleepersResult result;
  std::vector<RawClient> clients;
  for (int i = 0; i < count; ++i) {
    const auto began = Clock::now();
    clients.push_back(ground.connect());
    if (!clients.back().send(request) || !read_until(clients.back(), "\"data\":\"up")) {
      result.complaints.push_back("sleeper " + std::to_string(i) + " did not come up");
      if (result.complaints.size() >= kMaxComplaints) break;
      continue;
    }
    result.start_seconds.push_back(seconds_since(began));
    ++result.started;
    if (progress) progress(i + 1);
  }
  result.resident_bytes = ground.metric("process_resident_memory_bytes");
  const auto ending = Clock::now();
  clients.clear();
  if (!ground.wait_for_metric("sbxd_running", 0)) {
    result.complaints.emplace_back("some still run after their clients left");
  }
  result.end_seconds = seconds_since(ending);
  return result;
}

namespace {

// A client that keeps sbxd busy until it dies, and remembers what was acknowledged.
class Victim {
 public:
  Victim(const DaemonGround& ground, std::uint32_t seed) : ground_(ground), random_(seed) {}

  void work(const std::atomic<bool>& over) {
    while (!over) {
      RawClient client = ground_.connect();
      while (!over && client.connected() && step(client)) {
      }
    }
  }

  // What must be there, and the contents that may be, by session and file.
  struct File {
    std::string content;  // acknowledged
    std::string may_be;   // sent and not acknowledged; empty: none
  };
  [[nodiscard]] const std::map<std::string, File>& files() const { return files_; }
  [[nodiscard]] std::map<std::string, File>& files() { return files_; }

 private:
  bool step(RawClient& client) {
    if (session_.empty()) return open_session(client);
    const std::string content = std::to_string(random_()) + "-" + std::to_string(random_());
    switch (random_() % 3) {
      case 0:
        return ask(client, "POST", "/v1/run", R"({"argv":["/bin/sleep","0.05"]})").status == 200;
      case 1:
        return put(client, content);
      default:
        return run_in_session(client, content);
    }
  }

  bool open_session(RawClient& client) {
    const RawReply reply = ask(client, "POST", "/v1/sessions", "{}");
    if (reply.status != 201) return false;
    session_ = Json::parse(reply.body)["id"].get<std::string>();
    return true;
  }

  bool put(RawClient& client, const std::string& content) {
    const std::string target = "/v1/sessions/" + session_ + "/files/put.txt";
    File& file = files_[target];
    file.may_be = content;
    const RawReply reply = ask(client, "PUT", target, content);
    return settle(file, reply.status == 201 || reply.status == 200 || reply.status == 204, content);
  }

  bool run_in_session(RawClient& client, const std::string& content) {
    File& file = files_["/v1/sessions/" + session_ + "/files/run.txt"];
    file.may_be = content;
    const Json body = {{"argv", {"/bin/sh", "-c", "printf %s " + content + " > /work/run.txt"}}};
    const RawReply reply = ask(client, "POST", "/v1/sessions/" + session_ + "/run", body.dump());
    const Json json = Json::parse(reply.body, nullptr, false);
    const bool ok =
        reply.status == 200 && !reply.cut && json.is_object() && json.value("status", "") == "ok";
    return settle(file, ok, content);
  }

  static bool settle(File& file, bool acknowledged, const std::string& content) {
    if (!acknowledged) return false;
    file.content = content;
    file.may_be.clear();
    return true;
  }

  static RawReply ask(RawClient& client, std::string_view method, std::string_view target,
                      std::string_view body) {
    return client.ask(http_request(method, target, body));
  }

  const DaemonGround& ground_;
  std::mt19937 random_;
  std::string session_;
  std::map<std::string, File> files_;
};

void check_files(const DaemonGround& ground, std::vector<Victim>& victims, KillsResult& result) {
  for (Victim& victim : victims) {
    for (auto& [target, file] : victim.files()) {
      const RawReply reply = ground.ask("GET", target);
      const std::string there = reply.status == 200 ? reply.body : std::string();
      const bool may_be = !file.may_be.empty() && there == file.may_be;
      if (!file.content.empty()) ++result.acknowledged_files;
      if (there != file.content && !may_be) {
        ++result.missing_files;
        if (result.complaints.size() < kMaxComplaints) {
          result.complaints.push_back(target + " is '" + there + "' (" +
                                      std::to_string(reply.status) + "), not '" + file.content +
                                      "' or '" + file.may_be + "'");
        }
      }
      file.content = there;
      file.may_be.clear();
    }
  }
}

}  // namespace

KillsResult kills(DaemonGround& ground, const KillsOptions& options, const Progress& progress) {
  KillsResult result;
  std::mt19937 random(options.seed);
  std::vector<Victim> victims;
  for (int i = 0; i < options.connections; ++i) victims.emplace_back(ground, random());
  for (int i = 0; i < options.kills; ++i) {
    std::atomic<bool> over{false};
    std::vector<std::thread> threads;
    for (Victim& victim : victims) {
      threads.emplace_back([&victim, &over] { victim.work(over); });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 600));
    over = true;
    ground.kill();
    for (std::thread& thread : threads) thread.join();
    const Things before = ground.runs();
    const auto began = Clock::now();
    if (!ground.start(options.config)) {
      result.complaints.push_back("no answer after restart: " + ground.log());
      return result;
    }
    result.slowest_restart = std::max(result.slowest_restart, seconds_since(began));
    for (const std::string& thing : ground.runs()) {
      if (before.count(thing) == 0) continue;
      ++result.runs_left;
      if (result.complaints.size() < kMaxComplaints) result.complaints.push_back("left: " + thing);
    }
    check_files(ground, victims, result);
    ++result.kills;
    if (progress) progress(i + 1);
  }
  return result;
}

}  // namespace sbx::test
