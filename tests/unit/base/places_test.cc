#include "runtime/base/places.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/base/as_user.h"
#include "tests/support/process.h"

namespace sbx {
namespace {

constexpr const char* kVariable = "SBX_PLACES_TEST";

TEST(Places, OfTheEnvironmentAreAbsoluteAndTheFirstOfAList) {
  (void)::unsetenv(kVariable);
  EXPECT_EQ(path_from_environment(kVariable), "");
  for (const auto& [value, path] :
       {std::pair("/a/b", "/a/b"), std::pair("/a:/b", "/a"), std::pair("a/b", ""),
        std::pair("", ""), std::pair(":/b", "")}) {
    ASSERT_EQ(::setenv(kVariable, value, 1), 0);
    EXPECT_EQ(path_from_environment(kVariable), path) << value;
  }
  (void)::unsetenv(kVariable);
}

TEST(Places, WhoseDiskFailsAreTheHostsLackWithTheFix) {
  for (const int cause : {ENOSPC, EDQUOT, EROFS, EIO, EFBIG}) {
    errno = cause;
    const Error named = name_disk_failure(sys_error("pwrite", "a file"));
    EXPECT_EQ(named.code, ErrorCode::kHost) << cause;
    EXPECT_NE(named.fix, "") << cause;
    EXPECT_EQ(named.detail, "a file");
    EXPECT_EQ(named.sys_errno, cause);
  }
  errno = EBADF;
  const Error other = name_disk_failure(sys_error("pwrite"));
  EXPECT_EQ(other.code, ErrorCode::kInternal) << "ours";
  EXPECT_EQ(other.fix, "");
}

TEST(Places, AreMadeWithWhatIsMissingAboveThemAndStayAsTheyWere) {
  const test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/a/b/c";
  const auto mode_of = [](const std::string& of) {
    struct stat status{};
    EXPECT_EQ(::stat(of.c_str(), &status), 0) << of;
    return status.st_mode & 0777U;
  };
  const mode_t umask = ::umask(022);
  ASSERT_TRUE(make_with_parents(path, 0700));
  EXPECT_EQ(mode_of(path), 0700U);
  EXPECT_EQ(mode_of(directory.path() + "/a/b"), 0755U);
  ASSERT_TRUE(make_with_parents(path, 0755));
  EXPECT_EQ(mode_of(path), 0700U);
  (void)::umask(umask);
}

// With a slash at the end of its name, the kernel would follow a link that is refused without one.
TEST(Places, APrivateDirectoryIsTheSameWithASlashAtItsEnd) {
  const test::TemporaryDirectory directory;
  const PrivateOwner owner{.uid = ::geteuid(), .gid = ::getegid(), .way_out = "name another"};
  const std::string path = directory.path() + "/state";
  {
    FreshDirectories fresh;
    const auto made = private_directory(path + "/", owner, fresh);
    ASSERT_TRUE(made) << to_string(made.error());
    struct stat info{};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 07777, 0700U);
    EXPECT_TRUE(fresh.hold(path));
    fresh.keep();
  }
  FreshDirectories fresh;
  ASSERT_EQ(::symlink(path.c_str(), (directory.path() + "/link").c_str()), 0);
  for (const std::string slash : {"", "/", "//"}) {
    const auto linked = private_directory(directory.path() + "/link" + slash, owner, fresh);
    ASSERT_FALSE(linked) << slash;
    EXPECT_NE(to_string(linked.error()).find("is a symbolic link"), std::string::npos);
  }
}

TEST(Places, ThatCannotBeMadeAreNamedWithAFix) {
  test::TemporaryDirectory directory;
  const std::string file = directory.write("file", "");
  const auto made = make_with_parents(file + "/below/it", 0755);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().sys_errno, ENOTDIR);
  EXPECT_NE(made.error().detail.find(file + "/below"), std::string::npos) << made.error().detail;
  EXPECT_EQ(made.error().fix, "make " + file + "/below/it, or name another place");
  if (::geteuid() != 0) return;  // the others need somebody who is not root
  ASSERT_EQ(::mkdir((directory.path() + "/shut").c_str(), 0700), 0);
  const AsUser nobody(65534, 65534);
  const auto refused = make_with_parents(directory.path() + "/shut/a/b", 0755);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno, EACCES);
  EXPECT_NE(refused.error().fix.find("/shut/a/b as a directory of uid "), std::string::npos)
      << refused.error().fix;
}

}  // namespace
}  // namespace sbx
