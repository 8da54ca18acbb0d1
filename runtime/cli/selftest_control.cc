#include "runtime/cli/selftest_control.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "runtime/base/sys.h"
#include "runtime/cli/in_child.h"
#include "runtime/cli/probe_program.h"

namespace sbx::cli {
namespace {

constexpr std::size_t kMaxProbeOutput = 4096;
constexpr unsigned kControlSeconds = 10;

// Every address is the machine's own, so that each connection finds somebody who refuses it.
bool route_everything_to(int interface, unsigned char family) {
  struct {
    nlmsghdr header{};
    rtmsg route{};
    rtattr attribute{};
    int interface = 0;
  } request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = RTM_NEWROUTE;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
  request.route.rtm_family = family;
  request.route.rtm_table = RT_TABLE_LOCAL;
  request.route.rtm_protocol = RTPROT_STATIC;
  request.route.rtm_scope = RT_SCOPE_HOST;
  request.route.rtm_type = RTN_LOCAL;
  request.attribute.rta_type = RTA_OIF;
  request.attribute.rta_len = RTA_LENGTH(sizeof interface);
  request.interface = interface;
  const UniqueFd fd(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!fd || ::send(fd.get(), &request, sizeof request, 0) != sizeof request) return false;
  struct {
    nlmsghdr header{};
    nlmsgerr error{};
  } reply;
  if (::recv(fd.get(), &reply, sizeof reply, 0) < static_cast<ssize_t>(sizeof reply)) return false;
  errno = -reply.error.error;
  return reply.header.nlmsg_type == NLMSG_ERROR && reply.error.error == 0;
}

// In the child: becomes sbx-probe. Only comes back, with the step that failed, when it did not.
Act become_probe(const AttackCase& attack, const ControlGround& ground, int program, int output) {
  (void)::alarm(kControlSeconds);  // survives the exec
  sigset_t none;
  sigemptyset(&none);
  (void)::pthread_sigmask(SIG_SETMASK, &none, nullptr);  // what selftest blocks must not hold it up
  if (attack.control == Control::kThrowAway) {
    if (Act act = enter_throw_away(); !act.ok()) return act;
  }
  // A keyring of its own, for /proc/keys: cron, su and services give none. Where the host forbids
  // it, there may be nothing to see, and then that is not applicable.
  (void)::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of uid clears it
  if (::dup2(output, STDOUT_FILENO) < 0) return failed("dup2");
  if (::fcntl(STDOUT_FILENO, F_DUPFD, 10) < 0) return failed("dup");  // the leak to be found
  if (::setenv("SBX_SELFTEST", ground.directory().c_str(), 1) != 0) return failed("setenv");
  const std::string act(attack.act);
  const std::string argument = ground.resolve(attack.control_argument);
  const char* const argv[] = {"sbx-probe", act.c_str(), argument.c_str(), nullptr};
  (void)::fexecve(program, const_cast<char* const*>(argv), environ);
  return failed("execute the probe");
}

// What the probe says, to the end of it; "cancelled" is the error once `cancel_fd` is readable.
Result<std::string> hear(int output, int cancel_fd) {
  std::string text;
  char bytes[kMaxProbeOutput];
  for (;;) {
    pollfd all[] = {{output, POLLIN, 0}, {cancel_fd, POLLIN, 0}};
    if (::poll(all, std::size(all), -1) < 0) {
      if (errno == EINTR) continue;
      return sys_error("poll", "the probe's output");
    }
    if (all[1].revents != 0) return invalid("cancelled");
    const ssize_t got = ::read(output, bytes, sizeof bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys_error("read", "the probe's output");
    if (got == 0 || text.size() >= kMaxProbeOutput) return text;
    text.append(bytes, static_cast<std::size_t>(got));
  }
}

Observation control_in_child(const AttackCase& attack, const ControlGround& ground, int cancel_fd) {
  Observation seen;
  Result<UniqueFd> program = sys::sealed_memfd("sbx-probe", probe_program(), true);
  auto pipe = sys::pipe();
  if (!program || !pipe) {
    seen.trouble = to_string(program ? pipe.error() : program.error());
    return seen;
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    seen.trouble = "fork failed";
    return seen;
  }
  if (pid == 0) {
    const Act act = become_probe(attack, ground, program->get(), pipe->second.get());
    const std::string text = act.failed_step + ": " + std::strerror(act.sys_errno);
    (void)sys::write_all(pipe->second.get(), text);
    ::_exit(1);
  }
  pipe->second.reset();
  const Result<std::string> output = hear(pipe->first.get(), cancel_fd);
  if (!output) (void)::kill(pid, SIGKILL);  // ours and unreaped: it names no one else
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!output) {
    seen.trouble = to_string(output.error());
    return seen;
  }
  return parse_probe_line(*output);
}

}  // namespace

// Where there is no IPv6, its attacks do not apply.
Act lead_everything_to_loopback() {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return failed("socket");
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0) return failed("lo up");
  if (::ioctl(fd.get(), SIOCGIFINDEX, &request) != 0) return failed("index of lo");
  if (!route_everything_to(request.ifr_ifindex, AF_INET)) return failed("add a route");
  (void)route_everything_to(request.ifr_ifindex, AF_INET6);
  return {};
}

Act enter_throw_away() {
  if (Act act = enter_user_namespace_as_nobody(); !act.ok()) return act;
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0) {
    return failed("unshare");
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return failed("make mounts private");
  }
  if (::mount("control", "/etc", "tmpfs", 0, nullptr) != 0) return failed("mount over /etc");
  return lead_everything_to_loopback();
}

std::optional<Observation> run_control(const AttackCase& attack, const ControlGround& ground,
                                       int cancel_fd) {
  if (attack.control == Control::kRoot && ::geteuid() != 0) return std::nullopt;
  return control_in_child(attack, ground, cancel_fd);
}

}  // namespace sbx::cli
