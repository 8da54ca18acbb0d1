// sbx-bench-floor: the least that a sandbox made of every namespace can cost. A yardstick, no
// sandbox: it has no supervisor, cgroup, time limit or captured output, and ends on the first
// surprise.
//
//   sbx-bench-floor [--serve] ROOTFS [GROUP]... -- PROGRAM [ARGUMENT]...
//
// In each GROUP, a cgroup v1 directory, one group is made before, joined by the child, and removed
// after: with one for each hierarchy that sbx-run uses, what limits alone cost is in the figure.
// One process, one thread. It builds the root once, in a mount namespace of its own, and then
// clones a child into all namespaces that adds tmpfs and proc, drops everything, loads the shipped
// filter and executes PROGRAM. With --serve it does so for each byte on its stdin, and answers with
// the exit code.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/policy/shipped.h"

namespace {

constexpr int kExitFailed = 77;
constexpr int kNamespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET |
                            CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;
constexpr const char* kDevices[] = {"null", "zero", "urandom"};

// Also used by the child, which shares our memory: no exit handlers, no buffers.
void check(long result, const char* operation) {
  if (result >= 0) return;
  (void)dprintf(2, "sbx-bench-floor: %s: %m\n", operation);
  _exit(kExitFailed);
}

void write_text(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  check(fd, path);
  check(write(fd, text, strlen(text)), path);
  close(fd);
}

// Root needs none: the child's is enough.
void enter_user_namespace() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (uid == 0) return;
  check(unshare(CLONE_NEWUSER), "unshare(CLONE_NEWUSER)");
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/uid_map", ("0 " + std::to_string(uid) + " 1").c_str());
  write_text("/proc/self/gid_map", ("0 " + std::to_string(gid) + " 1").c_str());
}

void bind(const std::string& from, const std::string& to) {
  check(mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr), to.c_str());
}

void add_devices(const std::string& directory) {
  check(mount("tmpfs", directory.c_str(), "tmpfs", MS_NOSUID | MS_NOEXEC, "size=64k,mode=755"),
        "mount(/dev)");
  for (const char* name : kDevices) {
    const std::string path = directory + "/" + name;
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    check(fd, path.c_str());
    close(fd);
    bind(std::string("/dev/") + name, path);
  }
}

void build_root(const std::string& rootfs) {
  check(unshare(CLONE_NEWNS), "unshare(CLONE_NEWNS)");
  check(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount(MS_PRIVATE)");
  const int root = open_tree(AT_FDCWD, rootfs.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  check(root, "open_tree");
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  check(mount_setattr(root, "", AT_EMPTY_PATH, &attributes, sizeof attributes), "mount_setattr");
  check(move_mount(root, "", AT_FDCWD, rootfs.c_str(), MOVE_MOUNT_F_EMPTY_PATH), "move_mount");
  add_devices(rootfs + "/dev");
  bind("/proc", rootfs + "/proc");  // without one in sight, the child may not mount its own
  check(fchdir(root), "fchdir");
  check(syscall(SYS_pivot_root, ".", "."), "pivot_root");
  check(umount2(".", MNT_DETACH), "umount2");
  check(chdir("/"), "chdir");
  close(root);
}

void set_limit(int resource, rlim_t value) {
  const rlimit limit{value, value};
  check(prlimit(0, static_cast<__rlimit_resource>(resource), &limit, nullptr), "prlimit");
}

void drop_everything() {
  set_limit(RLIMIT_NOFILE, 256);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_FSIZE, 64U << 20);
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[2] = {};
  check(syscall(SYS_capset, &header, none), "capset");
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "PR_SET_NO_NEW_PRIVS");
}

// The filter notifies where it denies; nobody listens after the exec, so such a call gets ENOSYS.
void load_filter() {
  const auto bpf = sbx::policy::shipped_profile_table().front().bpf;
  sock_fprog program{static_cast<unsigned short>(bpf.size() / sizeof(sock_filter)),
                     reinterpret_cast<sock_filter*>(const_cast<std::uint8_t*>(bpf.data()))};
  const int listener = static_cast<int>(
      syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
  check(listener, "seccomp");
}

// One hierarchy of cgroup v1, and in it the group of this run.
struct Hierarchy {
  int parent;
  int tasks;
};

struct Job {
  std::vector<Hierarchy> hierarchies;
  std::string group;
  char** argv = nullptr;
};

// The descriptors are opened before the root is built, which hides the hierarchies.
Job parse_job(char** words) {
  Job job;
  job.group = "floor-" + std::to_string(getpid());
  for (; *words != nullptr; ++words) {
    if (strcmp(*words, "--") == 0) {
      job.argv = words[1] != nullptr ? words + 1 : nullptr;
      break;
    }
    job.hierarchies.push_back({open(*words, O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1});
    check(job.hierarchies.back().parent, *words);
  }
  return job;
}

void make_groups(Job& job) {
  for (Hierarchy& hierarchy : job.hierarchies) {
    check(mkdirat(hierarchy.parent, job.group.c_str(), 0755), "mkdir(group)");
    hierarchy.tasks =
        openat(hierarchy.parent, (job.group + "/tasks").c_str(), O_WRONLY | O_CLOEXEC);
    check(hierarchy.tasks, "open(tasks)");
  }
}

void remove_groups(const Job& job) {
  for (const Hierarchy& hierarchy : job.hierarchies) {
    close(hierarchy.tasks);
    // The child is dead, but leaves its groups a moment later.
    while (unlinkat(hierarchy.parent, job.group.c_str(), AT_REMOVEDIR) != 0) {
      check(errno == EBUSY ? 0 : -1, "rmdir(group)");
    }
  }
}

int child(void* arguments) {
  const Job& job = *static_cast<const Job*>(arguments);
  char** const argv = job.argv;
  for (const Hierarchy& hierarchy : job.hierarchies) {
    check(write(hierarchy.tasks, "0", 1), "join");
  }
  check(mount("tmpfs", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m,mode=1777"), "mount(/tmp)");
  check(mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr), "mount(/proc)");
  write_text("/proc/self/setgroups", "deny");
  write_text("/proc/self/uid_map", "65534 0 1");
  write_text("/proc/self/gid_map", "65534 0 1");
  drop_everything();
  load_filter();
  static char path[] = "PATH=/usr/bin:/bin";
  char* const environment[] = {path, nullptr};
  execve(argv[0], argv, environment);
  _exit(kExitFailed);
}

int run_once(Job& job) {
  alignas(64) static char stack[256 * 1024];
  make_groups(job);
  const pid_t pid =
      clone(child, stack + sizeof stack, kNamespaces | CLONE_VM | CLONE_VFORK | SIGCHLD, &job);
  check(pid, "clone");
  int status = 0;
  check(waitpid(pid, &status, 0), "waitpid");
  remove_groups(job);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitFailed;
}

// Stdin and stdout carry the requests; the programs get /dev/null for them.
void serve(Job& job, int requests, int answers) {
  unsigned char byte = 0;
  while (read(requests, &byte, 1) == 1) {
    byte = static_cast<unsigned char>(run_once(job));
    check(write(answers, &byte, 1), "write");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool serving = argc > 1 && strcmp(argv[1], "--serve") == 0;
  char** const words = argv + (serving ? 2 : 1);
  Job job = words < argv + argc ? parse_job(words + 1) : Job{};
  if (job.argv == nullptr) {
    (void)fprintf(stderr,
                  "usage: sbx-bench-floor [--serve] ROOTFS [GROUP]... -- PROGRAM [ARGUMENT]...\n");
    return 2;
  }
  int requests = -1;
  int answers = -1;
  if (serving) {
    requests = fcntl(0, F_DUPFD_CLOEXEC, 3);
    answers = fcntl(1, F_DUPFD_CLOEXEC, 3);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    check(dup2(null, 0), "dup2");
    check(dup2(null, 1), "dup2");
  }
  enter_user_namespace();
  build_root(words[0]);
  if (!serving) return run_once(job);
  serve(job, requests, answers);
  return 0;
}
