#include "tests/adversarial/matrix_text.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace sbx::test {
namespace {

struct Reason {
  std::string_view key;
  std::string_view text;
  std::vector<std::string_view> attacks;
};

// A table.
const std::vector<Reason>& reasons() {
  static const std::vector<Reason> all = {
      {"open to all",
       "Every process of a Linux machine may make this call, and it acts on what is the process's "
       "own. "
       "The filter keeps kernel code that nobody needs out of reach; what would come of the call "
       "is "
       "bounded by the other layers.",
       {"clone3 answers ENOSYS",
        "io_uring_setup",
        "io_uring_enter",
        "io_uring_register",
        "perf_event_open",
        "userfaultfd",
        "fanotify_init",
        "personality",
        "personality, high bits",
        "modify_ldt",
        "prctl PR_SET_MM",
        "prctl PR_SET_MM, high bits",
        "prctl PR_SET_KEEPCAPS",
        "prctl PR_MCE_KILL",
        "int 0x80",
        "x32",
        "netlink socket",
        "netlink socket, high bits",
        "vsock socket",
        "alg socket",
        "call of the future"}},
      {"own keys",
       "As above; and the session keyring is the run's own, so that no other run and not the "
       "caller is "
       "met there (`Keys.OfOneRunAreUnseenByAnotherEvenWithoutTheFilter`).",
       {"keyctl", "add_key", "request_key"}},
      {"argument first",
       "The kernel looks at the argument, which is one that does no harm outside, before it asks "
       "for "
       "the right; with a right argument it asks for one that nobody below the outer user "
       "namespace "
       "has, or for a descriptor that a stopped call would have made.",
       {"fsconfig", "take a descriptor", "quotactl", "quotactl_fd"}},
      {"no terminal",
       "The probe asks a bad descriptor. Besides, standard input and output are pipes, and there "
       "is no "
       "controlling terminal (`SettingUp.TheCallersTerminalCannotBeTypedInto`).",
       {"type into the terminal", "type into the terminal, high bits", "paste into the terminal",
        "paste into the terminal, high bits", "change the line discipline"}},
      {"beside the limits",
       "No group is charged for what is kept, or it comes from a budget or pool of the whole "
       "host. Only `rlimits` and the cap on processes bound how much it is in all.",
       {"IPv6 extension headers", "IPv6 extension headers, high bits", "socket filter",
        "protocol module on a socket", "prctl PR_SET_VMA", "setxattr", "lsetxattr", "fsetxattr",
        "map huge pages", "map huge pages, high bits", "memfd of huge pages"}},
      {"the same files",
       "The image's files, the memory and the disk that they are in, and the host's devices are "
       "the "
       "same for all runs. `user_namespace` bounds how many inotify instances there are, not what "
       "they tell.",
       {"inotify_init1", "inotify_add_watch", "fcntl F_NOTIFY", "fcntl F_NOTIFY, high bits",
        "fsync", "fdatasync", "sync_file_range", "fadvise64", "cachestat", "mincore",
        "preadv2 RWF_NOWAIT", "preadv2 RWF_NOWAIT, high bits", "madvise MADV_PAGEOUT",
        "madvise MADV_PAGEOUT, high bits"}},
      {"own limits",
       "Every process may lower its own limits.",
       {"core limit to 0", "core limit to 0, high bits", "core limit to 0 by setrlimit",
        "core limit to 0 by setrlimit, high bits"}},
      {"two together",
       "Other layers stop it too, but only together: `capabilities` and `uid_separation` what is "
       "done "
       "to pid 1, these or `proc` what is seen of it, and `capabilities` without a namespace that "
       "maps "
       "root a change of uid.",
       {"limits of pid 1", "limits of pid 1, high bits", "pid 1 in /proc", "become root"}},
      {"everybody's file",
       "On the host everybody may read it. It tells about the machine, and the mask is what hides "
       "it.",
       {"/proc/kallsyms",
        "/proc/interrupts",
        "/proc/softirqs",
        "/proc/config.gz",
        "/proc/cmdline",
        "/proc/diskstats",
        "/proc/partitions",
        "/proc/zoneinfo",
        "/proc/cgroups",
        "/proc/modules",
        "/proc/sys/kernel/random/boot_id",
        "/proc/kmsg",
        "/proc/locks",
        "/proc/swaps",
        "watch for hosts' names",
        "watch for domains' names",
        "/proc/bus",
        "/proc/irq",
        "/proc/fs",
        "/proc/pressure",
        "/proc/acpi",
        "/proc/scsi",
        "/proc/driver",
        "/proc/asound",
        "/proc/sched_debug",
        "/proc/latency_stats"}},
      {"nothing to see",
       "What the pid, mount or user namespace holds is the run's own: there is nothing of anybody "
       "else.",
       {"other processes in /proc", "paths of the caller", "/proc/keys", "/proc/key-users"}},
      {"host's root",
       "The kernel asks for the host's root before it looks at the mount, which is read-only "
       "besides "
       "(*anything writable in /proc*).",
       {"core_pattern", "hostname in /proc", "sysrq-trigger"}},
      {"not there",
       "What is nowhere inside cannot be opened. The probe asks for what everybody may open on the "
       "host; all else is kept from ids that are nobody's by its own modes too.",
       {"mounts of cgroups", "mounts of sysfs", "/sys", "devices beyond the list", "new terminals",
        "files of the host", "sockets of the host", "a nameserver",
        "/run/systemd/resolve/io.systemd.Resolve", "/run/nscd/socket",
        "/run/dbus/system_bus_socket", "/var/run/docker.sock"}},
      {"a name only",
       "A name, a number or a clock that the namespace has of its own; nothing can be done with "
       "the "
       "host's.",
       {"System V queues of the host", "hostname", "uptime", "cgroup path"}},
      {"no way out",
       "A net namespace without an interface that is up has no way out. The filter sees no "
       "addresses; "
       "where sockets are not needed at all, the profile `judge` refuses them.",
       {"UDP to the internet", "TCP to the internet", "DNS to the internet", "DNS of the machine",
        "DNS of systemd-resolved", "TCP to cloud metadata", "UDP to cloud metadata",
        "IPv6 to the internet", "IPv6 to cloud metadata", "IPv6 loopback", "TCP over IPv6",
        "loopback services", "abstract sockets", "interfaces"}},
      {"the layer itself",
       "The case asks whether the layer is on; of a program that was executed in an unusual way, "
       "whether all of those are that make a process powerless.",
       {"a filter is on", "no capability", "no host id in uid_map", "no_new_privs",
        "core limit is 1", "execute a memfd", "execute /proc/self/fd/N"}},
      {"closed twice",
       "No layer, and closed twice: every descriptor of ours is close-on-exec, and all are closed "
       "before the exec (`ArenaTest.DescriptorsAreClosedBeforeTheExec`).",
       {"descriptors above 2"}},
  };
  return all;
}

// Why two layers could not be shown where this was written: of attacks that have them elsewhere.
const std::vector<Reason>& reasons_unshown() {
  static const std::vector<Reason> all = {
      {"not shown: no such call",
       "The kernel on which this was written has no such call. One that has it asks for a "
       "capability over the host itself before it looks at anything else, and that nobody below "
       "the outer user namespace has (*never off*); the filter is the second layer.",
       {"kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "iopl",
        "ioperm"}},
      {"not shown: no such family",
       "The kernel on which this was written has no such sockets. One that has them asks for "
       "CAP_NET_ADMIN first (`capabilities`); the filter is the second layer.",
       {"key socket"}},
      {"not shown: no such file",
       "The kernel on which this was written has no such file. Where there is one only the host's "
       "root may open it (*never off*), and it is masked (`proc`).",
       {"/proc/kcore"}},
  };
  return all;
}

std::string_view reason_in(const std::vector<Reason>& all, std::string_view attack) {
  for (const Reason& reason : all) {
    const auto& names = reason.attacks;
    if (std::find(names.begin(), names.end(), attack) != names.end()) return reason.key;
  }
  return "";
}

constexpr std::string_view kHead =
    "# Which layer stops which attack\n"
    "\n"
    "Made and compared by `adversarial_matrix_test`. Each attack of `sbx-run selftest` is made in "
    "a box without any layer, "
    "in boxes with\none layer each, and in boxes without one layer each. *Never off* are the outer "
    "user namespace and the "
    "pid and mount namespaces. Where\nfewer than two layers stop an attack by themselves, the last "
    "column says why; the "
    "words are explained at the end. An attack that\ncould not be made on the host where this was "
    "written has no layers "
    "(*n.a.*), and the last column says what\nwould stop it; system calls are made against the "
    "filter itself in `EveryLine.*`.\n";

std::string row_text(const MatrixRow& row) {
  std::string layers;
  for (const std::string& name : row.alone) {
    if (!layers.empty()) layers += ", ";
    layers += name == kNeverOff ? "*never off*" : "`" + name + "`";
  }
  if (row.state == cli::CaseState::kNotApplicable) layers = "n.a.";
  return "| " + std::string(row.attack->name) + " | " + layers + " | " +
         std::string(reason_for_row(row)) + " |";
}

// The lines of a file by their first cell.
std::map<std::string, std::string> lines_by_attack(const std::string& text) {
  std::map<std::string, std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    const std::size_t end = line.find(" | ");
    if (line.starts_with("| ") && end != std::string::npos) lines[line.substr(2, end - 2)] = line;
  }
  return lines;
}

std::string legend() {
  std::string text = "\n## Why not two\n\n";
  for (const auto* const all : {&reasons(), &reasons_unshown()}) {
    for (const Reason& reason : *all) {
      text += "* **" + std::string(reason.key) + "**: " + std::string(reason.text) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string_view reason_for_one(std::string_view attack) {
  return reason_in(reasons(), attack);
}

std::string_view reason_for_row(const MatrixRow& row) {
  const std::string_view reason = reason_for_one(row.attack->name);
  if (!reason.empty() || row.state != cli::CaseState::kNotApplicable) return reason;
  return reason_in(reasons_unshown(), row.attack->name);
}

std::string matrix_text(const std::vector<MatrixRow>& rows, const std::string& reviewed) {
  const auto known = lines_by_attack(reviewed);
  std::string text(kHead);
  std::string_view section;
  for (const MatrixRow& row : rows) {
    const std::string_view now = cli::attack_class_name(row.attack->attack_class);
    if (now != section) {
      text += "\n## " + std::string(now) +
              "\n\n| attack | stopped by itself by | why not two |\n|---|---|---|\n";
      section = now;
    }
    const auto line = known.find(std::string(row.attack->name));
    const bool kept = row.state == cli::CaseState::kNotApplicable && line != known.end() &&
                      line->second.find(" | n.a. | ") == std::string::npos;
    text += (kept ? line->second : row_text(row)) + "\n";
  }
  return text + legend();
}

}  // namespace sbx::test
