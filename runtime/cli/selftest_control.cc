#include "runtime/cli/selftest_control.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <net/route.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "runtime/base/sys.h"
#include "runtime/cli/in_child.h"
#include "runtime/cli/probe_program.h"

namespace sbx::cli {
namespace {

constexpr std::size_t kMaxProbeOutput = 4096;
constexpr unsigned kControlSeconds = 10;

Result<UniqueFd> listen_abstract(const std::string& name) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return sys_error("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(),
              std::min(name.size(), sizeof address.sun_path - 1));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return sys_error("bind");
  }
  if (::listen(fd.get(), 8) != 0) return sys_error("listen");
  return fd;
}

void set_address(sockaddr& place, const char* text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  if (text != nullptr) (void)::inet_pton(AF_INET, text, &address.sin_addr);
  std::memcpy(&place, &address, sizeof address);
}

// Loopback up, and everything routed to it: a network in which a connect finds a way.
Act bring_up_loopback() {
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return failed("socket");
  ifreq request{};
  std::memcpy(request.ifr_name, "lo", 3);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (::ioctl(fd.get(), SIOCSIFFLAGS, &request) != 0) return failed("lo up");
  rtentry route{};
  set_address(route.rt_dst, nullptr);
  set_address(route.rt_genmask, nullptr);
  char device[] = "lo";
  route.rt_dev = device;
  route.rt_flags = RTF_UP;
  return ::ioctl(fd.get(), SIOCADDRT, &route) == 0 ? Act{} : failed("add a route");
}

Act enter_throw_away() {
  if (Act act = enter_user_namespace(0); !act.ok()) return act;
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) != 0) {
    return failed("unshare");
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return failed("make mounts private");
  }
  if (::mount("control", "/etc", "tmpfs", 0, nullptr) != 0) return failed("mount over /etc");
  return bring_up_loopback();
}

// In the child: becomes sbx-probe. Only comes back, with the step that failed, when it did not.
Act become_probe(const AttackCase& attack, const std::string& argument, int program, int output) {
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)::alarm(kControlSeconds);  // survives the exec
  if (attack.control == Control::kThrowAway) {
    if (Act act = enter_throw_away(); !act.ok()) return act;
  }
  if (::dup2(output, STDOUT_FILENO) < 0) return failed("dup2");
  if (::fcntl(STDOUT_FILENO, F_DUPFD, 10) < 0) return failed("dup");  // the leak to be found
  const std::string act(attack.act);
  const char* const argv[] = {"sbx-probe", act.c_str(), argument.c_str(), nullptr};
  (void)::fexecve(program, const_cast<char* const*>(argv), environ);
  return failed("execute the probe");
}

Observation control_in_child(const AttackCase& attack, const std::string& argument) {
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
    const Act act = become_probe(attack, argument, program->get(), pipe->second.get());
    const std::string text = act.failed_step + ": " + std::strerror(act.sys_errno);
    (void)sys::write_all(pipe->second.get(), text);
    ::_exit(1);
  }
  pipe->second.reset();
  const Result<std::string> output = sys::read_all(pipe->first.get(), kMaxProbeOutput);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!output) {
    seen.trouble = to_string(output.error());
    return seen;
  }
  return parse_probe_line(*output);
}

}  // namespace

Result<ControlGround> ControlGround::prepare() {
  char directory[] = "/tmp/sbx-selftest-XXXXXX";
  if (::mkdtemp(directory) == nullptr) return sys_error("mkdtemp", directory);
  ControlGround ground(directory);
  SBX_ASSIGN(const UniqueFd canary,
             sys::open(ground.directory_ + "/canary", O_WRONLY | O_CREAT | O_EXCL, 0644));
  ground.socket_name_ = fmt::format("sbx-selftest-{}", ::getpid());
  SBX_ASSIGN(ground.socket_, listen_abstract(ground.socket_name_));
  return ground;
}

ControlGround::~ControlGround() {
  if (directory_.empty()) return;  // moved from
  (void)::unlink((directory_ + "/canary").c_str());
  (void)::rmdir(directory_.c_str());
}

std::string ControlGround::resolve(std::string_view argument) const {
  if (argument == "@canary") return directory_ + "/canary";
  if (argument == "@node") return directory_ + "/node";
  if (argument == "@socket") return socket_name_;
  return std::string(argument);
}

std::optional<Observation> run_control(const AttackCase& attack, const ControlGround& ground) {
  if (attack.control == Control::kRoot && ::geteuid() != 0) return std::nullopt;
  return control_in_child(attack, ground.resolve(attack.control_argument));
}

}  // namespace sbx::cli
