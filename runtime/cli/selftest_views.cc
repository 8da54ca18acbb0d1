// Attacks by looking: what /proc, /dev, the mounts and shared names tell of the host. A table, with
// the columns of selftest_system_calls.cc.
#include "runtime/cli/selftest_tables.h"

namespace sbx::cli {
namespace {

constexpr std::string_view kProc = "proc";
constexpr std::string_view kRootfs = "rootfs";
constexpr std::string_view kCorePattern = "/proc/sys/kernel/core_pattern";
constexpr std::string_view kHostname = "/proc/sys/kernel/hostname";
constexpr std::string_view kDomainName = "/proc/sys/kernel/domainname";
constexpr std::string_view kSysrq = "/proc/sysrq-trigger";

bool is_zero(std::string_view value) {
  return value == "0";
}
bool is_nothing(std::string_view value) {
  return value == "nothing";
}
bool is_empty(std::string_view value) {
  return value == "empty";
}
bool is_none(std::string_view value) {
  return value == "none";
}
bool is_masked(std::string_view value) {
  return value == "masked";
}

// A file of /proc that says nothing inside; where the host has none, there is nothing to hide. Of
// the caller: it tells of him, and he may have nothing.
constexpr bool kOfTheCaller = true;
constexpr AttackCase silent(std::string_view path, bool of_the_caller = false) {
  return {kViews, path,   kProc,        "file", path, path, value(is_nothing, ENOENT),
          kPlain, ENOENT, of_the_caller};
}
constexpr AttackCase empty(std::string_view path) {
  return {kViews, path,   kProc, "directory", path, path, value(is_empty, ENOENT),
          kPlain, ENOENT, true};
}

constexpr AttackCase kViewsCases[] = {
    // The host's own /proc may be mounted with hidepid.
    {kViews, "other processes in /proc", "pid_namespace", "processes", "", "", value(is_zero),
     kPlain, 0, true},
    {kViews, "pid 1 in /proc", kProc, "open", "/proc/1/stat", "/proc/1/stat", refused(ENOENT),
     kPlain, 0, true},
    silent("/proc/kcore"),
    silent("/proc/keys", kOfTheCaller),
    silent("/proc/key-users", kOfTheCaller),
    silent("/proc/timer_list"),
    silent("/proc/kallsyms"),
    silent("/proc/interrupts"),
    silent("/proc/softirqs"),
    silent("/proc/modules"),
    silent("/proc/config.gz"),
    silent("/proc/cmdline"),
    silent("/proc/diskstats"),
    silent("/proc/partitions"),
    silent("/proc/zoneinfo"),
    silent("/proc/cgroups"),
    silent("/proc/sched_debug"),
    silent("/proc/latency_stats"),
    silent("/proc/sys/kernel/random/boot_id"),
    {kViews, "/proc/kmsg", kProc, "masked", "/proc/kmsg", "/proc/kmsg", value(is_masked, ENOENT),
     kPlain, ENOENT},
    {kViews, "/proc/locks", kProc, "masked", "/proc/locks", "/proc/locks", value(is_masked, ENOENT),
     kPlain, ENOENT, true},
    {kViews, "/proc/swaps", kProc, "masked", "/proc/swaps", "/proc/swaps", value(is_masked, ENOENT),
     kPlain, ENOENT, true},
    // What can be waited on tells when something happens: here, that any run of the host starts.
    {kViews, "watch for hosts' names", kProc, "watch", kHostname, kHostname, refused(EPERM), kPlain,
     0, true},
    {kViews, "watch for domains' names", kProc, "watch", kDomainName, kDomainName, refused(EPERM),
     kPlain, 0, true},
    empty("/proc/acpi"),
    empty("/proc/bus"),
    empty("/proc/irq"),
    empty("/proc/fs"),
    empty("/proc/scsi"),
    empty("/proc/driver"),
    empty("/proc/asound"),
    empty("/proc/pressure"),
    {kViews, "sysrq-trigger", kProc, "open_for_writing", kSysrq, kSysrq, refused(EROFS), kRoot,
     ENOENT},
    {kViews, "core_pattern", kProc, "open_for_writing", kCorePattern, kCorePattern,
     refused(EROFS, EACCES), kRoot},
    {kViews, "hostname in /proc", kProc, "open_for_writing", kHostname, kHostname,
     refused(EROFS, EACCES), kRoot},
    {kViews, "anything writable in /proc", kProc, "writable_proc", "", "", value(is_none), kAway},
    {kViews, "paths of the caller", "mount_namespace", "words", "@words", "@words", value(is_none),
     kPlain},
    {kViews, "mounts of cgroups", "mount_namespace", "mounts_of", "cgroup", "cgroup",
     value(is_zero), kPlain, 0, true},
    {kViews, "mounts of sysfs", "mount_namespace", "mounts_of", "sysfs", "sysfs", value(is_zero),
     kPlain, 0, true},
    {kViews, "cgroup path", "cgroup_namespace", "cgroup", "", "",
     value([](std::string_view path) { return path == "/"; }), kPlain, 0, true},
    {kViews, "/sys", kRootfs, "directory", "/sys", "/sys", refused(ENOENT), kPlain},
    {kViews, "devices beyond the list", kRootfs, "devices", "", "",
     value([](std::string_view names) { return names == "full null random urandom zero"; }), kPlain,
     0, true},
    {kViews, "the kernel's log", kRootfs, "open_device", "kmsg", "kmsg", refused(ENOENT), kRoot,
     ENOENT},
    {kViews, "new terminals", kRootfs, "open_device", "ptmx", "ptmx", refused(ENOENT), kPlain,
     ENOENT},
    {kViews, "write to /etc", kRootfs, "write_file", "/etc/sbx-probe", "/etc/sbx-probe",
     refused(EROFS), kAway},
    {kViews, "files of the host", kRootfs, "host_file", "@canary", "@canary", refused(ENOENT),
     kPlain},
    {kViews, "System V queues of the host", "ipc_namespace", "sysv_queue", "@queue", "@queue",
     refused(ENOENT), kPlain, ENOSYS},
    {kViews, "hostname", "uts_namespace", "hostname", "", "",
     value([](std::string_view name) { return name == "sandbox"; }), kPlain, 0, true},
    {kViews, "uptime", "time_namespace", "uptime", "", "",
     value([](std::string_view age) { return age == "fresh"; }), kPlain, 0, true},
};

}  // namespace

std::span<const AttackCase> view_cases() {
  return kViewsCases;
}

}  // namespace sbx::cli
