#include "runtime/spawn/spawner.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"
#include "runtime/spawn/id_maps.h"
#include "runtime/spawn/init_image.h"
#include "runtime/spawn/spawner_process.h"

namespace sbx::spawn {
namespace {

constexpr const char* kStage = "spawn";

constexpr const char* kUserNamespaceFix =
    "allow user namespaces: sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone=1, "
    "kernel.apparmor_restrict_unprivileged_userns=0 ('sbx-run doctor' tells which)";

constexpr std::chrono::milliseconds kQueuePatience{2'000};
constexpr std::chrono::milliseconds kQueueLook{50};

// The spawner ends by itself within milliseconds of its socket's end; a stopped one needs SIGKILL,
// and one that the kernel holds (a frozen cgroup v1) does not even take that.
constexpr std::chrono::milliseconds kEndPatience{3'000};

bool ends_in_time(int pidfd) {
  const auto ended = sys::ready_in_time(pidfd, POLLIN, kEndPatience);
  return ended && *ended;
}

// Blocks for as long as it takes, up to twice the patience; then the spawner is left to die when it
// can, without anybody to wait for it.
void reap(pid_t pid, int pidfd) {
  if (!ends_in_time(pidfd)) {
    (void)sys::pidfd_signal(pidfd, SIGKILL);  // ends_in_time tells whether it helped
    (void)ends_in_time(pidfd);
  }
  while (::waitpid(pid, nullptr, WNOHANG) < 0 && errno == EINTR) {
  }
}

bool is_gone(int sys_errno) {
  return sys_errno == EPIPE || sys_errno == ECONNRESET;
}

Error spawner_gone(const char* operation) {
  errno = EPIPE;
  Error error = sys_error(operation, "the spawner has ended");
  error.stage = kStage;
  return error;
}

}  // namespace

Error spawner_silent(const char* operation, pid_t pid) {
  const std::string process = std::to_string(pid);
  Error error = host_lacks(operation, ETIMEDOUT, "the spawner, process " + process + ", is silent",
                           "see whether something stops it or starves it of CPU time "
                           "(/proc/" +
                               process + "/status), or start the program again");
  error.stage = kStage;
  return error;
}

bool is_spawner_silent(const Error& error) {
  return error.stage == kStage && error.sys_errno == ETIMEDOUT;
}

bool is_spawner_silent(std::string_view operation, int sys_errno) {
  return operation == kSpawnerOperation && sys_errno == ETIMEDOUT;
}

namespace {

// An errno from the spawner: 0 means that the step succeeded; negative, that it could not become an
// ordinary process.
// It takes milliseconds, on a busy host seconds; for a stopped spawner nobody waits without end.
Result<void> await_step(int socket, const char* operation, pid_t pid,
                        std::chrono::milliseconds patience) {
  SBX_ASSIGN(const bool answered, sys::ready_in_time(socket, POLLIN, patience));
  if (!answered) return spawner_silent(operation, pid);
  std::int32_t error = 0;
  std::uint8_t buffer[sizeof error];
  const auto packet = sys::receive_packet(socket, buffer);
  if (!packet || !*packet || (*packet)->size != sizeof error) return spawner_gone(operation);
  std::memcpy(&error, buffer, sizeof error);
  if (error == 0) return {};
  if (error < 0) {
    return host_lacks("spawner", -error,
                      "cannot give up what whoever started it is above others by (policy, nice, "
                      "I/O class, oom_score_adj, persona)",
                      scarcity_fix(-error).empty() ? "start it as an ordinary process: chrt -o 0, "
                                                     "renice -n 0, ionice -c 0, setarch"
                                                   : scarcity_fix(-error));
  }
  return host_lacks(operation, error, "cannot enter a user namespace", kUserNamespaceFix);
}

template <std::size_t N>
bool copy_text(char (&to)[N], const std::string& from) {
  if (from.size() >= N) return false;
  std::memcpy(to, from.c_str(), from.size() + 1);
  return true;
}

bool copy_options(TmpfsText& to, const plan::PassedTmpfs& from) {
  return copy_text(to.size, from.size) && copy_text(to.inodes, from.inodes) &&
         copy_text(to.mode, from.mode) && copy_text(to.uid, from.uid);
}

}  // namespace

Result<Spawner> Spawner::start(const SpawnerOptions& options) {
  SBX_ASSIGN(Spawner spawner, begin(options));
  SBX_TRY(spawner.map_ids());
  return spawner;
}

Result<Spawner> Spawner::begin(const SpawnerOptions& options) {
  SBX_ASSIGN(auto sockets, sys::seqpacket_pair());
  SBX_TRY(sys::set_nonblocking(sockets.first.get(), true));
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) {
    const int failed = errno;
    return host_lacks("fork", failed, "spawner", scarcity_fix(failed));
  }
  if (pid == 0) {
    sockets.first.reset();
    run_spawner(std::move(sockets.second), options, parent);
  }
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd) return Spawner(pid, std::move(pidfd), std::move(sockets.first), options);
  Error error = sys_error("pidfd_open", "spawner");
  (void)::kill(pid, SIGKILL);  // a child that nobody has reaped: the number is its own
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return error;
}

Result<void> Spawner::map_ids() {
  SBX_TRY(await_step(socket_.get(), "unshare(CLONE_NEWUSER)", pid_, options_.answer_patience));
  SBX_TRY(write_outer_maps(pid_, options_));
  const std::uint8_t go = 1;
  auto sent = sys::send_packet(socket_.get(), {&go, 1}, {});
  if (!sent && is_gone(sent.error().sys_errno)) return spawner_gone("sendmsg");
  return sent;
}

Spawner::~Spawner() {
  if (!socket_) return;  // moved from
  socket_.reset();       // end of file ends the spawner, wherever it stands
  reap(pid_, pidfd_.get());
}

// The queue holds hundreds of requests, so it is full for long only when nobody takes them. Who
// finds it so the next time is not held up as well: the caller may be a daemon's only thread.
Result<void> Spawner::send(const LaunchPacket& packet, const std::vector<int>& fds) {
  const auto deadline = std::chrono::steady_clock::now() + kQueuePatience;
  for (;;) {
    auto sent = sys::send_packet(
        socket_.get(), {reinterpret_cast<const std::uint8_t*>(&packet), sizeof packet}, fds);
    const bool full = !sent && sent.error().sys_errno == EAGAIN;
    if (full && !silent_ && std::chrono::steady_clock::now() < deadline) {
      // Not until it can be written to: of a Unix socket that is when three quarters are free.
      (void)sys::ready_in_time(socket_.get(), POLLOUT, kQueueLook);  // sendmsg tells
      continue;
    }
    silent_ = full;
    if (full) return spawner_silent("sendmsg", pid_);
    return sent;
  }
}

Result<UniqueFd> Spawner::launch(const LaunchRequest& request) {
  if (!init_) {
    SBX_ASSIGN(init_, sys::sealed_memfd("sbx-init", init_image(), true));
  }
  SBX_ASSIGN(auto control, sys::seqpacket_pair());
  LaunchPacket packet;
  std::vector<int> fds{control.second.get(), init_.get()};
  if (request.init_leaf >= 0) {
    packet.has_init_leaf = 1;
    fds.push_back(request.init_leaf);
  }
  const auto pass = [&](int slot, int fd) {
    if (fd < 0) return;
    packet.slots |= 1U << slot;
    fds.push_back(fd);
  };
  // In the order of the slots: the receiver assigns them by the bits alone.
  pass(plan::kSlotStdin, request.stdin_fd);
  pass(plan::kSlotStdout, request.stdout_fd);
  pass(plan::kSlotStderr, request.stderr_fd);
  pass(plan::kSlotPlan, request.plan);
  pass(plan::kSlotReport, request.report);
  pass(plan::kSlotLifeline, request.lifeline);
  pass(plan::kSlotFill, request.fill);
  pass(plan::kSlotPayloadLeaf, request.payload_leaf);
  for (std::size_t i = 0; i < request.join.size(); ++i) {
    pass(plan::kSlotJoin + static_cast<int>(i), request.join[i]);
  }
  packet.net_namespace = request.net_namespace ? 1 : 0;
  packet.without_namespaces = request.without_namespaces;
  if (!copy_options(packet.trees[static_cast<std::size_t>(Tree::kOutput)], request.output) ||
      !copy_options(packet.trees[static_cast<std::size_t>(Tree::kWork)], request.work)) {
    return invalid("limits of /output or /work are too long");
  }
  auto sent = send(packet, fds);
  // Only now: the spawner, which may be at it still, finds the request when it is done. One that
  // has failed and is gone has left behind why.
  if (!confirmed_) {
    SBX_TRY(await_step(socket_.get(), "spawner set-up", pid_, options_.answer_patience));
    confirmed_ = true;
  }
  if (!sent) {
    const int error = sent.error().sys_errno;
    if (is_gone(error)) return spawner_gone("sendmsg");
    return unexpected(std::move(sent).error());
  }
  return std::move(control.first);
}

Result<UniqueFd> Spawner::ask() {
  SBX_ASSIGN(auto sockets, sys::seqpacket_pair());
  const std::uint8_t question = 0;
  const int answer = sockets.second.get();
  SBX_TRY(sys::send_packet(socket_.get(), {&question, 1}, {&answer, 1}));
  return std::move(sockets.first);
}

}  // namespace sbx::spawn
