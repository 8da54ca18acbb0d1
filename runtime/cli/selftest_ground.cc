#include "runtime/cli/selftest_ground.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/sys.h"

namespace sbx::cli {
namespace {

constexpr int kNeverAccepted = 1024;  // connections that wait, rather than the one who connects
constexpr int kAttempts = 16;
constexpr char kPlace[] = "/tmp/";
constexpr std::string_view kName = "sbx-selftest-";
constexpr std::string_view kTemplate = "XXXXXX";  // of mkdtemp(3)
constexpr const char* kFiles[] = {"canary", "socket", "node"};

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

// "S" and a hash (FNV-1a) of the directory's name: a key that needs no record.
key_t key_of(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<key_t>(0x53000000U | (hash & 0xffffffU));
}

// Only one that is as make_queue() made it.
void remove_left_queue(key_t key) {
  const int queue = ::msgget(key, 0);
  msqid_ds status{};
  if (queue < 0 || ::msgctl(queue, IPC_STAT, &status) != 0) return;
  const ipc_perm& owner = status.msg_perm;
  const bool never_used = status.msg_qnum == 0 && status.msg_lspid == 0 && status.msg_lrpid == 0;
  if (owner.uid != ::geteuid() || owner.cuid != ::geteuid() || !never_used) return;
  (void)::msgctl(queue, IPC_RMID, nullptr);  // somebody else may have been faster
}

void remove_files(int directory) {
  for (const char* const name : kFiles) (void)::unlinkat(directory, name, 0);
}

// The caller's own, and of the kind that a ground has under this name.
bool is_file_of_ground(int directory, std::string_view name) {
  struct stat status{};
  const std::string path(name);
  if (::fstatat(directory, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (status.st_uid != ::geteuid()) return false;
  if (name == "canary") return S_ISREG(status.st_mode) && status.st_size == 0;
  if (name == "socket") return S_ISSOCK(status.st_mode);
  return name == "node" && S_ISCHR(status.st_mode);
}

// nullopt: not all of them could be told.
std::optional<std::vector<std::string>> names_in(int directory) {
  auto again = sys::open_at(directory, ".", O_RDONLY | O_DIRECTORY);
  if (!again) return std::nullopt;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(again->get()), ::closedir);
  if (!entries) return std::nullopt;
  (void)again->release();  // closed with the stream
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const entry = ::readdir(entries.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return std::nullopt;
  return names;
}

// SECURITY: anybody can make names in /tmp. Removed is what is the caller's, holds only what a
// ground holds, and is locked by nobody; no link is followed on the way.
void remove_left_directory(int place, const std::string& name) {
  const auto directory = sys::open_at(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat status{};
  if (!directory || ::fstat(directory->get(), &status) != 0) return;
  if (status.st_uid != ::geteuid()) return;
  if (::flock(directory->get(), LOCK_EX | LOCK_NB) != 0) return;  // its owner lives
  const auto files = names_in(directory->get());
  if (!files) return;
  for (const std::string& file : *files) {
    if (!is_file_of_ground(directory->get(), file)) return;
  }
  remove_left_queue(key_of(name));
  remove_files(directory->get());
  (void)::unlinkat(place, name.c_str(), AT_REMOVEDIR);
}

void remove_left_grounds() {
  const auto place = sys::open(kPlace, O_RDONLY | O_DIRECTORY);
  if (!place) return;
  const auto names = names_in(place->get());
  if (!names) return;
  for (const std::string& name : *names) {
    const bool is_name = name.starts_with(kName) && name.size() == kName.size() + kTemplate.size();
    if (is_name) remove_left_directory(place->get(), name);
  }
}

// ENOENT where it is there no more.
Result<UniqueFd> lock_directory(const std::string& path) {
  SBX_ASSIGN(UniqueFd directory, sys::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) return sys_error("flock", path);
  struct stat status{};
  if (::fstat(directory.get(), &status) != 0) return sys_error("fstat", path);
  if (status.st_nlink == 0) return host_lacks("flock", ENOENT, path, "");
  return directory;
}

// Until it is locked it looks left, and another one that starts may take it away.
bool is_taken_away(const Error& error) {
  return error.sys_errno == EWOULDBLOCK || error.sys_errno == ENOENT;
}

void replace(std::string& text, std::string_view name, const std::string& by) {
  if (const std::size_t at = text.find(name); at != std::string::npos) {
    text.replace(at, name.size(), by);
  }
}

}  // namespace

Result<ControlGround> ControlGround::prepare(const std::vector<std::string>& words) {
  remove_left_grounds();
  ControlGround ground;
  SBX_TRY(ground.make_directory());
  SBX_TRY(ground.make_queue());
  SBX_ASSIGN(const UniqueFd canary,
             sys::open(ground.directory_ + "/canary", O_WRONLY | O_CREAT | O_EXCL, 0644));
  if (::fchmod(canary.get(), 0644) != 0) return sys_error("chmod", "canary");
  SBX_TRY(ground.listen());
  std::vector<std::string> all = words;
  all.push_back(ground.directory_);
  ground.words_ = encoded(all);
  return ground;
}

Result<void> ControlGround::make_directory() {
  Error taken;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = kPlace + std::string(kName) + std::string(kTemplate);
    if (::mkdtemp(path.data()) == nullptr) return sys_error("mkdtemp", path);
    Result<UniqueFd> locked = lock_directory(path);
    if (!locked && is_taken_away(locked.error())) {
      taken = std::move(locked).error();
      continue;
    }
    if (!locked) {
      (void)::rmdir(path.c_str());  // that it could not be locked is what is told
      return unexpected(std::move(locked).error());
    }
    directory_ = std::move(path);
    lock_ = std::move(*locked);
    // For whoever knows the name: what keeps an attacker out must not be these modes.
    if (::fchmod(lock_.get(), 0711) != 0) return sys_error("chmod", directory_);
    return {};
  }
  return unexpected(std::move(taken));
}

// To see that it is there asks for no right of its modes; removing it, for the owner's to read.
Result<void> ControlGround::make_queue() {
  queue_key_ = key_of(directory_.substr(sizeof kPlace - 1));
  queue_ = ::msgget(queue_key_, IPC_CREAT | IPC_EXCL | 0400);
  if (queue_ < 0 && errno != ENOSYS) return sys_error("msgget");
  return {};
}

Result<void> ControlGround::listen() {
  socket_name_ = directory_.substr(sizeof kPlace - 1);
  SBX_ASSIGN(abstract_socket_, listening_unix(std::string(1, '\0') + socket_name_));
  const std::string path = directory_ + "/socket";
  SBX_ASSIGN(path_socket_, listening_unix(path));
  if (::chmod(path.c_str(), 0666) != 0) return sys_error("chmod", path);
  SBX_ASSIGN(tcp_socket_, listening_tcp(tcp_address_));
  return {};
}

ControlGround::ControlGround(ControlGround&& other) noexcept
    : directory_(std::exchange(other.directory_, {})),
      lock_(std::move(other.lock_)),
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
  remove_files(lock_.get());
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
