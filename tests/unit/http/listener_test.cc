// Sockets that listen: their files, modes, successors and rivals.
#include "http/listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/sys.h"
#include "tests/support/raw_http.h"

namespace sbx::http {
namespace {

namespace fs = std::filesystem;
using test::RawClient;

class UnixListener : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/test-sbx-http-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    directory_ = path;
    path_ = directory_ + "/d.sock";
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  [[nodiscard]] Result<Listener> listen(mode_t mode = 0600) const {
    return Listener::unix_socket({.path = path_, .mode = mode});
  }
  [[nodiscard]] mode_t mode_of_file() const {
    struct stat found{};
    EXPECT_EQ(::lstat(path_.c_str(), &found), 0);
    return found.st_mode & 07777;
  }
  std::string directory_;
  std::string path_;
};

TEST_F(UnixListener, HasTheModeThatWasAskedForWhateverTheUmask) {
  const mode_t before = ::umask(0077);
  const auto listener = listen(0660);
  (void)::umask(before);
  ASSERT_TRUE(listener) << to_string(listener.error());
  EXPECT_EQ(mode_of_file(), 0660U);
  EXPECT_TRUE(RawClient::to_unix(path_).connected());
}

TEST_F(UnixListener, RemovesItsFilesAtTheEnd) {
  {
    const auto listener = listen();
    ASSERT_TRUE(listener);
    EXPECT_FALSE(fs::is_empty(directory_));
  }
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(UnixListener, ReplacesTheSocketOfADeadDaemon) {
  {
    auto first = listen();
    ASSERT_TRUE(first);
    // Its owner dies: nothing of it is removed.
    ASSERT_EQ(::link(path_.c_str(), (path_ + ".kept").c_str()), 0);
  }
  fs::rename(path_ + ".kept", path_);
  std::ofstream(path_ + ".lock") << "";
  ASSERT_FALSE(RawClient::to_unix(path_).connected());
  const auto second = listen();
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_TRUE(RawClient::to_unix(path_).connected());
}

TEST_F(UnixListener, RefusesToTakeThePlaceOfALiveOne) {
  const auto first = listen();
  ASSERT_TRUE(first);
  const auto second = listen();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kHost);
  EXPECT_EQ(second.error().sys_errno, EADDRINUSE);
  EXPECT_FALSE(second.error().fix.empty());
  EXPECT_TRUE(RawClient::to_unix(path_).connected());
}

TEST_F(UnixListener, RefusesToTakeThePlaceOfALiveOneThatKnowsNoLock) {
  auto first = listen();
  ASSERT_TRUE(first);
  ASSERT_TRUE(fs::remove(path_ + ".lock"));
  const auto second = listen();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().sys_errno, EADDRINUSE);
  EXPECT_TRUE(RawClient::to_unix(path_).connected());
}

TEST_F(UnixListener, LeavesAFileThatIsNoSocket) {
  std::ofstream(path_) << "precious";
  const auto listener = listen();
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kHost);
  EXPECT_EQ(fs::file_size(path_), 8U);
  EXPECT_FALSE(fs::exists(path_ + ".lock")) << "nor is anything left beside it";
}

TEST_F(UnixListener, LeavesTheFileOfASuccessor) {
  auto first = listen();
  ASSERT_TRUE(first);
  ASSERT_TRUE(fs::remove(path_));
  std::ofstream(path_) << "another's";
  {
    const Listener ended = *std::move(first);
  }
  EXPECT_TRUE(fs::exists(path_));
}

TEST_F(UnixListener, APathThatDoesNotFitIsRefusedByName) {
  path_ = directory_ + "/" + std::string(120, 'x');
  const auto listener = listen();
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalid);
  path_ = "relative.sock";
  EXPECT_FALSE(listen());
}

TEST_F(UnixListener, IsGivenToTheGroupThatWasNamed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root may give a file to any group";
  const auto listener = Listener::unix_socket({.path = path_, .mode = 0660, .group = 65534});
  ASSERT_TRUE(listener);
  struct stat found{};
  ASSERT_EQ(::lstat(path_.c_str(), &found), 0);
  EXPECT_EQ(found.st_gid, 65534U);
}

TEST_F(UnixListener, OfTwoThatStartAtOnceOneWins) {
  for (int round = 0; round < 20; ++round) {
    auto go = sys::pipe();
    auto hold = sys::pipe();
    ASSERT_TRUE(go && hold);
    pid_t children[2];
    for (pid_t& child : children) {
      child = ::fork();
      if (child != 0) continue;
      hold->second.reset();
      char byte = 0;
      (void)::read(go->first.get(), &byte, 1);
      const auto mine = listen();
      if (!mine) ::_exit(mine.error().sys_errno == EADDRINUSE ? 1 : 2);
      // Held until both have tried.
      (void)::read(hold->first.get(), &byte, 1);
      ::_exit(RawClient::to_unix(path_).connected() ? 0 : 3);
    }
    ASSERT_EQ(::write(go->second.get(), "xx", 2), 2);
    int lost = 0;
    ASSERT_GT(::waitpid(-1, &lost, 0), 0);
    EXPECT_EQ(WEXITSTATUS(lost), 1);
    hold->second.reset();
    int won = 0;
    ASSERT_GT(::waitpid(-1, &won, 0), 0);
    EXPECT_EQ(WEXITSTATUS(won), 0);
    std::error_code ignored;
    fs::remove(path_, ignored);  // _exit left it
  }
}

TEST_F(UnixListener, AdoptsWhatListens) {
  auto made = listen();
  ASSERT_TRUE(made);
  auto adopted = Listener::adopt(UniqueFd(::dup(made->fd())));
  ASSERT_TRUE(adopted) << to_string(adopted.error());
  EXPECT_TRUE(adopted->is_unix());
  EXPECT_EQ(adopted->name(), path_);
  EXPECT_NE(::fcntl(adopted->fd(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(adopted->fd(), F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(UnixListener, AdoptsNothingElse) {
  auto pipe = sys::pipe();
  ASSERT_TRUE(pipe);
  EXPECT_FALSE(Listener::adopt(std::move(pipe->first)));
  const auto no_listener =
      Listener::adopt(UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  ASSERT_FALSE(no_listener);
  EXPECT_EQ(no_listener.error().code, ErrorCode::kHost);
  EXPECT_FALSE(Listener::adopt(UniqueFd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))));
}

TEST(TcpListener, ListensOnAPortOfTheKernelsChoice) {
  const auto listener = Listener::tcp("127.0.0.1", 0);
  ASSERT_TRUE(listener) << to_string(listener.error());
  EXPECT_NE(listener->port(), 0);
  EXPECT_FALSE(listener->is_unix());
  EXPECT_TRUE(RawClient::to_port(listener->port()).connected());
  EXPECT_FALSE(Listener::tcp("127.0.0.1", listener->port()));
  EXPECT_FALSE(Listener::tcp("localhost", 0));
}

// systemd passes descriptors from 3 on, to the process whose id it names.
TEST(SystemdDescriptors, AreTakenOnceAndOnlyWhenMeantForUs) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto pipe = sys::pipe();
    if (::dup2(pipe->first.get(), 3) != 3 || ::dup2(pipe->second.get(), 4) != 4) ::_exit(10);
    ::setenv("LISTEN_FDS", "2", 1);
    ::setenv("LISTEN_PID", "1", 1);
    const auto others = systemd_descriptors();
    if (!others || !others->empty()) ::_exit(11);
    ::setenv("LISTEN_FDS", "2", 1);
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    auto ours = systemd_descriptors();
    if (!ours || ours->size() != 2 || ours->at(0).get() != 3) ::_exit(12);
    if ((::fcntl(4, F_GETFD) & FD_CLOEXEC) == 0) ::_exit(13);
    const auto again = systemd_descriptors();
    ::_exit(again && again->empty() ? 0 : 14);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(InheritedDescriptors, AreClosedButForTheStandardStreamsAndSystemds) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
    for (const int fd : {3, 4, 5, 251}) {
      if (::dup2(0, fd) != fd) ::_exit(10);
    }
    ::setenv("LISTEN_FDS", "2", 1);
    ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
    if (!close_inherited_descriptors()) ::_exit(11);
    if (!is_open(0) || !is_open(3) || !is_open(4) || is_open(5) || is_open(251)) ::_exit(12);
    ::setenv("LISTEN_PID", "1", 1);
    if (!close_inherited_descriptors()) ::_exit(13);
    ::_exit(is_open(2) && !is_open(3) && !is_open(4) ? 0 : 14);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(UnixListener, ALockThatIsALinkIsRefusedWithTheFix) {
  ASSERT_EQ(::symlink("elsewhere", (path_ + ".lock").c_str()), 0);
  const auto refused = listen();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kHost);
  EXPECT_NE(refused.error().fix, "");
}

}  // namespace
}  // namespace sbx::http
