#include "tests/daemon/fixture.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace sbx::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kStartTime(60);
// Of a daemon that root starts: a subtree that nobody else uses.
constexpr const char* kParent = "sbx-daemon-test";

// Whom root's daemon becomes: the real user where he is, else one that every system has.
std::string service_user() {
  return ::getpwnam("sbx") != nullptr ? "sbx" : "nobody";
}

std::vector<fs::path> directories_in(const fs::path& parent) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory(error)) found.push_back(at->path());
  }
  return found;
}

// Our subtrees, wherever each hierarchy is mounted: "<parent>" (v2), "<parent>-<uid>" (v1).
std::vector<fs::path> own_subtrees() {
  std::vector<fs::path> found;
  std::vector<fs::path> tops = directories_in("/sys/fs/cgroup");
  tops.emplace_back("/sys/fs/cgroup");
  for (const fs::path& top : tops) {
    for (fs::path& child : directories_in(top)) {
      if (child.filename().string().rfind(kParent, 0) == 0) found.push_back(std::move(child));
    }
  }
  return found;
}

}  // namespace

void DaemonTest::SetUp() {
  if (!has_image()) GTEST_SKIP() << "no image: build it with scripts/image";
  directory_.emplace();
  program_ = SBX_DAEMON_PATH;
  if (is_user()) {
    user_.emplace();
    if (!user_->trouble().empty()) GTEST_SKIP() << user_->trouble();
    program_ = fs::path(user_->program()).parent_path() / "sbxd";
    ASSERT_EQ(::chown(directory_->path().c_str(), kTestUser, kTestUser), 0);
  }
  socket_ = directory_->path() + "/sbxd.sock";
  check_.emplace(is_user() ? kTestUser : ::geteuid());
}

void DaemonTest::TearDown() {
  if (!check_) return;
  if (process_) (void)stop();
  const Things left = left_over();
  EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left) << log();
  remove_groups();
  const Things leaked = check_->leaked();
  EXPECT_TRUE(leaked.empty()) << "left over:\n" << to_text(leaked);
}

void DaemonTest::write_configuration(const std::string& config) {
  std::string text = config;
  if (!is_user() && config.find("user = ") == std::string::npos) {
    text = "user = \"" + service_user() + "\"\n" + text;
  }
  (void)directory_->write("sbxd.toml", text);
  const std::string xdg = directory_->path() + "/config/sbx";
  fs::create_directories(xdg);
  std::string runtime = "runtime_dir = \"" + directory_->path() + "/run\"\n";
  if (!is_user()) runtime += std::string("cgroup_parent = \"") + kParent + "\"\n";
  std::ofstream(xdg + "/runtime.toml") << runtime;
}

std::vector<std::string> DaemonTest::command(const std::vector<std::string>& words) const {
  std::vector<std::string> all{program_, "--config", directory_->path() + "/sbxd.toml"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

ProcessOptions DaemonTest::options() const {
  ProcessOptions made = is_user() ? user_options(*directory_) : ProcessOptions{};
  made.environment.push_back("XDG_CONFIG_HOME=" + directory_->path() + "/config");
  return made;
}

void DaemonTest::spawn() {
  // The log goes to a file, so that nobody has to read it for the daemon to go on.
  std::vector<std::string> words{"/bin/sh", "-c",
                                 R"(exec "$@" 2>>")" + directory_->path() + R"(/log")", "sbxd"};
  for (std::string& word : command({"--socket", socket_, "--state-dir", state_dir()})) {
    words.push_back(std::move(word));
  }
  process_ = std::make_unique<Process>(words, options());
}

void DaemonTest::start(const std::string& config) {
  write_configuration(config);
  spawn();
  const auto deadline = Clock::now() + kStartTime;
  while (Clock::now() < deadline) {
    if (const RawReply reply = ask("GET", "/healthz"); reply.status == 200) return;
    if (::kill(pid(), 0) != 0) break;
    // Nothing tells that a socket is about to appear.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "sbxd does not answer; its log:\n" << log();
}

Finished DaemonTest::start_and_fail(const std::string& config) {
  write_configuration(config);
  return run_process(command({"--socket", socket_, "--state-dir", state_dir()}), options());
}

void DaemonTest::kill() {
  process_->signal(SIGKILL);
  (void)process_->finish();
  process_.reset();
}

Finished DaemonTest::stop() {
  process_->signal(SIGTERM);
  return wait_for_end();
}

Finished DaemonTest::wait_for_end() {
  Finished finished = process_->finish();
  process_.reset();
  return finished;
}

std::string DaemonTest::log() const {
  return read_text(directory_->path() + "/log");
}

RawReply DaemonTest::ask(std::string_view method, std::string_view target,
                         std::string_view body) const {
  RawClient client = connect();
  if (!client.connected()) return {};
  return client.ask(http_request(method, target, body));
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

double DaemonTest::metric(const std::string& name) const {
  std::istringstream lines(ask("GET", "/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
  }
  return -1;
}

bool DaemonTest::wait_for_metric(const std::string& name, double value) const {
  const auto deadline = Clock::now() + kHttpPatience;
  while (Clock::now() < deadline) {
    if (metric(name) == value) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

Things DaemonTest::look() const {
  Things things;
  for (const char* name : {"/run/runs"}) {
    std::error_code error;
    for (fs::directory_iterator at(directory_->path() + name, error), end; !error && at != end;
         at.increment(error)) {
      things.insert("record " + at->path().string());
    }
  }
  for (const fs::path& subtree : own_subtrees()) {
    for (const fs::path& group : directories_in(subtree)) {
      if (group.filename() != "supervisor") things.insert("cgroup " + group.string());
    }
  }
  return things;
}

Things DaemonTest::left_over(std::chrono::seconds patience) const {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    Things now = look();
    if (now.empty() || Clock::now() >= deadline) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void DaemonTest::remove_groups() const {
  for (const fs::path& subtree : own_subtrees()) {
    (void)::rmdir((subtree / "supervisor").c_str());
    (void)::rmdir(subtree.c_str());
  }
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
