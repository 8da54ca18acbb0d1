#include "tests/integration/own_ground.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "runtime/spawn/records.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Our own children and, as their reaper, all orphans of theirs. The dead are reaped on the way.
void add_children(pid_t spawner, Things& things) {
  const std::string self = std::to_string(::getpid());
  std::ifstream file("/proc/self/task/" + self + "/children");
  for (pid_t child = 0; file >> child;) {
    if (child == spawner || ::waitpid(child, nullptr, WNOHANG) == child) continue;
    things.insert("process " + std::to_string(child) + " " +
                  read_text("/proc/" + std::to_string(child) + "/comm"));
  }
}

void add_mounts(Things& things) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) things.insert("mount " + line);
}

void add_descriptors(Things& things) {
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the one that lists them
    const fs::path target = fs::read_symlink(entry.path(), gone);
    if (gone || target.string().starts_with("/proc/")) continue;
    things.insert("descriptor " + entry.path().filename().string() + " " + target.string());
  }
}

void add_groups(const fs::path& directory, Things& things) {
  std::error_code gone;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, gone)) {
    if (!entry.is_directory(gone)) continue;
    things.insert("cgroup " + entry.path().string());
    add_groups(entry.path(), things);
  }
}

// The directories of that name at the top of each hierarchy.
std::vector<fs::path> subtrees(const std::string& parent) {
  std::vector<fs::path> all{fs::path("/sys/fs/cgroup") / parent};
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator("/sys/fs/cgroup", none)) {
    all.push_back(entry.path() / parent);
  }
  return all;
}

void add_records(const std::string& runtime, Things& things) {
  const auto directory = spawn::RuntimeDirectory::open(runtime);
  if (!directory) return;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory->path() + "/runs")) {
    // A live one is somebody else's.
    if (!directory->is_dead(entry.path().stem().string())) continue;
    things.insert("record " + entry.path().string());
  }
}

}  // namespace

OwnGround::OwnGround() {
  (void)::prctl(PR_GET_CHILD_SUBREAPER, &was_reaper_);  // neither can fail
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (::geteuid() == 0) {
    config_.runtime_dir = directory_.path() + "/run";
    config_.cgroup_parent = "sbx-test-" + std::to_string(::getpid());
  }
  before_ = look(0);
}

OwnGround::~OwnGround() {
  (void)::prctl(PR_SET_CHILD_SUBREAPER, was_reaper_);
  if (::geteuid() != 0) return;
  // The subtree itself, which a sandbox leaves for the next. What is still inside was reported.
  for (const fs::path& subtree : subtrees(config_.cgroup_parent)) (void)::rmdir(subtree.c_str());
}

Things OwnGround::look(pid_t spawner) const {
  Things things;
  add_children(spawner, things);
  add_mounts(things);
  if (spawner == 0) add_descriptors(things);
  if (::geteuid() == 0) {
    for (const fs::path& subtree : subtrees(config_.cgroup_parent)) add_groups(subtree, things);
  }
  add_records(config_.runtime_dir, things);
  return things;
}

Things OwnGround::leaked(pid_t spawner, std::chrono::seconds patience) const {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const Things now = look(spawner);
    Things added;
    std::set_difference(now.begin(), now.end(), before_.begin(), before_.end(),
                        std::inserter(added, added.end()));
    if (added.empty() || Clock::now() >= deadline) return added;
    // The kernel tells nobody when a dying group is gone: look again.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace sbx::test
