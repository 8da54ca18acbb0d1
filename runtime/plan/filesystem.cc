// What the payload will see as files: tmpfs mounts, devices, masks, and the host's /usr as a root.
#include "runtime/plan/layout.h"

namespace sbx::plan {
namespace {

constexpr std::uint64_t kCodeSlack = 16 * kPage;

std::vector<TmpfsMount> tmpfs_mounts(const policy::Limits& limits, bool has_code, bool has_inputs,
                                     std::uint64_t code_size, bool has_workspace) {
  std::vector<TmpfsMount> mounts;
  mounts.push_back({.target = "/tmp",
                    .size = limits.tmp,
                    .inodes = limits.tmp_inodes,
                    .mode = "1777",
                    .payload_owns = true,
                    .limit = "tmp"});
  mounts.push_back({.target = "/output",
                    .size = limits.output,
                    .inodes = limits.output_inodes,
                    .mode = "0755",
                    .payload_owns = true,
                    .collected = true,
                    .limit = "output"});
  mounts.push_back({.target = "/work",
                    .size = limits.work,
                    .inodes = limits.work_inodes,
                    .mode = "0755",
                    .payload_owns = true,
                    .saved = has_workspace,
                    .limit = "work"});
  // Without anything to put there, the root's own empty, read-only directory serves.
  if (has_code) {
    mounts.push_back({.target = "/code",
                      .size = code_size + kCodeSlack,
                      .inodes = 8,
                      .mode = "0755",
                      .read_only = true,
                      .limit = {}});
  }
  if (has_inputs) {
    mounts.push_back({.target = "/input",
                      .size = limits.input,
                      .inodes = limits.input_inodes,
                      .mode = "0755",
                      .read_only = true,
                      .limit = {}});
  }
  return mounts;
}

// Handles on the whole machine, and what tells which machine it is or what it and others do on it.
// Each costs every run some 25 µs, so figures that programs ask for and that say little more than
// how large and how busy the host is stay (loadavg, meminfo, cpuinfo, uptime, version:
// SECURITY.md). All of /proc is read-only. What this kernel does not have is passed over.
std::vector<Mask> proc_masks(std::uint32_t visible_cpus, const std::string& hostname) {
  std::vector<Mask> masks;
  for (const char* file : {"/proc/kcore",         "/proc/keys",
                           "/proc/key-users",     "/proc/timer_list",
                           "/proc/sched_debug",   "/proc/sysrq-trigger",
                           "/proc/kmsg",          "/proc/kallsyms",
                           "/proc/latency_stats", "/proc/interrupts",
                           "/proc/softirqs",      "/proc/modules",
                           "/proc/config.gz",     "/proc/cmdline",
                           "/proc/diskstats",     "/proc/partitions",
                           "/proc/zoneinfo",      "/proc/cgroups",
                           "/proc/locks",         "/proc/swaps",
                           "/proc/mdstat",        "/proc/sys/kernel/random/boot_id"}) {
    masks.push_back({.path = file, .kind = MaskKind::kFile, .content = {}});
  }
  masks.push_back({.path = "/proc/sys/kernel/pty/nr", .content = {}});
  // Of /proc/sys/fs it is five counters of what everybody has open (file-nr, inode-nr, …); the rest
  // are limits that no library asks for.
  for (const char* directory : {"/proc/acpi", "/proc/bus", "/proc/irq", "/proc/fs", "/proc/scsi",
                                "/proc/driver", "/proc/asound", "/proc/pressure", "/proc/sys/fs"}) {
    masks.push_back({.path = directory, .kind = MaskKind::kDirectory, .content = {}});
  }
  // What libc and libuv count CPUs by: as many as the run may use, and nothing of the host's load.
  std::string stat = "cpu  0 0 0 0 0 0 0 0 0 0\n";
  for (std::uint32_t cpu = 0; cpu < visible_cpus; ++cpu) {
    stat += "cpu" + std::to_string(cpu) + " 0 0 0 0 0 0 0 0 0 0\n";
  }
  masks.push_back({.path = "/proc/stat", .kind = MaskKind::kContent, .content = stat});
  // Poll on the kernel's own tells of every namespace's names, and so when a run starts.
  masks.push_back({.path = "/proc/sys/kernel/hostname",
                   .kind = MaskKind::kContent,
                   .content = hostname + "\n"});
  masks.push_back({.path = "/proc/sys/kernel/domainname", .content = {}});
  return masks;
}

// With the host's network come the names that it knows.
void plan_resolver(Plan& plan) {
  plan.binds.push_back(
      {.source = "/etc/resolv.conf", .target = "etc/resolv.conf", .optional = true});
  for (auto& [path, content] : plan.files) {
    if (path == "etc/nsswitch.conf") content = "passwd: files\ngroup: files\nhosts: files dns\n";
  }
}

void plan_host_root(Plan& plan) {
  plan.directories = {"dev",
                      "proc",
                      "tmp",
                      "code",
                      "input",
                      "output",
                      "work",
                      "etc",
                      "usr",
                      "etc/ssl",
                      "var",
                      "var/cache",
                      "var/cache/fontconfig"};
  plan.symlinks = {
      {"bin", "usr/bin"}, {"sbin", "usr/sbin"}, {"lib", "usr/lib"}, {"lib64", "usr/lib64"}};
  plan.files = {
      {"etc/passwd", "root:x:0:0:root:/:/bin/false\nsandbox:x:65534:65534:sandbox:/work:/bin/sh\n"},
      {"etc/group", "root:x:0:\nsandbox:x:65534:\n"},
      {"etc/hosts", "127.0.0.1 localhost\n::1 localhost\n"},
      {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
  };
  plan.binds.push_back({.source = "/usr", .target = "usr", .directory = true});
  for (const char* directory : {"etc/alternatives", "etc/fonts", "etc/ssl/certs",
                                "etc/ld.so.conf.d", "var/cache/fontconfig"}) {
    plan.binds.push_back({.source = std::string("/") + directory,
                          .target = directory,
                          .directory = true,
                          .optional = true});
  }
  for (const char* file :
       {"etc/ld.so.cache", "etc/ld.so.conf", "etc/localtime", "etc/matplotlibrc"}) {
    plan.binds.push_back({.source = std::string("/") + file, .target = file, .optional = true});
  }
}

}  // namespace

void plan_filesystem(Plan& plan, bool has_code, bool has_inputs) {
  const policy::Limits& limits = plan.policy.limits;
  std::uint64_t code_size = 0;
  for (const FillEntry& entry : plan.fill) {
    if (has_code && entry.tmpfs == kCodeMount) {
      code_size += pages_of(entry.content.size()) * kPage;
    }
  }
  plan.tmpfs = tmpfs_mounts(limits, has_code, has_inputs, code_size, plan.workspace);
  plan.shm = {.target = "/dev/shm",
              .size = limits.shm,
              .inodes = limits.shm_inodes,
              .mode = "1777",
              .payload_owns = true,
              .noexec = true,
              .limit = "shm"};
  for (const Device& device : kGivenDevices) plan.devices.emplace_back(device.name);
  plan.masks = proc_masks(plan.visible_cpus, plan.hostname);
  for (const TmpfsMount& mount : plan.tmpfs) {
    if (!mount.read_only) plan.writable.push_back(mount.target);
  }
  plan.writable.emplace_back("/dev/shm");
  if (!plan.image.is_host()) return;
  plan_host_root(plan);
  if (!plan.net_namespace) plan_resolver(plan);
}

}  // namespace sbx::plan
