// A host for doctor that cannot be had: each probe answers what a test says.
#pragma once

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cli/doctor_checks.h"

namespace sbx::cli {

// A host on which everything works; tests break one thing each.
class FakeHost final : public Host {
 public:
  FakeHost() {
    host_facts.ids = plan::IdMode::kSubordinate;
    host_facts.id_count = 65536;
    host_facts.sub_uid = host_facts.sub_gid = 165536;
    have_usual_limits();
  }

  std::string release = "6.1.0-18-amd64";
  uid_t user = 1000;
  std::map<std::string, std::string> files;
  std::string unreadable;
  plan::HostFacts host_facts;
  Act namespaces, proc, ids, time, memfd;
  Result<CgroupFacts> cgroup = CgroupFacts{"v2: memory cpu pids", true};
  Result<std::string> directory = std::string("/run/user/1000/sbx");
  bool has_newuidmap = true;
  Result<bool> has_name = true;
  int filter_errno = EFAULT;
  int action_errno = 0;
  int abi = 7;
  Result<plan::Image> image = image_in("/images/default/d1");
  std::map<std::string, PathFacts> paths = {{"/images/default/d1/rootfs", {0, 0755}}};
  IdRange mapped;

  void have_usual_limits() {
    host_facts.hard_nofile = 1024;
    host_facts.hard_fsize = plan::kNoLimit;
  }
  Result<void> proc_of_ours, devices_of_ours;

  Result<void> own_proc() override { return proc_of_ours; }
  Result<void> own_devices() override { return devices_of_ours; }
  std::string kernel_release() override { return release; }
  uid_t uid() override { return user; }
  plan::HostFacts facts(const policy::RuntimeConfig&) override { return host_facts; }
  void give_one_id_because(std::string detail) {
    host_facts = {};
    host_facts.id_detail = std::move(detail);
    have_usual_limits();
  }
  Result<std::string> read_file(const std::string& path) override {
    const auto found = files.find(path);
    if (path == unreadable) return host_lacks("open", EACCES, path, "");
    if (found == files.end()) return host_lacks("open", ENOENT, path, "");
    return found->second;
  }
  PathFacts path_facts(const std::string& path) override {
    const auto found = paths.find(path);
    return found == paths.end() ? PathFacts{ENOENT, 0} : found->second;
  }
  static plan::Image image_in(const std::string& directory) {
    plan::Image found;
    found.directory = directory;
    found.rootfs = directory + "/rootfs";
    return found;
  }
  Result<plan::Image> find_image(const std::string&, const policy::RuntimeConfig&) override {
    return image;
  }
  Result<void> manifest, interpreters, contents;
  Result<void> check_manifest(const plan::Image&) override { return manifest; }
  Result<void> check_interpreters(const plan::Image&) override { return interpreters; }
  Result<void> check_contents(const plan::Image&) override { return contents; }
  bool has_program(const std::string&) override { return has_newuidmap; }
  Result<bool> has_login_name() override { return has_name; }
  Act make_namespaces() override { return namespaces; }
  Act mount_proc() override { return proc; }
  Act map_ids(const IdRange& uids, const IdRange&) override {
    mapped = uids;
    return ids;
  }
  Act make_time_namespace() override { return time; }
  Act exec_memfd() override { return memfd; }
  Result<std::string> runtime_directory(const policy::RuntimeConfig&) override { return directory; }
  Result<CgroupFacts> make_cgroup(const policy::RuntimeConfig&) override { return cgroup; }
  Result<std::vector<std::string>> ran = std::vector<std::string>{"python", "bash"};
  Result<std::vector<std::string>> run_languages(const std::string&,
                                                 const policy::RuntimeConfig&) override {
    ++runs;
    return ran;
  }
  int runs = 0;
  int seccomp(unsigned, unsigned) override { return filter_errno; }
  int seccomp_action(std::uint32_t) override { return action_errno; }
  int landlock_abi() override { return abi; }
};

inline std::vector<Check> checks_of(FakeHost& host) {
  DoctorOptions options;
  options.config.image_dir = "/images";
  return run_checks(host, options);
}

inline Check check_of(FakeHost& host, const std::string& name) {
  for (Check& check : checks_of(host)) {
    if (check.name == name) return check;
  }
  ADD_FAILURE() << "no check " << name;
  return {};
}

}  // namespace sbx::cli
