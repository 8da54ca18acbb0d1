#include "runtime/spawn/spawner_process.h"

#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>

#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"
#include "runtime/child/kernel.h"
#include "runtime/spawn/id_maps.h"
#include "runtime/spawn/launch.h"
#include "runtime/spawn/net_namespace.h"
#include "runtime/spawn/protocol.h"

namespace sbx::spawn {
namespace {

// `error`: an errno of a namespace's, or negative that of what it could not become ordinary by.
[[noreturn]] void give_up(int socket, int error) {
  (void)sys::send_packet(socket, {reinterpret_cast<const std::uint8_t*>(&error), sizeof error}, {});
  ::_exit(1);
}

void report_step(int socket) {
  const std::int32_t none = 0;
  if (!sys::send_packet(socket, {reinterpret_cast<const std::uint8_t*>(&none), sizeof none}, {})) {
    ::_exit(1);
  }
}

// Also after every change of uid, which clears it.
void die_with_supervisor(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || (parent != 0 && ::getppid() != parent)) ::_exit(1);
}

bool become_outer_root(const SpawnerOptions& options) {
  if (options.ids != plan::IdMode::kSingle && ::setgroups(0, nullptr) != 0) return false;
  return ::setresgid(0, 0, 0) == 0 && ::setresuid(0, 0, 0) == 0;
}

// The two namespaces that everything later is done in. Mounts of ours must
// reach nobody else. What takes longest, a net namespace, needs no ids: it is
// made while the supervisor gets to giving them.
void enter_namespaces(int socket, const SpawnerOptions& options, NetNamespaces& net) {
  if (::unshare(CLONE_NEWUSER) != 0) give_up(socket, errno);
  report_step(socket);
  // A run that needs one will say why there is none.
  if (options.single_run)
    net.enter();
  else
    (void)net.refill();
  std::uint8_t go = 0;
  const auto packet = sys::receive_packet(socket, {&go, 1});
  if (!packet || !*packet || (*packet)->size != 1) ::_exit(1);  // the supervisor is gone
  if (options.ids == plan::IdMode::kSingle) {
    if (auto mapped = write_own_map(options); !mapped) give_up(socket, mapped.error().sys_errno);
  }
  if (!become_outer_root(options)) give_up(socket, errno);
  die_with_supervisor(0);
  if (::unshare(CLONE_NEWNS) != 0) give_up(socket, errno);
  if (::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) give_up(socket, errno);
}

// One live run, as the spawner knows it.
struct LiveRun {
  UniqueFd control;
  UniqueFd trees[kTreeCount];  // /output and /work, until their walker has been
                               // forked
  UniqueFd mounts;             // init's mount namespace, until init's end has been told
  pid_t pid = -1;              // init; -1 once reaped
  pid_t walkers[kTreeCount] = {-1, -1};

  [[nodiscard]] UniqueFd& tree(Tree which) { return trees[static_cast<std::size_t>(which)]; }
  [[nodiscard]] bool over() const {
    return !control && pid == -1 && walkers[0] == -1 && walkers[1] == -1;
  }
};

class SpawnerLoop {
 public:
  SpawnerLoop(UniqueFd socket, UniqueFd signals, NetNamespaces namespaces,
              const SpawnerOptions& options)
      : socket_(std::move(socket)),
        signals_(std::move(signals)),
        collect_(options.collect),
        single_run_(options.single_run),
        namespaces_(std::move(namespaces)) {}

  [[noreturn]] void run() {
    for (bool refilling = true;;) {
      std::vector<pollfd> fds{{socket_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}};
      for (const LiveRun& live : runs_) fds.push_back({live.control.get(), POLLIN, 0});
      const int ready = ::poll(fds.data(), fds.size(), refilling ? 0 : -1);
      if (ready < 0 && errno != EINTR) ::_exit(1);
      if (ready <= 0) {
        refilling = namespaces_.refill();
        continue;
      }
      if (fds[1].revents != 0) reap();
      serve_controls(fds);
      if (single_run_ && launched_ && runs_.empty()) ::_exit(0);
      if (fds[0].revents != 0) take_launch();
      refilling = true;
    }
  }

 private:
  void take_launch();
  Result<LiveRun> launch(const LaunchPacket& packet, std::vector<UniqueFd>& fds);
  void serve_controls(const std::vector<pollfd>& fds);
  void take_control(LiveRun& live);
  void fork_walker(LiveRun& live, const CollectRequest& request, int stream);
  void reap();

  UniqueFd socket_;
  UniqueFd signals_;
  CollectHandler collect_;
  bool single_run_;
  bool launched_ = false;
  NetNamespaces namespaces_;
  std::list<LiveRun> runs_;
};

void answer(const LiveRun& live, const AnswerPacket& packet, std::vector<int> fds) {
  // A supervisor that is gone closed its end: nothing to tell it.
  (void)sys::send_packet(live.control.get(),
                         {reinterpret_cast<const std::uint8_t*>(&packet), sizeof packet}, fds);
}

void answer_failure(const LiveRun& live, const Error& error) {
  AnswerPacket packet;
  packet.kind = AnswerKind::kFailed;
  packet.error = error.sys_errno;
  const std::size_t size = std::min(error.operation.size(), sizeof packet.operation - 1);
  std::memcpy(packet.operation, error.operation.data(), size);
  answer(live, packet, {});
}

Result<UniqueFd> make_tree(Tree tree, const TmpfsText& options) {
  if (options.size[0] == '\0') return UniqueFd();
  const long mount = child::make_tmpfs(options.size, options.inodes, options.mode, options.uid, 0);
  if (mount >= 0) return UniqueFd(static_cast<int>(mount));
  errno = static_cast<int>(-mount);
  return sys_error(tree == Tree::kOutput ? "fsmount(/output)" : "fsmount(/work)");
}

// Held until init's end has been told: its mounts are taken down then, beside
// what the supervisor goes on to do. Only time is gained, so it does without
// where init is dead already.
UniqueFd hold_mounts(pid_t init) {
  const std::string path = "/proc/" + std::to_string(init) + "/ns/mnt";
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

Result<LiveRun> SpawnerLoop::launch(const LaunchPacket& packet, std::vector<UniqueFd>& fds) {
  LiveRun live;
  std::size_t next = 2;
  UniqueFd init_leaf;
  if (packet.has_init_leaf != 0 && next < fds.size()) init_leaf = std::move(fds[next++]);
  InitDescriptors descriptors;
  for (int slot = 0; slot < plan::kSlotCount; ++slot) {
    const bool passed = (packet.slots & (1U << slot)) != 0 && next < fds.size();
    descriptors.slots[slot] = passed ? fds[next++].get() : -1;
  }
  UniqueFd net;
  if (packet.net_namespace != 0) {
    SBX_ASSIGN(net, namespaces_.take());
    descriptors.slots[plan::kSlotNetns] = net.get();
  }
  for (const Tree tree : {Tree::kOutput, Tree::kWork}) {
    SBX_ASSIGN(live.tree(tree), make_tree(tree, packet.trees[static_cast<std::size_t>(tree)]));
    descriptors.slots[tree_slot(tree)] = live.tree(tree).get();
  }
  SBX_ASSIGN(Cloned cloned,
             clone_init(fds[1].get(), descriptors, init_leaf.get(), packet.without_namespaces));
  live.pid = cloned.pid;
  live.control = std::move(fds[0]);
  AnswerPacket launched;
  launched.kind = AnswerKind::kLaunched;
  launched.pid = cloned.pid;
  answer(live, launched, {cloned.pidfd.get()});
  live.mounts = hold_mounts(cloned.pid);
  return live;
}

void SpawnerLoop::take_launch() {
  LaunchPacket packet;
  auto received =
      sys::receive_packet(socket_.get(), {reinterpret_cast<std::uint8_t*>(&packet), sizeof packet});
  if (received && *received && (*received)->size == 0) ::_exit(0);  // the supervisor closed
  // A packet that could not be taken whole (no descriptor left): its control
  // socket closes with it, which fails that run; the others go on.
  if (!received || !*received) return;
  std::vector<UniqueFd>& fds = (*received)->fds;
  if ((*received)->size != sizeof packet || fds.size() < 2) return;
  launched_ = true;
  auto launched = launch(packet, fds);
  if (launched) {
    runs_.push_back(*std::move(launched));
    return;
  }
  LiveRun failed;
  failed.control = std::move(fds[0]);
  answer_failure(failed, launched.error());
}

// True when nothing lies below the directory: no collector is needed.
bool is_empty(int directory) {
  const auto fd = sys::open_at(directory, ".", O_RDONLY | O_DIRECTORY);
  if (!fd) return false;
  alignas(8) char buffer[512];
  const long size = ::syscall(SYS_getdents64, fd->get(), buffer, sizeof buffer);
  // "." and ".." alone: 24 bytes each.
  return size >= 0 && size <= 48;
}

void SpawnerLoop::reap() {
  signalfd_siginfo information;
  // A wake-up and no more: waitpid tells what happened.
  [[maybe_unused]] const ssize_t got = ::read(signals_.get(), &information, sizeof information);
  for (;;) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG | __WALL);
    if (pid <= 0) return;
    for (LiveRun& live : runs_) {
      for (pid_t& walker : live.walkers) {
        if (walker == pid) walker = -1;
      }
      if (live.pid != pid) continue;
      live.pid = -1;
      AnswerPacket ended;
      ended.kind = AnswerKind::kEnded;
      ended.status = status;
      const UniqueFd& output = live.tree(Tree::kOutput);
      ended.output_empty = !output || is_empty(output.get()) ? 1 : 0;
      answer(live, ended, {});
      // Nothing is left to be asked of us: our own end, too, goes beside the supervisor's work.
      if (single_run_ && ended.output_empty != 0 && !live.tree(Tree::kWork)) ::_exit(0);
      live.mounts.reset();
    }
  }
}

// A process of its own: what it reads was named by the payload, and other runs
// do not wait for it.
void SpawnerLoop::fork_walker(LiveRun& live, const CollectRequest& request, int stream) {
  const int tree = live.tree(request.tree).get();
  const pid_t pid = ::fork();
  if (pid == 0) {
    die_with_supervisor(0);
    // Only these two: what belongs to other runs is closed here.
    if (::dup3(tree, 3, O_CLOEXEC) == 3 && ::dup3(stream, 4, O_CLOEXEC) == 4 &&
        ::syscall(SYS_close_range, 5, ~0U, 0) == 0) {
      collect_(3, 4, request);
    }
    ::_exit(0);
  }
  live.walkers[static_cast<std::size_t>(request.tree)] = pid;
  live.tree(request.tree).reset();
}

// Anything but a request that can be served, and the peer's end of file, ends
// our part.
void SpawnerLoop::take_control(LiveRun& live) {
  CollectRequest request;
  const auto received = sys::receive_packet(
      live.control.get(), {reinterpret_cast<std::uint8_t*>(&request), sizeof request},
      MSG_DONTWAIT);
  if (received && !*received) return;
  const bool valid = received && (*received)->size == sizeof request &&
                     (*received)->fds.size() == 1 && live.pid == -1 &&
                     request.tree <= Tree::kWork && live.tree(request.tree);
  if (valid) return fork_walker(live, request, (*received)->fds.front().get());
  live.control.reset();
  for (UniqueFd& tree : live.trees) tree.reset();
}

void SpawnerLoop::serve_controls(const std::vector<pollfd>& fds) {
  std::size_t index = 2;
  for (auto live = runs_.begin(); live != runs_.end(); ++index) {
    if (live->control && index < fds.size() && fds[index].revents != 0) take_control(*live);
    // Init goes by its lifeline, which the supervisor that closed the control
    // socket holds.
    live = live->over() ? runs_.erase(live) : std::next(live);
  }
}

// What the supervisor's caller may be above others by must not reach a payload: a real-time policy,
// which no cgroup bounds, a negative nice value, the disk before all others, an exemption from the
// OOM killer, a persona in which memory that can be read can be executed. None of it takes a right
// to give up.
bool be_ordinary() {
  constexpr unsigned kNoPersona = 0, kAskPersona = 0xffffffff;
  constexpr int kIoClassShift = 13, kIoRealTime = 1, kIoOwn = 1;
  const int scheduler = ::sched_getscheduler(0);
  if (scheduler < 0) return false;
  const int policy = scheduler & ~SCHED_RESET_ON_FORK;
  const sched_param none{};
  if ((policy == SCHED_FIFO || policy == SCHED_RR) &&
      ::sched_setscheduler(0, SCHED_OTHER, &none) != 0) {
    return false;
  }
  if (::getpriority(PRIO_PROCESS, 0) < 0 && ::setpriority(PRIO_PROCESS, 0, 0) != 0) return false;
  const long io = ::syscall(SYS_ioprio_get, kIoOwn, 0);
  if (io >> kIoClassShift == kIoRealTime && ::syscall(SYS_ioprio_set, kIoOwn, 0, 0) != 0) {
    return false;
  }
  const auto spared = sys::read_file("/proc/self/oom_score_adj", 32);
  if (!spared) return false;
  if (spared->starts_with('-') && !sys::write_file("/proc/self/oom_score_adj", "0")) {
    return false;
  }
  return ::personality(kAskPersona) == kNoPersona || ::personality(kNoPersona) >= 0;
}

// What the supervisor ignores or blocks must not reach a payload, which
// inherits both over exec.
UniqueFd reset_signals() {
  for (int signal = 1; signal < NSIG; ++signal) (void)::signal(signal, SIG_DFL);  // KILL, STOP: no
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  sigset_t children;
  ::sigemptyset(&children);
  ::sigaddset(&children, SIGCHLD);
  return UniqueFd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
}

constexpr int kSocketFd = plan::kSlotCount;
constexpr int kSignalsFd = plan::kSlotCount + 1;

// Descriptors as they shall be: /dev/null on every slot's number (so that
// nothing we receive lies in the way of a slot), our two behind them, and none
// of the supervisor's or its caller's.
bool arrange_descriptors(UniqueFd socket, UniqueFd signals) {
  auto high_socket = sys::duplicate_above(socket.get(), 2 * plan::kSlotCount);
  auto high_signals = sys::duplicate_above(signals.get(), 2 * plan::kSlotCount);
  auto null = sys::open("/dev/null", O_RDWR);
  if (!high_socket || !high_signals || !null) return false;
  auto high_null = sys::duplicate_above(null->get(), 2 * plan::kSlotCount);
  if (!high_null) return false;
  (void)socket.release();  // overwritten or closed below, with everything else
  (void)signals.release();
  (void)null->release();
  for (int slot = 0; slot < plan::kSlotCount; ++slot) {
    if (::dup3(high_null->get(), slot, O_CLOEXEC) < 0) return false;
  }
  if (::dup3(high_socket->get(), kSocketFd, O_CLOEXEC) < 0 ||
      ::dup3(high_signals->get(), kSignalsFd, O_CLOEXEC) < 0) {
    return false;
  }
  (void)high_null->release();
  (void)high_socket->release();
  (void)high_signals->release();
  return ::syscall(SYS_close_range, kSignalsFd + 1, ~0U, 0) == 0;
}

}  // namespace

void run_spawner(UniqueFd socket, const SpawnerOptions& options, pid_t parent) {
  die_with_supervisor(parent);
  (void)::umask(022);     // what init makes must be readable whatever the caller's mask is
  raise_soft_limits();    // init and payload have them from here
  (void)::setpgid(0, 0);  // the terminal's signals go to the supervisor alone, which decides
  (void)::prctl(PR_SET_NAME, "sbx-spawner");
  UniqueFd signals = reset_signals();
  const int early = socket.get();
  if (!signals) give_up(early, errno);
  if (!be_ordinary()) give_up(early, -std::max(errno, 1));
  if (!arrange_descriptors(std::move(socket), std::move(signals))) ::_exit(1);
  NetNamespaces namespaces(options.ready_net_namespaces, options.refill_net_namespaces);
  enter_namespaces(kSocketFd, options, namespaces);
  (void)::prctl(PR_SET_DUMPABLE, 0);
  report_step(kSocketFd);
  SpawnerLoop(UniqueFd(kSocketFd), UniqueFd(kSignalsFd), std::move(namespaces), options).run();
}

}  // namespace sbx::spawn
