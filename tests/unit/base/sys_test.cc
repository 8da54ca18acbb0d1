// The wrappers over system calls, against the kernel.
#include "runtime/base/sys.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace sbx::sys {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

bool closes_on_exec(int fd) {
  return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

// A directory of our own, removed with what is in it.
class Directory : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/test-sbx-base-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    path_ = path;
    auto fd = open(path_, O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(fd);
    fd_ = *std::move(fd);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] int error_of(const std::string& path, std::uint64_t resolve) const {
    const auto opened = open_beneath(fd_.get(), path, O_RDONLY, 0, resolve);
    return opened ? 0 : opened.error().sys_errno;
  }
  std::string path_;
  UniqueFd fd_;
};

using OpenBeneath = Directory;
using Files = Directory;

TEST_F(OpenBeneath, FindsWhatLiesBelow) {
  fs::create_directories(path_ + "/a/b");
  EXPECT_EQ(error_of("a/b", RESOLVE_BENEATH), 0);
}

TEST_F(OpenBeneath, RefusesEveryWayOut) {
  fs::create_directory(path_ + "/a");
  fs::create_symlink("/etc", path_ + "/absolute");
  fs::create_symlink("../..", path_ + "/up");
  EXPECT_EQ(error_of("..", RESOLVE_BENEATH), EXDEV);
  EXPECT_EQ(error_of("a/../..", RESOLVE_BENEATH), EXDEV);
  EXPECT_EQ(error_of("/etc/passwd", RESOLVE_BENEATH), EXDEV);
  EXPECT_EQ(error_of("absolute/passwd", RESOLVE_BENEATH), EXDEV);
  EXPECT_EQ(error_of("up", RESOLVE_BENEATH), EXDEV);
  // The control: without the flag the same names lead out.
  EXPECT_EQ(error_of("absolute/passwd", 0), 0);
  EXPECT_EQ(error_of("..", 0), 0);
}

TEST_F(OpenBeneath, FollowsNoLinkWhereNoneMayBeFollowed) {
  fs::create_directory(path_ + "/a");
  fs::create_symlink("a", path_ + "/link");
  EXPECT_EQ(error_of("link", RESOLVE_BENEATH), 0);
  EXPECT_EQ(error_of("link", RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS), ELOOP);
}

TEST_F(OpenBeneath, NamesThePathThatFailed) {
  const auto opened = open_beneath(fd_.get(), "no/such", O_RDONLY, 0, RESOLVE_BENEATH);
  ASSERT_FALSE(opened);
  EXPECT_EQ(to_string(opened.error()), "openat2: no/such: No such file or directory");
}

TEST_F(Files, AreReadUpToTheLimitAndNotBeyond) {
  const std::string path = path_ + "/file";
  ASSERT_TRUE(open(path, O_WRONLY | O_CREAT, 0600));
  ASSERT_TRUE(write_file(path, "12345678"));
  const auto whole = read_file(path, 8);
  ASSERT_TRUE(whole);
  EXPECT_EQ(*whole, "12345678");
  const auto cut = read_file(path, 7);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(cut.error().detail, path + ": longer than the limit of 7 bytes");
}

TEST_F(Files, ThatAreNotThereAreNamed) {
  const auto missing = read_file(path_ + "/none", 10);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
  EXPECT_THAT(to_string(missing.error()), HasSubstr(path_ + "/none"));
  // write_file never makes a file: a misspelt path in /proc or cgroupfs must not become one.
  EXPECT_FALSE(write_file(path_ + "/none", "x"));
  EXPECT_FALSE(fs::exists(path_ + "/none"));
}

TEST_F(Files, ThatAreNoneAreRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((path_ + "/fifo").c_str(), 0600), 0);
  for (const std::string& path : {path_ + "/fifo", path_, std::string("/dev/zero")}) {
    const auto content = read_file(path, 10);
    ASSERT_FALSE(content) << path;
    EXPECT_EQ(content.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(content.error().detail, path + " is not a regular file");
  }
  EXPECT_TRUE(read_file("/proc/self/stat", 4096));
}

TEST_F(Files, TellTheirFileSystem) {
  EXPECT_TRUE(has_magic(open("/proc/self", O_RDONLY)->get(), PROC_SUPER_MAGIC));
  EXPECT_FALSE(has_magic(fd_.get(), PROC_SUPER_MAGIC));
  EXPECT_FALSE(has_magic(-1, PROC_SUPER_MAGIC));
}

TEST(SealedMemfd, HoldsTheBytesAndCannotBeChanged) {
  const auto fd = sealed_memfd("test", as_bytes("sealed"), false);
  ASSERT_TRUE(fd);
  std::array<char, 16> content{};
  EXPECT_EQ(::pread(fd->get(), content.data(), content.size(), 0), 6);
  EXPECT_STREQ(content.data(), "sealed");
  EXPECT_EQ(::pwrite(fd->get(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(fd->get(), 0), -1);
  EXPECT_EQ(::ftruncate(fd->get(), 100), -1);
  EXPECT_EQ(::mmap(nullptr, 6, PROT_WRITE, MAP_SHARED, fd->get(), 0), MAP_FAILED);
  EXPECT_EQ(::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1) << "the seals are final";
}

TEST(SealedMemfd, CannotBeChangedThroughANewDescriptorEither) {
  const auto fd = sealed_memfd("test", as_bytes("sealed"), false);
  ASSERT_TRUE(fd);
  const auto again = open("/proc/self/fd/" + std::to_string(fd->get()), O_RDWR);
  EXPECT_TRUE(!again || ::write(again->get(), "x", 1) == -1);
}

TEST(SealedMemfd, RunsWhenItShallAndNotWhenItShallNot) {
  const auto program = read_file("/bin/true", 64UL << 20);
  ASSERT_TRUE(program);
  const auto exit_code_of = [&](bool executable) {
    const auto fd = sealed_memfd("true", as_bytes(*program), executable);
    if (!fd) return -1;
    const pid_t pid = ::fork();
    if (pid == 0) {
      char name[] = "true";
      char* const argv[] = {name, nullptr};
      char* const envp[] = {nullptr};
      (void)::syscall(SYS_execveat, fd->get(), "", argv, envp, AT_EMPTY_PATH);
      ::_exit(111);
    }
    int status = 0;
    (void)::waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(exit_code_of(true), 0);
  // Before Linux 6.3 every memfd has mode 0777; since then a data memfd cannot be run.
  const auto data = sealed_memfd("data", as_bytes("x"), false);
  struct stat info{};
  ASSERT_EQ(::fstat(data->get(), &info), 0);
  EXPECT_EQ(exit_code_of(false), (info.st_mode & 0111) == 0 ? 111 : 0);
}

TEST(SealedMemfd, ClosesOnExec) {
  const auto fd = sealed_memfd("test", {}, true);
  ASSERT_TRUE(fd);
  EXPECT_TRUE(closes_on_exec(fd->get()));
}

class Packets : public ::testing::Test {
 protected:
  void SetUp() override {
    auto pair = seqpacket_pair();
    ASSERT_TRUE(pair);
    ours_ = std::move(pair->first);
    theirs_ = std::move(pair->second);
  }
  UniqueFd ours_, theirs_;
  std::array<std::uint8_t, 16> buffer_{};
};

TEST_F(Packets, CarryBytesAndDescriptorsThatCloseOnExec) {
  auto ends = pipe();
  ASSERT_TRUE(ends);
  const std::array fds{ends->first.get(), ends->second.get()};
  ASSERT_TRUE(send_packet(ours_.get(), as_bytes("hello"), fds));
  auto received = receive_packet(theirs_.get(), buffer_);
  ASSERT_TRUE(received && *received);
  EXPECT_EQ((*received)->size, 5U);
  ASSERT_EQ((*received)->fds.size(), 2U);
  for (const UniqueFd& fd : (*received)->fds) EXPECT_TRUE(closes_on_exec(fd.get()));
  ASSERT_TRUE(write_all((*received)->fds[1].get(), "through"));
  std::array<char, 8> text{};
  EXPECT_EQ(::read(ends->first.get(), text.data(), text.size()), 7);
}

TEST_F(Packets, CarryAsManyDescriptorsAsTheyMayAndNotOneMore) {
  std::vector<int> fds(kMaxPacketFds, ours_.get());
  ASSERT_TRUE(send_packet(ours_.get(), as_bytes("x"), fds));
  const auto received = receive_packet(theirs_.get(), buffer_);
  ASSERT_TRUE(received && *received);
  EXPECT_EQ((*received)->fds.size(), kMaxPacketFds);
  fds.push_back(ours_.get());
  EXPECT_FALSE(send_packet(ours_.get(), as_bytes("x"), fds));
}

TEST_F(Packets, ThatDoNotFitAreAnErrorAndLeakNoDescriptor) {
  const std::string big(buffer_.size() + 1, 'x');
  auto ends = pipe();
  ASSERT_TRUE(ends);
  const int write_end = ends->second.get();
  ASSERT_TRUE(send_packet(ours_.get(), as_bytes(big), {&write_end, 1}));
  ends->second.reset();
  const auto received = receive_packet(theirs_.get(), buffer_);
  ASSERT_FALSE(received);
  EXPECT_EQ(received.error().sys_errno, EMSGSIZE);
  // Every copy of the write end is closed: the reader sees the end at once.
  pollfd end{ends->first.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&end, 1, 0), 1);
}

TEST_F(Packets, NothingThereIsNoError) {
  const auto nothing = receive_packet(theirs_.get(), buffer_, MSG_DONTWAIT);
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
}

TEST_F(Packets, AClosedPeerIsAnEmptyPacketToReadAndAnErrorToWrite) {
  ours_.reset();
  const auto received = receive_packet(theirs_.get(), buffer_);
  ASSERT_TRUE(received && *received);
  EXPECT_EQ((*received)->size, 0U);
  const auto sent = send_packet(theirs_.get(), as_bytes("x"), {});  // and no SIGPIPE
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().sys_errno, EPIPE);
}

TEST(Descriptors, CloseOnExecHoweverTheyAreMade) {
  const auto ends = pipe(O_NONBLOCK);
  const auto sockets = seqpacket_pair();
  ASSERT_TRUE(ends && sockets);
  const auto high = duplicate_above(ends->first.get(), 100);
  ASSERT_TRUE(high);
  EXPECT_GE(high->get(), 100);
  for (const int fd : {ends->first.get(), ends->second.get(), sockets->first.get(),
                       sockets->second.get(), high->get()}) {
    EXPECT_TRUE(closes_on_exec(fd)) << fd;
  }
  EXPECT_FALSE(duplicate_above(-1, 0));
}

TEST(Descriptors, BlockOrNotAsToldAndKeepTheirOtherFlags) {
  const auto ends = pipe();
  ASSERT_TRUE(ends);
  ASSERT_TRUE(set_nonblocking(ends->first.get(), true));
  EXPECT_NE(::fcntl(ends->first.get(), F_GETFL) & O_NONBLOCK, 0);
  ASSERT_TRUE(set_nonblocking(ends->first.get(), false));
  EXPECT_EQ(::fcntl(ends->first.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_FALSE(set_nonblocking(-1, true));
}

TEST_F(Files, ALinkIsReadWholeAndWhatIsNoneIsEmpty) {
  const std::string target(1000, 'x');
  ASSERT_EQ(::symlink(target.c_str(), (path_ + "/link").c_str()), 0);
  EXPECT_EQ(link_target(path_ + "/link"), target);
  EXPECT_EQ(link_target(path_), "");
  EXPECT_EQ(link_target(path_ + "/none"), "");
}

TEST(Errors, OfADiskWithoutRoomAreThoseOfAQuotaToo) {
  EXPECT_TRUE(is_full(ENOSPC) && is_full(EDQUOT));
  EXPECT_FALSE(is_full(0) || is_full(EIO) || is_full(EFBIG));
}

TEST(PidfdSignal, ReachesAProcessAndIsContentWithADeadOne) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (;;) ::pause();
  }
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  ASSERT_TRUE(pidfd_signal(pidfd.get(), SIGKILL));
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(pidfd_signal(pidfd.get(), SIGKILL));
  EXPECT_FALSE(pidfd_signal(-1, SIGKILL));
}

}  // namespace
}  // namespace sbx::sys
