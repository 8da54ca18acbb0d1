#include "tests/integration/fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sbx::test {
namespace {

namespace fs = std::filesystem;

// Made by CMake: the program under test, and what must stand beside it.
const fs::path kProgram = SBX_RUN_PATH;

// What a user needs a copy of.
bool is_ours(const std::string& name) {
  return name.rfind("sbx-", 0) == 0 || name == "sbxd";
}

// The v1 hierarchies that limits need; none on a v2 host.
std::vector<fs::path> v1_hierarchies() {
  std::vector<fs::path> found;
  std::error_code error;
  for (const char* const controller : {"memory", "pids", "cpu", "cpuacct", "cpuset"}) {
    fs::path path = fs::path("/sys/fs/cgroup") / controller;
    if (fs::exists(path / "cgroup.procs", error)) found.push_back(std::move(path));
  }
  return found;
}

}  // namespace

bool has_image() {
  std::error_code error;
  const char* const home = std::getenv("HOME");
  const char* const data = std::getenv("XDG_DATA_HOME");
  std::vector<fs::path> places = {"/var/lib/sbx/images"};
  if (data != nullptr) places.push_back(fs::path(data) / "sbx/images");
  if (home != nullptr) places.push_back(fs::path(home) / ".local/share/sbx/images");
  for (const fs::path& place : places) {
    if (fs::exists(place / "default/current/rootfs", error)) return true;
  }
  return false;
}

std::string caller_name(const ::testing::TestParamInfo<Caller>& info) {
  return info.param == Caller::kSelf ? "AsCaller" : "AsUser";
}

UserGround::UserGround() {
  if (::geteuid() != 0) {
    trouble_ = "the caller is an ordinary user already";
    return;
  }
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kProgram.parent_path())) {
    if (!is_ours(entry.path().filename())) continue;
    fs::copy_file(entry.path(), fs::path(directory_.path()) / entry.path().filename(), error);
    if (error) trouble_ = "cannot copy " + entry.path().string();
  }
  program_ = directory_.path() + "/" + kProgram.filename().string();
  make_groups();
}

void UserGround::make_groups() {
  const std::vector<fs::path> hierarchies = v1_hierarchies();
  if (hierarchies.empty()) {
    trouble_ = "on cgroup v2 a user needs a delegated subtree: the guest tests show it";
    return;
  }
  for (const fs::path& hierarchy : hierarchies) {
    const fs::path group = hierarchy / ("sbx-" + std::to_string(kTestUser));
    if (::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
      trouble_ = "cannot make " + group.string();
      return;
    }
    groups_.push_back(group);
    // A new cpuset group may be used only once it has CPUs and memory nodes.
    for (const char* const file : {"cpuset.cpus", "cpuset.mems"}) {
      std::error_code error;
      if (!fs::exists(group / file, error)) continue;
      std::ofstream(group / file) << read_text(hierarchy / file);
    }
    for (const char* const file : {"", "cgroup.procs", "tasks"}) {
      if (::chown((group / file).c_str(), kTestUser, kTestUser) != 0) {
        trouble_ = "cannot give away " + group.string();
      }
    }
  }
}

UserGround::~UserGround() {
  for (const std::string& group : groups_) (void)::rmdir(group.c_str());
  std::error_code ignored;
  fs::remove_all("/tmp/sbx-" + std::to_string(kTestUser), ignored);
}

void SandboxTest::SetUp() {
  if (!has_image()) GTEST_SKIP() << "no image: build it with scripts/image";
  directory_.emplace();
  if (is_user()) {
    user_.emplace();
    if (!user_->trouble().empty()) GTEST_SKIP() << user_->trouble();
  }
  // Once before the snapshot: the runtime directory and our subtree stay, as they should.
  (void)run({"--", "/bin/true"});
  check_.emplace(is_user() ? kTestUser : ::geteuid());
}

void SandboxTest::TearDown() {
  if (!check_) return;
  const Things left = check_->leaked();
  EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left);
}

std::vector<std::string> SandboxTest::command(std::vector<std::string> words) const {
  words.insert(words.begin(), is_user() ? user_->program() : kProgram.string());
  return words;
}

ProcessOptions user_options(const TemporaryDirectory& directory) {
  ProcessOptions options;
  options.uid = kTestUser;
  options.environment = {"HOME=" + directory.path(), "XDG_RUNTIME_DIR=", "XDG_DATA_HOME="};
  return options;
}

ProcessOptions SandboxTest::options() const {
  return is_user() ? user_options(*directory_) : ProcessOptions();
}

Finished SandboxTest::run(std::vector<std::string> words) const {
  return run_process(command(std::move(words)), options());
}

Finished SandboxTest::run(std::vector<std::string> words, const std::string& input) const {
  ProcessOptions with_input = options();
  with_input.input = input;
  return run_process(command(std::move(words)), with_input);
}

nlohmann::json SandboxTest::run_json(std::vector<std::string> words) const {
  words.insert(words.begin(), "--json");
  const Finished finished = run(std::move(words));
  nlohmann::json result = nlohmann::json::parse(finished.out, nullptr, false);
  EXPECT_TRUE(result.is_object()) << "stdout: " << finished.out << "\nstderr: " << finished.err;
  return result.is_object() ? result : nlohmann::json::object();
}

std::vector<std::string> note_codes(const nlohmann::json& result) {
  std::vector<std::string> codes;
  for (const nlohmann::json& note : result.value("notes", nlohmann::json::array())) {
    codes.push_back(note.value("code", ""));
  }
  return codes;
}

}  // namespace sbx::test
