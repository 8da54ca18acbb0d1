#include "runtime/cli/selftest_ground.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/sys.h"

namespace sbx::cli {
namespace {

constexpr int kNeverAccepted = 1024;  // connections that wait, rather than the one who connects
constexpr int kKeyBase = 0x53420000;  // "SB": a key of our own, whose low half is the pid

Result<UniqueFd> listening(int family, const sockaddr* address, socklen_t size) {
  UniqueFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return sys_error("socket");
  if (::bind(fd.get(), address, size) != 0) return sys_error("bind");
  if (::listen(fd.get(), kNeverAccepted) != 0) return sys_error("listen");
  return fd;
}

// `name` begins with a NUL for an abstract socket.
Result<UniqueFd> listening_unix(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return invalid("the socket's name is too long");
  std::memcpy(address.sun_path, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return listening(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), size);
}

Result<UniqueFd> listening_tcp(std::string& where) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SBX_ASSIGN(UniqueFd fd,
             listening(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address));
  socklen_t size = sizeof address;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return sys_error("getsockname");
  }
  where = fmt::format("127.0.0.1 {}", ntohs(address.sin_port));
  return fd;
}

// In hexadecimal: the probe's own command line is among what it searches.
std::string encoded(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    for (const char c : word) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
    text += '|';
  }
  return text;
}

void replace(std::string& text, std::string_view name, const std::string& by) {
  if (const std::size_t at = text.find(name); at != std::string::npos) {
    text.replace(at, name.size(), by);
  }
}

}  // namespace

Result<ControlGround> ControlGround::prepare(const std::vector<std::string>& words) {
  char directory[] = "/tmp/sbx-selftest-XXXXXX";
  if (::mkdtemp(directory) == nullptr) return sys_error("mkdtemp", directory);
  ControlGround ground;
  ground.directory_ = directory;
  // For whoever knows the name: what keeps an attacker out must not be these modes.
  if (::chmod(directory, 0711) != 0) return sys_error("chmod", directory);
  SBX_ASSIGN(const UniqueFd canary,
             sys::open(ground.directory_ + "/canary", O_WRONLY | O_CREAT | O_EXCL, 0644));
  if (::fchmod(canary.get(), 0644) != 0) return sys_error("chmod", "canary");
  SBX_TRY(ground.listen());
  ground.queue_key_ = kKeyBase | (::getpid() & 0xffff);
  ground.queue_ = ::msgget(ground.queue_key_, IPC_CREAT | IPC_EXCL | 0666);
  if (ground.queue_ < 0 && errno != ENOSYS) return sys_error("msgget");
  std::vector<std::string> all = words;
  all.push_back(ground.directory_);
  ground.words_ = encoded(all);
  return ground;
}

Result<void> ControlGround::listen() {
  socket_name_ = fmt::format("sbx-selftest-{}", ::getpid());
  SBX_ASSIGN(abstract_socket_, listening_unix(std::string(1, '\0') + socket_name_));
  const std::string path = directory_ + "/socket";
  SBX_ASSIGN(path_socket_, listening_unix(path));
  if (::chmod(path.c_str(), 0666) != 0) return sys_error("chmod", path);
  SBX_ASSIGN(tcp_socket_, listening_tcp(tcp_address_));
  return {};
}

ControlGround::ControlGround(ControlGround&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      socket_name_(std::move(other.socket_name_)),
      tcp_address_(std::move(other.tcp_address_)),
      words_(std::move(other.words_)),
      queue_(std::exchange(other.queue_, -1)),
      queue_key_(other.queue_key_),
      path_socket_(std::move(other.path_socket_)),
      abstract_socket_(std::move(other.abstract_socket_)),
      tcp_socket_(std::move(other.tcp_socket_)) {}

ControlGround::~ControlGround() {
  if (queue_ >= 0) (void)::msgctl(queue_, IPC_RMID, nullptr);
  if (directory_.empty()) return;  // moved from
  for (const char* const name : {"/canary", "/socket"}) (void)::unlink((directory_ + name).c_str());
  (void)::rmdir(directory_.c_str());
}

std::string ControlGround::resolve(std::string_view argument) const {
  std::string text(argument);
  replace(text, "@canary", directory_ + "/canary");
  replace(text, "@path", directory_ + "/socket");
  replace(text, "@node", directory_ + "/node");
  replace(text, "@socket", socket_name_);
  replace(text, "@tcp", tcp_address_);
  replace(text, "@queue", std::to_string(queue_key_));
  replace(text, "@words", words_);
  return text;
}

}  // namespace sbx::cli
