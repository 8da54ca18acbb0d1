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

class UnreachableSocket : public ::testing::Test {
 protected:
  // The words for a socket of that owner, group and mode. To be called as root.
  Unreachable refused(uid_t user, gid_t group, mode_t mode) {
    EXPECT_EQ(::chown(socket_.c_str(), user, group), 0);
    EXPECT_EQ(::chmod(socket_.c_str(), mode), 0);
    return explain_unreachable("sbxd", socket_, EACCES, "--sbxd-socket");
  }
  sbx::test::TemporaryDirectory directory_;
  std::string socket_ = directory_.write("s.sock", "");
};

TEST_F(UnreachableSocket, IsMissingOrWithoutAListener) {
  const Unreachable missing = explain_unreachable("sbxd", "/none/s.sock", ENOENT, "--sbxd-socket");
  EXPECT_EQ(missing.text, "sbxd does not answer on /none/s.sock: there is no such socket");
  EXPECT_EQ(missing.fix, "start sbxd, or name its socket with --sbxd-socket");
  const Unreachable refused = explain_unreachable("sbxd", "/s.sock", ECONNREFUSED, "--sbxd-socket");
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
  const Unreachable hidden = explain_unreachable("sbxd", "/none/s.sock", EACCES, "--sbxd-socket");
  EXPECT_TRUE(has(hidden.text, "the way to /none/s.sock")) << hidden.text;
  EXPECT_FALSE(has(hidden.fix, "usermod")) << hidden.fix;
}

TEST_F(UnreachableSocket, IsNamedByTheClientAndNotAsAPort) {
  Client client;
  ClientRequest request{.url = "http://sbxd/"};
  request.unix_socket = "/none/s.sock";
  const ClientResult result = client.perform(request);
  const auto* error = std::get_if<ClientError>(&result);
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(error->detail, "/none/s.sock: No such file or directory");
}

}  // namespace
}  // namespace sbx::http
