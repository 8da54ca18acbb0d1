#include "bench/src/share_relay.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <array>

#include "runtime/base/sys.h"
#include "tests/support/raw_http.h"

namespace sbx::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

Result<UniqueFd> listen_at(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return invalid("'" + path + "' is too long");
  path.copy(address.sun_path, path.size());
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0666) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    return sys_error("listen", path);
  }
  return socket;
}

// A whole message as it came, its chunks left in it; empty when the other side closed before one.
Result<std::string> receive(int socket, const std::string& sender) {
  constexpr std::string_view kHeadEnd = "\r\n\r\n", kLastChunk = "\r\n0\r\n\r\n";
  std::string data;
  for (std::array<char, 1 << 16> buffer;;) {
    SBX_ASSIGN(const bool came, sys::ready_in_time(socket, POLLIN, test::kHttpPatience));
    if (!came) return invalid(sender + " is silent after: " + data);
    const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0) return sys_error("recv", sender);
    if (got == 0 && data.empty()) return data;
    if (got == 0) return invalid(sender + " closed its connection after: " + data);
    data.append(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t end = data.find(kHeadEnd);
    if (end == std::string::npos) continue;
    test::RawReply message;
    message.head = data.substr(0, end + 2);
    if (!message.field("Transfer-Encoding").empty()) {
      if (data.ends_with(kLastChunk)) return data;
      continue;
    }
    const std::size_t size = std::strtoul(message.field("Content-Length").c_str(), nullptr, 10);
    const std::size_t whole = end + kHeadEnd.size() + size;
    if (data.size() == whole) return data;
    if (data.size() > whole) return invalid(sender + " sent more than it said: " + data);
  }
}

// One request and its answer. False when agentd has closed.
Result<bool> pass_on(test::RawClient& agentd, test::RawClient& sbxd, int telling,
                     Clock::time_point woken) {
  SBX_ASSIGN(const std::string request, receive(agentd.fd(), "agentd"));
  if (request.empty()) return false;
  const Clock::time_point began = Clock::now();
  if (!sbxd.send(request)) return invalid("sbxd does not take a request");
  SBX_ASSIGN(const std::string answer, receive(sbxd.fd(), "sbxd"));
  const Milliseconds had = Clock::now() - began;
  if (answer.empty()) return invalid("sbxd closed its connection");
  const Milliseconds own = Clock::now() - woken - had;
  const Taken taken{.sbxd = had.count(), .relay = own.count()};
  // Before the answer, so that whoever has that finds it told.
  SBX_TRY(sys::write_all(telling, {reinterpret_cast<const char*>(&taken), sizeof taken}));
  if (agentd.send(answer)) return true;
  return invalid("agentd does not take its answer");
}

// `connections` of agentd: they outlive it, since at their end the client ends this process.
Result<void> serve(int listening, test::RawClient& sbxd, int telling,
                   std::vector<test::RawClient>& connections) {
  for (;;) {
    std::vector<pollfd> waited{{listening, POLLIN, 0}};
    for (const auto& each : connections) waited.push_back({each.fd(), POLLIN, 0});
    if (::poll(waited.data(), waited.size(), -1) < 0) return sys_error("poll");
    Clock::time_point woken = Clock::now();
    for (std::size_t i = connections.size(); i-- > 0;) {
      if (waited[i + 1].revents == 0) continue;
      SBX_ASSIGN(const bool open, pass_on(connections[i], sbxd, telling, woken));
      if (!open) connections.erase(connections.begin() + static_cast<std::ptrdiff_t>(i));
      woken = Clock::now();
    }
    if (waited[0].revents == 0) continue;
    UniqueFd accepted(::accept4(listening, nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted) return sys_error("accept");
    connections.emplace_back(std::move(accepted));
  }
}

}  // namespace

Result<ShareRelay> ShareRelay::start(const std::string& path, const std::string& sbxd) {
  SBX_ASSIGN(const UniqueFd listening, listen_at(path));
  test::RawClient box = test::RawClient::to_unix(sbxd);
  if (!box.connected()) return sys_error("connect", sbxd);
  SBX_ASSIGN(auto told, sys::pipe());
  SBX_TRY(sys::set_nonblocking(told.first.get(), true));
  const pid_t owner = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return sys_error("fork");
  if (pid > 0) return ShareRelay(pid, std::move(told.first));
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // cannot fail with a signal that there is
  if (::getppid() == owner) {
    std::vector<test::RawClient> connections;
    const auto end = serve(listening.get(), box, told.second.get(), connections);
    fmt::print(stderr, "share: the relay before sbxd: {}\n", to_string(end.error()));
  }
  ::_exit(1);
}

ShareRelay::ShareRelay(ShareRelay&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), told_(std::move(other.told_)) {}

ShareRelay::~ShareRelay() {
  if (pid_ <= 0) return;
  (void)::kill(pid_, SIGKILL);  // not reaped yet, so the number is still its own
  (void)::waitpid(pid_, nullptr, 0);
}

Result<Taken> ShareRelay::taken() {
  Taken sum;
  for (Taken each;;) {
    const ssize_t got = ::read(told_.get(), &each, sizeof each);
    if (got < 0 && errno == EAGAIN) return sum;
    if (got < 0) return sys_error("read", "from the relay");
    if (got != sizeof each) return invalid("the relay before sbxd has ended");
    sum.sbxd += each.sbxd;
    sum.relay += each.relay;
  }
}

}  // namespace sbx::bench
