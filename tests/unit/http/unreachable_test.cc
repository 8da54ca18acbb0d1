// Why a socket cannot be connected to, and that no fix gives more away than the socket.
#include "http/unreachable.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "http/client.h"
#include "tests/support/process.h"

namespace sbx::http {
namespace {

constexpr uid_t kStranger = 54321;  // of no name here
constexpr gid_t kStrangersGroup = 54322;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// What the client says of connecting to it.
ClientError error_at(const std::string& socket) {
  Client client;
  ClientRequest request{.url = "http://sbxd/"};
  request.unix_socket = socket;
  const ClientResult result = client.perform(request);
  const auto* error = std::get_if<ClientError>(&result);
  return error == nullptr ? ClientError{} : *error;
}

Unreachable explained(const std::string& socket, int sys_errno) {
  const ClientError error{.kind = ClientError::Kind::kUnreachable, .sys_errno = sys_errno};
  return explain_unreachable("sbxd", socket, error, "--sbxd-socket");
}

class UnreachableSocket : public ::testing::Test {
 protected:
  // The words for a socket of that owner, group and mode. To be called as root.
  Unreachable refused(uid_t user, gid_t group, mode_t mode) {
    EXPECT_EQ(::chown(socket_.c_str(), user, group), 0);
    EXPECT_EQ(::chmod(socket_.c_str(), mode), 0);
    return explained(socket_, EACCES);
  }
  sbx::test::TemporaryDirectory directory_;
  std::string socket_ = directory_.write("s.sock", "");
};

TEST_F(UnreachableSocket, IsMissingOrWithoutAListener) {
  const Unreachable missing = explained("/none/s.sock", ENOENT);
  EXPECT_EQ(missing.text, "sbxd does not answer on /none/s.sock: there is no such socket");
  EXPECT_EQ(
      missing.fix,
      "start sbxd, or name its socket with --sbxd-socket; if sbxd was started and ended, what "
      "it wrote to stderr says why");
  const Unreachable refused = explained("/s.sock", ECONNREFUSED);
  EXPECT_EQ(refused.text, "sbxd does not answer on /s.sock: nobody listens on it");
}

TEST_F(UnreachableSocket, OfAGroupThatMayUseItSaysWhichGroupToJoin) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, who may give files away";
  const Unreachable of_group = refused(kStranger, kStrangersGroup, 0660);
  EXPECT_TRUE(has(of_group.text, "permission denied: " + socket_)) << of_group.text;
  EXPECT_TRUE(has(of_group.text, "54321:54322 with mode 0660")) << of_group.text;
  EXPECT_TRUE(has(of_group.fix, "usermod -aG 54322 root")) << of_group.fix;
  EXPECT_FALSE(has(of_group.text + of_group.fix, "start sbxd")) << "it runs";
}

TEST_F(UnreachableSocket, OfRootsGroupOrOneThatMayNotEitherSaysWhoseItIs) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, who may give files away";
  for (const mode_t mode : {0600U, 0640U, 0604U}) {
    const Unreachable closed = refused(kStranger, kStrangersGroup, mode);
    EXPECT_FALSE(has(closed.fix, "usermod")) << closed.fix;
    EXPECT_TRUE(has(closed.fix, "be 54321, whose it is")) << closed.fix;
    EXPECT_TRUE(has(closed.fix, "--sbxd-socket")) << closed.fix;
  }
  for (const mode_t mode : {0600U, 0660U, 0666U}) {
    const Unreachable roots = refused(0, 0, mode);
    EXPECT_FALSE(has(roots.fix, "usermod")) << roots.fix;
    EXPECT_TRUE(has(roots.text, "root:root")) << roots.text;
    EXPECT_TRUE(has(roots.fix, "root's alone")) << roots.fix;
  }
}

TEST_F(UnreachableSocket, BehindAClosedDirectorySaysSo) {
  const Unreachable hidden = explained("/none/s.sock", EACCES);
  EXPECT_TRUE(has(hidden.text, "the way to /none/s.sock")) << hidden.text;
  EXPECT_FALSE(has(hidden.fix, "usermod")) << hidden.fix;
}

// One without a number of the system's: its path is longer than an address can be.
TEST_F(UnreachableSocket, ForAnotherReasonSaysIt) {
  const std::string socket = "/" + std::string(200, 'x');
  const ClientError error = error_at(socket);
  EXPECT_EQ(error.kind, ClientError::Kind::kUnreachable);
  EXPECT_EQ(error.sys_errno, 0);
  ASSERT_FALSE(error.detail.empty());
  EXPECT_EQ(explain_unreachable("sbxd", socket, error, "--sbxd-socket").text,
            "sbxd does not answer on " + socket + ": " + error.detail);
}

TEST_F(UnreachableSocket, IsNamedByTheClientAndNotAsAPort) {
  EXPECT_EQ(error_at("/none/s.sock").detail, "/none/s.sock: No such file or directory");
}

}  // namespace
}  // namespace sbx::http
