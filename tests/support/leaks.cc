#include "tests/support/leaks.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/process.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

// The entries of a directory; none when it is not there or goes meanwhile.
std::vector<fs::path> entries(const fs::path& directory) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    found.push_back(at->path());
  }
  return found;
}

std::string link_target(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  return error ? std::string() : target.string();
}

bool is_ours(const std::string& command) {
  return command.rfind("sbx-", 0) == 0;
}

bool is_namespace(const std::string& target) {
  const std::size_t colon = target.find(':');
  return colon != std::string::npos && target.compare(colon, 2, ":[") == 0 &&
         target.substr(0, colon).find_first_not_of("abcdefghijklmnopqrstuvwxyz_") ==
             std::string::npos;
}

// Those that a process lives in and we do not, and those that it holds by a descriptor, as the
// spawner holds its pool.
void add_namespaces(const fs::path& process, Things& things) {
  const auto add = [&things](const std::string& name, const std::string& target) {
    if (target != link_target("/proc/self/ns/" + name)) things.insert("namespace " + target);
  };
  for (const char* const name : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
    const std::string target = link_target(process / "ns" / name);
    if (!target.empty()) add(name, target);
  }
  for (const fs::path& descriptor : entries(process / "fd")) {
    const std::string target = link_target(descriptor);
    if (is_namespace(target)) add(target.substr(0, target.find(':')), target);
  }
}

// Programs inside are found by the sandbox's hostname, whatever they are called: their uts
// namespace is not ours, and their root is no root of the host.
void add_processes(Things& things) {
  const std::string own_pid_namespace = link_target("/proc/self/ns/pid");
  for (const fs::path& process : entries("/proc")) {
    const std::string pid = process.filename();
    if (!is_number(pid)) continue;
    std::string command = read_text(process / "comm");
    while (!command.empty() && command.back() == '\n') command.pop_back();
    const std::string pid_namespace = link_target(process / "ns/pid");
    const bool inside = !pid_namespace.empty() && pid_namespace != own_pid_namespace;
    if (!is_ours(command) && !inside) continue;
    things.insert("process " + pid + " " + command);
    add_namespaces(process, things);
  }
}

void add_groups(const fs::path& directory, Things& things) {
  std::error_code error;
  for (const fs::path& entry : entries(directory)) {
    if (!fs::is_directory(entry, error)) continue;
    things.insert("cgroup " + entry.string());
    add_groups(entry, things);
  }
}

// /sys/fs/cgroup/sbx (v2) and /sys/fs/cgroup/<controller>/{sbx,sbx-<uid>} (v1 and hybrid).
void add_cgroups(unsigned uid, Things& things) {
  const fs::path root = "/sys/fs/cgroup";
  const std::vector<std::string> names = {"sbx", "sbx-" + std::to_string(uid)};
  for (const std::string& name : names) add_groups(root / name, things);
  for (const fs::path& hierarchy : entries(root)) {
    for (const std::string& name : names) add_groups(hierarchy / name, things);
  }
}

// Keys are counted by user, and a run's id is a user of the host's. Lines of /proc/key-users:
// "  uid: usage keys/instantiated …".
void add_keys(unsigned uid, Things& things) {
  constexpr unsigned kFirstRunId = 1879048192;  // the default uid_base
  std::ifstream users("/proc/key-users");
  for (std::string line; std::getline(users, line);) {
    unsigned owner = 0;
    unsigned keys = 0;
    if (std::sscanf(line.c_str(), " %u: %*u %u/", &owner, &keys) != 2) continue;
    if (owner < kFirstRunId && (owner != uid || uid == 0)) continue;
    for (unsigned i = 1; i <= keys; ++i) {
      things.insert("key " + std::to_string(i) + " of uid " + std::to_string(owner));
    }
  }
}

void add_mounts(Things& things) {
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) things.insert("mount " + line);
}

// Our own descriptors, without the one that lists them.
void add_descriptors(Things& things) {
  for (const fs::path& entry : entries("/proc/self/fd")) {
    const std::string target = link_target(entry);
    if (target.empty() || target.find("/proc/") == 0) continue;
    things.insert("descriptor " + entry.filename().string() + " " + target);
  }
}

// A temporary of this user's run. A user's runtime directory, "sbx-<uid>", stays; what is in it
// does not.
bool is_left_in_tmp(const fs::path& path, unsigned uid) {
  const std::string name = path.filename();
  if (!is_ours(name) || is_number(name.substr(4))) return false;
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid == uid;
}

void add_files(unsigned uid, Things& things) {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  std::vector<fs::path> places = {"/run/sbx/runs", "/tmp/sbx-" + std::to_string(uid) + "/runs"};
  if (runtime != nullptr) places.push_back(fs::path(runtime) / "sbx/runs");
  for (const fs::path& place : places) {
    for (const fs::path& entry : entries(place)) things.insert("file " + entry.string());
  }
  for (const fs::path& entry : entries("/tmp")) {
    if (is_left_in_tmp(entry, uid)) things.insert("file " + entry.string());
  }
}

}  // namespace

Things snapshot(unsigned uid) {
  Things things;
  add_processes(things);
  add_cgroups(uid, things);
  add_mounts(things);
  add_descriptors(things);
  add_files(uid, things);
  add_keys(uid, things);
  return things;
}

Things LeakCheck::leaked(std::chrono::seconds patience) const {
  const auto deadline = Clock::now() + patience;
  for (;;) {
    const Things now = snapshot(uid_);
    Things added;
    std::set_difference(now.begin(), now.end(), before_.begin(), before_.end(),
                        std::inserter(added, added.end()));
    if (added.empty() || Clock::now() >= deadline) return added;
    // The kernel tells nobody when a dying namespace or group is gone: look again.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

LeakFreeTest::LeakFreeTest() : check_(::geteuid()) {}

void LeakFreeTest::TearDown() {
  const Things left = check_.leaked();
  EXPECT_TRUE(left.empty()) << "left over:\n" << to_text(left);
}

std::string to_text(const Things& things) {
  std::string text;
  for (const std::string& thing : things) text += "  " + thing + "\n";
  return text;
}

}  // namespace sbx::test
