#include "bench/src/competitors.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>

#include "bench/src/json_text.h"
#include "runtime/base/sys.h"
#include "runtime/plan/image.h"
#include "runtime/plan/plan.h"
#include "runtime/policy/config.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/shipped.h"

namespace sbx::bench {
namespace {

using Words = std::vector<std::string>;

Words join(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::string find_program(const std::string& name) {
  for (const char* directory : {"/usr/local/bin/", "/usr/bin/", "/bin/"}) {
    const std::string path = directory + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Competitor missing(Kind kind, const std::string& name, const std::string& package) {
  return {kind, name, {}, "not installed (apt-get install " + package + ")"};
}

// What it can do of the same: every namespace, a read-only root, dev, proc, tmpfs, another id, no
// capability, a session of its own. Not: cgroups, seccomp, a time limit, captured output.
Competitor bubblewrap(const Workload& workload, Kind kind, const std::string& name, Words root,
                      const Words& more = {}) {
  const std::string program = find_program("bwrap");
  if (program.empty()) return missing(kind, name, "bubblewrap");
  const Words flags{"--unshare-all", "--die-with-parent",
                    "--new-session", "--cap-drop",
                    "ALL",           "--uid",
                    "65534",         "--gid",
                    "65534",         "--hostname",
                    "sbx",           "--clearenv",
                    "--setenv",      "PATH",
                    "/usr/bin:/bin"};
  const Words mounts{"--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"};
  const Words command = join(join(join(join({program}, flags), root), mounts), more);
  return {kind, name, join(join(command, {"--"}), workload.argv), {}};
}

// The image, as for the others, with its writable places.
Words image_root(const Setting& setting) {
  return {"--ro-bind", setting.rootfs, "/",       "--tmpfs", "/work",
          "--tmpfs",   "/output",      "--chdir", "/work"};
}

Result<void> write_scratch(const std::string& path, std::string_view bytes) {
  SBX_ASSIGN(const UniqueFd file, sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  return sys::write_all(file.get(), bytes);
}

// The masks that a run of sbx-run plans, as binds of bubblewrap's.
Result<Words> mask_binds(const Setting& setting) {
  SBX_ASSIGN(policy::Policy policy, policy::load_policy("default"));
  policy.allow_missing = ~policy::LayerMask{0};  // only the masks are wanted of the plan
  const policy::RuntimeConfig config;
  plan::HostFacts host = plan::read_host_facts(config, ~policy::LayerMask{0});
  SBX_ASSIGN(host.image, plan::find_image("default", config));
  plan::Request request;
  request.argv = {"true"};
  SBX_ASSIGN(const plan::Plan plan, plan::make_plan(policy, request, host));
  const std::string empty = setting.scratch + "/empty";
  if (::mkdir(empty.c_str(), 0755) != 0 && errno != EEXIST) return sys_error("mkdir", empty);
  Words words;
  for (const plan::Mask& mask : plan.masks) {
    if (::access(mask.path.c_str(), F_OK) != 0) continue;  // this kernel does not have it
    std::string source = mask.kind == plan::MaskKind::kDirectory ? empty : "/dev/null";
    if (mask.kind == plan::MaskKind::kContent) {
      source = setting.scratch + "/stat";
      SBX_TRY(write_scratch(source, mask.content));
    }
    words.insert(words.end(), {"--ro-bind", source, mask.path});
  }
  return words;
}

// Everything of the same that it can do: also the filter (without a listener: what ours notifies is
// ENOSYS) and the masks of /proc. Still not: cgroups, Landlock, a time limit, captured output.
Result<Competitor> bubblewrap_alike(const Setting& setting, const Workload& workload) {
  const std::string filter = setting.scratch + "/filter.bpf";
  const auto bpf = policy::shipped_profile_table().front().bpf;
  SBX_TRY(write_scratch(filter, {reinterpret_cast<const char*>(bpf.data()), bpf.size()}));
  SBX_ASSIGN(const Words masks, mask_binds(setting));
  Competitor competitor = bubblewrap(workload, Kind::kBwrapAlike, "bwrap, filter and masks as ours",
                                     image_root(setting), join({"--seccomp", "0"}, masks));
  competitor.stdin_file = filter;
  return competitor;
}

Result<Competitor> crun(const Setting& setting, const Workload& workload) {
  const std::string program = find_program("crun");
  if (program.empty()) return missing(Kind::kCrun, "crun", "crun");
  if (::geteuid() != 0) {
    return Competitor{Kind::kCrun, "crun", {}, "needs root to set cgroup limits; run this as root"};
  }
  std::string bundle = setting.scratch + "/bundle-XXXXXX";
  if (::mkdtemp(bundle.data()) == nullptr) return sys_error("mkdtemp", bundle);
  SBX_ASSIGN(const UniqueFd file, sys::open(bundle + "/config.json", O_WRONLY | O_CREAT, 0600));
  SBX_TRY(sys::write_all(file.get(), oci_config(setting.rootfs, workload.argv)));
  const std::string id = "sbx-bench-" + std::to_string(::getpid());
  return Competitor{Kind::kCrun, "crun", {program, "run", "--bundle", bundle, id}, {}};
}

// The subtrees that sbx-run has made on cgroup v1, and which only root may use.
Words group_directories() {
  Words directories;
  for (const char* controller : {"memory", "pids", "cpu", "cpuacct"}) {
    std::string path = std::string("/sys/fs/cgroup/") + controller + "/sbx";
    if (::access(path.c_str(), W_OK) == 0) directories.push_back(std::move(path));
  }
  return directories;
}

Competitor floor_with_groups(const Setting& setting, const Workload& workload) {
  const Words groups = group_directories();
  const char* const name = "floor with its groups";
  if (groups.size() < 4) {
    return {Kind::kFloorGroups, name, {}, "needs root, cgroup v1, and one sbx-run before"};
  }
  const Words program{setting.programs + "/sbx-bench-floor", setting.rootfs};
  return {Kind::kFloorGroups, name, join(join(join(program, groups), {"--"}), workload.argv), {}};
}

Competitor floor(const Setting& setting, const Workload& workload, bool ready) {
  Words words{setting.programs + "/sbx-bench-floor"};
  if (ready) words.emplace_back("--serve");
  words.insert(words.end(), {setting.rootfs, "--"});
  return {ready ? Kind::kReadyFloor : Kind::kFloor,
          ready ? "floor, its parent ready" : "floor",
          join(words, workload.argv),
          {}};
}

Competitor sbx_run(Kind kind, const std::string& program, const std::string& name,
                   const Words& options, const Workload& workload) {
  return {kind, name, join(join({program}, options), join({"--"}, workload.argv)), {}};
}

}  // namespace

std::vector<Workload> workloads() {
  return {{"true", {"/usr/bin/true"}},
          {"python3 -I -S -c pass", {"/usr/bin/python3", "-I", "-S", "-c", "pass"}}};
}

Result<std::string> find_rootfs() {
  const char* home = ::getenv("HOME");
  const std::array places{std::string("/var/lib/sbx/images"),
                          std::string(home != nullptr ? home : "") + "/.local/share/sbx/images"};
  for (const std::string& place : places) {
    const std::string rootfs = place + "/default/current/rootfs";
    char resolved[PATH_MAX];
    if (::realpath(rootfs.c_str(), resolved) != nullptr) return std::string(resolved);
  }
  return host_lacks("find_rootfs", ENOENT, "no image named default", "build it: scripts/image");
}

Result<std::vector<Competitor>> make_competitors(const Setting& setting, const Workload& workload) {
  const std::string program = setting.programs + "/sbx-run";
  const Words two_cpus{"--cpus", "2"};
  std::vector<Competitor> all{{Kind::kBare, "bare", workload.argv, {}},
                              floor(setting, workload, true),
                              floor(setting, workload, false),
                              floor_with_groups(setting, workload)};
  all.push_back(sbx_run(Kind::kSbx, program, "sbx-run --cpus 2", two_cpus, workload));
  all.push_back(sbx_run(Kind::kSbxDefault, program, "sbx-run", {}, workload));
  for (const std::string& other : setting.compare) {
    all.push_back(sbx_run(Kind::kSbxOther, other, "--cpus 2 of " + other, two_cpus, workload));
  }
  all.push_back(bubblewrap(workload, Kind::kBwrap, "bwrap", image_root(setting)));
  // The usual way, the host's own root.
  all.push_back(
      bubblewrap(workload, Kind::kBwrapHost, "bwrap --ro-bind / /", {"--ro-bind", "/", "/"}));
  SBX_ASSIGN(Competitor alike, bubblewrap_alike(setting, workload));
  all.push_back(std::move(alike));
  SBX_ASSIGN(Competitor container, crun(setting, workload));
  all.push_back(std::move(container));
  return all;
}

}  // namespace sbx::bench
