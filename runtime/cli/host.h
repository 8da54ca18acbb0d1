// Host: what `sbx-run doctor` asks of the machine, one method per real act. Stage: edge (sbx-run).
//
// The checks (doctor_checks.*) decide from the answers; this is the only part that makes system
// calls, so that a test can be any host by answering for them. Acts that change the process run in
// a forked child and leave nothing behind.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/plan/host_facts.h"
#include "runtime/plan/image.h"
#include "runtime/policy/config.h"

namespace sbx::cli {

// How far an act came: `failed_step` is empty when it did all.
struct Act {
  std::string failed_step;
  int sys_errno = 0;
  [[nodiscard]] bool ok() const { return failed_step.empty(); }
};

struct CgroupFacts {
  std::string detail;  // driver and controllers
  bool swap_controlled = false;
};

struct IdRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// What stat says of a path; `sys_errno` is set when it could not be read.
struct PathFacts {
  int sys_errno = 0;
  mode_t mode = 0;
};

class Host {
 public:
  virtual ~Host() = default;

  [[nodiscard]] virtual std::string kernel_release() = 0;
  [[nodiscard]] virtual uid_t uid() = 0;
  // What a plan would be made from: which ids the runs of this caller get, and why no others.
  [[nodiscard]] virtual plan::HostFacts facts(const policy::RuntimeConfig& config) = 0;
  [[nodiscard]] virtual Result<std::string> read_file(const std::string& path) = 0;
  [[nodiscard]] virtual PathFacts path_facts(const std::string& path) = 0;
  // The image that a run would take, or why it would take none.
  [[nodiscard]] virtual Result<plan::Image> find_image(const std::string& name,
                                                       const policy::RuntimeConfig& config) = 0;
  [[nodiscard]] virtual Result<void> check_manifest(const plan::Image& image) = 0;
  // What lies below its rootfs/: see doctor_rootfs.h.
  [[nodiscard]] virtual Result<void> check_interpreters(const plan::Image& image) = 0;
  [[nodiscard]] virtual Result<void> check_contents(const plan::Image& image) = 0;
  [[nodiscard]] virtual bool has_program(const std::string& name) = 0;  // in /usr/bin and the like

  // Whether the caller's uid has a name anywhere, /etc/passwd or a directory service.
  [[nodiscard]] virtual Result<bool> has_login_name() = 0;

  // Whether /proc is that of our pid namespace. Where it is not, nothing below it means what it
  // says.
  [[nodiscard]] virtual Result<void> own_proc() { return {}; }
  // Whether the devices that a run is given are those: see plan::check_devices().
  [[nodiscard]] virtual Result<void> own_devices() { return {}; }
  // A user namespace with a map, private mounts in it, a second one inside, and the other kinds.
  [[nodiscard]] virtual Act make_namespaces() = 0;
  // A new proc with hidepid, mounted in a fresh user, pid and mount namespace.
  [[nodiscard]] virtual Act mount_proc() = 0;
  // A user namespace with a range: written directly by root, else through newuidmap and newgidmap.
  [[nodiscard]] virtual Act map_ids(const IdRange& uids, const IdRange& gids) = 0;
  [[nodiscard]] virtual Act make_time_namespace() = 0;
  // A sealed memfd with a small program in it, executed.
  [[nodiscard]] virtual Act exec_memfd() = 0;
  // The directory for records and id locks, as a run would open it; its path. A record is written
  // and removed, and nothing else made.
  [[nodiscard]] virtual Result<std::string> runtime_directory(
      const policy::RuntimeConfig& config) = 0;
  // A group of one run, made with its limits and removed; and its record with it.
  [[nodiscard]] virtual Result<CgroupFacts> make_cgroup(const policy::RuntimeConfig& config) = 0;

  // The languages of which an empty program ran: see doctor_run.h.
  [[nodiscard]] virtual Result<std::vector<std::string>> run_languages(
      const std::string& rootfs, const policy::RuntimeConfig& config) = 0;

  // 0 or an errno. seccomp(2): the operation with these flags and a null argument.
  [[nodiscard]] virtual int seccomp(unsigned operation, unsigned flags) = 0;
  // 0 or an errno. SECCOMP_GET_ACTION_AVAIL.
  [[nodiscard]] virtual int seccomp_action(std::uint32_t action) = 0;
  // landlock_create_ruleset(2) version query: the ABI, or a negative errno.
  [[nodiscard]] virtual int landlock_abi() = 0;
};

[[nodiscard]] std::unique_ptr<Host> real_host();

}  // namespace sbx::cli
