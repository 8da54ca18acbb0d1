#include "bench/src/timed.h"

#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "runtime/base/sys.h"

namespace sbx::bench {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Starts `argv` with the three descriptors as its standard ones.
Result<pid_t> spawn(const std::vector<std::string>& argv, int in, int out, int err) {
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (::posix_spawn_file_actions_init(&actions) != 0) return sys_error("posix_spawn");
  (void)::posix_spawn_file_actions_adddup2(&actions, in, 0);  // ENOMEM: the spawn fails, too
  (void)::posix_spawn_file_actions_adddup2(&actions, out, 1);
  (void)::posix_spawn_file_actions_adddup2(&actions, err, 2);
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, words[0], &actions, nullptr, words.data(), environ);
  (void)::posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) return sys_error("posix_spawn", argv[0]);
  return pid;
}

std::string ending(const std::vector<std::string>& argv, int status, int messages) {
  std::string text = argv[0];
  text += WIFEXITED(status) ? " exited with " + std::to_string(WEXITSTATUS(status))
                            : " was killed by signal " + std::to_string(WTERMSIG(status));
  char said[1024];
  const ssize_t size = ::pread(messages, said, sizeof said, 0);
  if (size > 0) text += ": " + std::string(said, static_cast<std::size_t>(size));
  return text;
}

Error failed(std::string operation, std::string detail) {
  Error error;
  error.stage = "latency";
  error.operation = std::move(operation);
  error.detail = std::move(detail);
  return error;
}

}  // namespace

Result<double> time_process(const std::vector<std::string>& argv, const std::string& stdin_file) {
  SBX_ASSIGN(const UniqueFd in, sys::open(stdin_file, O_RDONLY));
  SBX_ASSIGN(const UniqueFd null, sys::open("/dev/null", O_WRONLY));
  const UniqueFd messages(::memfd_create("stderr", MFD_CLOEXEC));
  if (!messages) return sys_error("memfd_create");
  const Clock::time_point start = Clock::now();
  SBX_ASSIGN(const pid_t pid, spawn(argv, in.get(), null.get(), messages.get()));
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const double took = milliseconds_since(start);
  if (status != 0) return failed("run", ending(argv, status, messages.get()));
  return took;
}

Resident::Resident(pid_t pid, UniqueFd requests, UniqueFd answers)
    : pid_(pid), requests_(std::move(requests)), answers_(std::move(answers)) {}

Resident::Resident(Resident&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      requests_(std::move(other.requests_)),
      answers_(std::move(other.answers_)) {}

Resident::~Resident() {
  if (pid_ <= 0) return;
  (void)::kill(pid_, SIGKILL);  // not reaped yet, so the number is still its own
  (void)::waitpid(pid_, nullptr, 0);
}

Result<Resident> Resident::start(const std::vector<std::string>& argv) {
  SBX_ASSIGN(auto requests, sys::pipe());
  SBX_ASSIGN(auto answers, sys::pipe());
  SBX_ASSIGN(const pid_t pid, spawn(argv, requests.first.get(), answers.second.get(), 2));
  return Resident(pid, std::move(requests.second), std::move(answers.first));
}

Result<double> Resident::time_request() {
  const Clock::time_point start = Clock::now();
  unsigned char byte = 1;
  if (::write(requests_.get(), &byte, 1) != 1) return sys_error("write", "to the resident floor");
  if (::read(answers_.get(), &byte, 1) != 1) return failed("read", "the resident floor died");
  const double took = milliseconds_since(start);
  if (byte != 0) return failed("run", "the resident floor reports " + std::to_string(byte));
  return took;
}

}  // namespace sbx::bench
