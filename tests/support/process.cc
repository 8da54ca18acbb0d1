#include "tests/support/process.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>

#include "runtime/base/sys.h"

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const char* what) {
  ::perror(what);
  ::_exit(127);
}

void become(uid_t uid) {
  if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
      ::setresuid(uid, uid, uid) != 0) {
    die("change the user");
  }
}

// The text that becomes standard input: a file, so that no writer is needed.
UniqueFd input_fd(const ProcessOptions& options) {
  if (!options.input) return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd fd(static_cast<int>(::syscall(SYS_memfd_create, "input", MFD_CLOEXEC)));
  if (!sys::write_all(fd.get(), *options.input) || ::lseek(fd.get(), 0, SEEK_SET) != 0) {
    throw std::runtime_error("standard input of a test");
  }
  return fd;
}

// False at the end of the stream.
bool take(UniqueFd& fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return true;
  if (got <= 0) return false;
  text.append(buffer.data(), static_cast<std::size_t>(got));
  return true;
}

}  // namespace

void become_program(const std::vector<std::string>& argv, const ProcessOptions& options) {
  for (const std::string& entry : options.environment) {
    const std::size_t equals = entry.find('=');
    (void)::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  if (!options.directory.empty() && ::chdir(options.directory.c_str()) != 0) die("chdir");
  if (options.uid) become(*options.uid);
  (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a change of uid clears it
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  die(words[0]);
}

Process::Process(const std::vector<std::string>& argv, const ProcessOptions& options)
    : started_(Clock::now()) {
  const UniqueFd input = input_fd(options);
  auto out = sys::pipe();
  auto err = sys::pipe();
  if (!input || !out || !err) throw std::runtime_error("pipes of a test");
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("fork of a test");
  if (pid_ == 0) {
    const std::array<int, 3> fds = {input.get(), out->second.get(), err->second.get()};
    for (int fd = 0; fd < 3; ++fd) {
      if (::dup2(fds[static_cast<std::size_t>(fd)], fd) < 0) die("dup2");
    }
    become_program(argv, options);
  }
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  out_ = std::move(out->first);
  err_ = std::move(err->first);
}

Process::~Process() {
  if (pid_ < 0) return;
  signal(SIGKILL);
  (void)::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const {
  (void)sys::pidfd_signal(pidfd_.get(), number);
}

void Process::close_output() {
  out_.reset();
}

bool Process::read_some(std::chrono::milliseconds patience) {
  std::array<pollfd, 2> fds = {pollfd{out_.get(), POLLIN, 0}, pollfd{err_.get(), POLLIN, 0}};
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(patience.count()));
  if (ready < 0) return errno == EINTR;
  if (ready == 0) return false;
  if (fds[0].revents != 0 && !take(out_, finished_.out)) out_.reset();
  if (fds[1].revents != 0 && !take(err_, finished_.err)) err_.reset();
  return true;
}

bool Process::wait_for_output(const std::string& text, std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  while (finished_.out.find(text) == std::string::npos) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (!out_ || left.count() <= 0 || !read_some(left)) return false;
  }
  return true;
}

Finished Process::finish(std::chrono::seconds patience) {
  const auto deadline = Clock::now() + patience;
  while (out_ || err_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || !read_some(left)) break;
  }
  pollfd end{pidfd_.get(), POLLIN, 0};
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  if (::poll(&end, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0) != 1) signal(SIGKILL);
  int status = 0;
  rusage usage{};
  (void)::wait4(pid_, &status, 0, &usage);
  pid_ = -1;
  finished_.max_rss_kib = usage.ru_maxrss;
  finished_.seconds = std::chrono::duration<double>(Clock::now() - started_).count();
  if (WIFEXITED(status)) finished_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished_.signal = WTERMSIG(status);
  return std::move(finished_);
}

Finished run_process(const std::vector<std::string>& argv, const ProcessOptions& options) {
  Process process(argv, options);
  return process.finish(std::chrono::seconds(120));
}

TemporaryDirectory::TemporaryDirectory() {
  char path[] = "/tmp/test-sbx-XXXXXX";
  if (::mkdtemp(path) == nullptr || ::chmod(path, 0777) != 0) {
    throw std::runtime_error("a temporary directory");
  }
  path_ = path;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;  // what cannot be removed is seen by the leak check
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryDirectory::write(const std::string& name, std::string_view content) const {
  std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << content;
  if (::chmod(path.c_str(), 0644) != 0) throw std::runtime_error("a test's file " + path);
  return path;
}

std::string read_text(const std::string& path) {
  // By read, not by stream: a file of /proc whose process ends meanwhile gives an error, no
  // exception.
  std::string text;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  std::array<char, 4096> chunk;
  for (ssize_t got = 0; (got = ::read(fd, chunk.data(), chunk.size())) > 0;) {
    text.append(chunk.data(), static_cast<std::size_t>(got));
  }
  (void)::close(fd);
  return text;
}

}  // namespace sbx::test
