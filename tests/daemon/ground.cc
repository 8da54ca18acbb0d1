#include "tests/daemon/ground.h"

#include <pwd.h>
#include <unistd.h>

#include <csignal>
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

// Subtrees wherever each hierarchy is mounted: "<name>" (v2), "<name>-<uid>" (v1).
std::vector<fs::path> subtrees_named(const std::string& name) {
  std::vector<fs::path> found;
  std::vector<fs::path> tops = directories_in("/sys/fs/cgroup");
  tops.emplace_back("/sys/fs/cgroup");
  for (const fs::path& top : tops) {
    for (fs::path& child : directories_in(top)) {
      if (child.filename().string().rfind(name, 0) == 0) found.push_back(std::move(child));
    }
  }
  return found;
}

}  // namespace

DaemonGround::DaemonGround(Caller caller) : caller_(caller), program_(SBX_DAEMON_PATH) {
  socket_ = directory_.path() + "/sbxd.sock";
  if (!has_image()) trouble_ = "no image: build it with scripts/image";
  if (caller_ == Caller::kSelf) remove_groups();  // of a test that was killed
  if (caller_ != Caller::kUser || !trouble_.empty()) return;
  user_.emplace();
  trouble_ = user_->trouble();
  if (!trouble_.empty()) return;
  program_ = fs::path(user_->program()).parent_path() / "sbxd";
  if (::chown(directory_.path().c_str(), kTestUser, kTestUser) != 0) {
    trouble_ = "cannot give away " + directory_.path();
  }
}

DaemonGround::~DaemonGround() {
  process_.reset();
  if (caller_ == Caller::kSelf) remove_groups();
}

uid_t DaemonGround::service_uid() const {
  if (caller_ == Caller::kUser) return kTestUser;
  if (::geteuid() != 0) return ::geteuid();
  return ::getpwnam(service_user().c_str())->pw_uid;
}

void DaemonGround::write_configuration(const std::string& config) {
  std::string text = config;
  if (caller_ == Caller::kSelf && config.find("user = ") == std::string::npos) {
    text = "user = \"" + service_user() + "\"\n" + text;
  }
  (void)directory_.write("sbxd.toml", text);
  const std::string xdg = directory_.path() + "/config/sbx";
  fs::create_directories(xdg);
  std::string runtime = "runtime_dir = \"" + directory_.path() + "/run\"\n";
  if (caller_ == Caller::kSelf) runtime += std::string("cgroup_parent = \"") + kParent + "\"\n";
  std::ofstream(xdg + "/runtime.toml") << runtime << runtime_;
}

std::vector<std::string> DaemonGround::command(const std::vector<std::string>& words) const {
  std::vector<std::string> all{program_, "--config", directory_.path() + "/sbxd.toml"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

ProcessOptions DaemonGround::options() const {
  ProcessOptions made = caller_ == Caller::kUser ? user_options(directory_) : ProcessOptions{};
  made.environment.push_back("XDG_CONFIG_HOME=" + directory_.path() + "/config");
  return made;
}

void DaemonGround::spawn() {
  // The log goes to a file, so that nobody has to read it for the daemon to go on.
  std::vector<std::string> words{
      "/bin/bash", "-c", limits_ + R"(exec "$@" 2>>")" + directory_.path() + R"(/log")", "sbxd"};
  for (std::string& word : command({"--socket", socket_, "--state-dir", state_dir()})) {
    words.push_back(std::move(word));
  }
  process_ = std::make_unique<Process>(words, options());
}

bool DaemonGround::start(const std::string& config) {
  write_configuration(config);
  spawn();
  const auto deadline = Clock::now() + kStartTime;
  while (Clock::now() < deadline) {
    if (ask("GET", "/healthz").status == 200) return true;
    if (log().find("sbxd: ") != std::string::npos) return false;  // a refusal to start
    // Nothing tells that a socket is about to appear.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Finished DaemonGround::start_and_fail(const std::string& config) {
  write_configuration(config);
  return run_process(command({"--socket", socket_, "--state-dir", state_dir()}), options());
}

void DaemonGround::kill() {
  process_->signal(SIGKILL);
  (void)process_->finish();
  process_.reset();
}

Finished DaemonGround::stop() {
  process_->signal(SIGTERM);
  return wait_for_end();
}

Finished DaemonGround::wait_for_end() {
  Finished finished = process_->finish();
  process_.reset();
  return finished;
}

std::string DaemonGround::log() const {
  return read_text(directory_.path() + "/log");
}

RawReply DaemonGround::ask(std::string_view method, std::string_view target,
                           std::string_view body) const {
  RawClient client = connect();
  if (!client.connected()) return {};
  return client.ask(http_request(method, target, body));
}

double DaemonGround::metric(const std::string& name) const {
  std::istringstream lines(ask("GET", "/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
  }
  return -1;
}

bool DaemonGround::wait_for_metric(const std::string& name, double value) const {
  const auto deadline = Clock::now() + kHttpPatience;
  while (Clock::now() < deadline) {
    if (metric(name) == value) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

Things DaemonGround::runs() const {
  Things things;
  std::error_code error;
  for (fs::directory_iterator at(directory_.path() + "/run/runs", error), end; !error && at != end;
       at.increment(error)) {
    things.insert("record " + at->path().string());
  }
  const std::vector<fs::path> subtrees = caller_ == Caller::kSelf
                                             ? subtrees_named(kParent)
                                             : subtrees_named("sbx-" + std::to_string(kTestUser));
  for (const fs::path& subtree : subtrees) {
    for (const fs::path& group : directories_in(subtree)) {
      if (group.filename() != "supervisor") things.insert("cgroup " + group.string());
    }
  }
  return things;
}

Things DaemonGround::left_over(std::chrono::seconds patience) const {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    Things now = runs();
    if (now.empty() || Clock::now() >= deadline) return now;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void DaemonGround::remove_groups() const {
  for (const fs::path& subtree : subtrees_named(kParent)) {
    for (const fs::path& group : directories_in(subtree)) {
      for (const fs::path& leaf : directories_in(group)) (void)::rmdir(leaf.c_str());
      (void)::rmdir(group.c_str());
    }
    (void)::rmdir(subtree.c_str());
  }
}

}  // namespace sbx::test
