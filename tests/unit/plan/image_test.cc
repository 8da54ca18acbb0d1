// Finding an image: by name alone, never by path, and with the generation fixed.
#include "runtime/plan/image.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/sys.h"

namespace sbx::plan {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/test-sbx-images-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    directory_ = path;
    config_.image_dir = path;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(directory_, ignored);
  }
  void add(const std::string& name, const std::string& current) const {
    for (const char* point : {"dev", "proc", "tmp", "code", "input", "output", "work"}) {
      fs::create_directories(config_.image_dir + "/" + name + "/d1/rootfs/" + point);
    }
    fs::create_symlink(current, config_.image_dir + "/" + name + "/current");
  }
  std::string directory_;  // a test may look for images elsewhere
  policy::RuntimeConfig config_;
};

TEST_F(Images, AreFoundByNameInTheirCurrentGeneration) {
  add("default", "d1");
  const auto image = find_image("default", config_);
  ASSERT_TRUE(image) << to_string(image.error());
  EXPECT_EQ(image->digest, "d1");
  EXPECT_EQ(image->rootfs, config_.image_dir + "/default/d1/rootfs");
  EXPECT_FALSE(image->is_host());
}

TEST_F(Images, ThatAreNotThereAreTheHostsFaultWithTheCommandThatBuildsThem) {
  const auto image = find_image("default", config_);
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, ErrorCode::kHost);
  EXPECT_THAT(image.error().detail,
              HasSubstr("no image 'default' in " + config_.image_dir + "/default"));
  EXPECT_EQ(image.error().fix, "build it: ./scripts/image (or give --rootfs host)");
  EXPECT_THAT(find_image("small", config_).error().fix, HasSubstr("./scripts/image --name small"));
}

TEST_F(Images, WhoseCurrentLeadsElsewhereAreNone) {
  add("up", "../default/d1");
  add("absolute", "/usr");
  add("gone", "d2");
  for (const char* name : {"up", "absolute", "gone"}) EXPECT_FALSE(find_image(name, config_));
}

TEST_F(Images, WhoseMountPointsAreNotEmptyDirectoriesAreRefused) {
  add("default", "d1");
  const std::string rootfs = config_.image_dir + "/default/d1/rootfs";
  for (const std::string& name : {std::string("dev"), std::string("proc"), std::string("work")}) {
    fs::remove(rootfs + "/" + name);
    EXPECT_FALSE(find_image("default", config_)) << "missing: " << name;
    fs::create_directory_symlink("tmp", rootfs + "/" + name);
    const auto linked = find_image("default", config_);
    ASSERT_FALSE(linked) << "a link: " << name;
    EXPECT_EQ(linked.error().code, ErrorCode::kHost);
    EXPECT_THAT(linked.error().detail, HasSubstr("/" + name + " is not an empty directory"));
    fs::remove(rootfs + "/" + name);
    fs::create_directory(rootfs + "/" + name);
    EXPECT_TRUE(find_image("default", config_));
  }
  fs::create_symlink("/etc/passwd", rootfs + "/dev/null");
  EXPECT_FALSE(find_image("default", config_));
}

TEST_F(Images, ThatSomebodyElseCouldChangeAreRefused) {
  add("default", "d1");
  const std::string base = config_.image_dir + "/default";
  ASSERT_TRUE(find_image("default", config_)) << "control";
  for (const std::string& path : {config_.image_dir, base, base + "/d1", base + "/d1/rootfs"}) {
    for (const mode_t mode : {0775U, 0757U, 01777U}) {
      ASSERT_EQ(::chmod(path.c_str(), mode), 0);
      const auto image = find_image("default", config_);
      ASSERT_FALSE(image) << path << " " << mode;
      EXPECT_EQ(image.error().code, ErrorCode::kHost);
      EXPECT_THAT(image.error().fix, HasSubstr("chmod go-w " + path + " "));
    }
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
    EXPECT_TRUE(find_image("default", config_)) << path;
    if (::geteuid() != 0) continue;  // it takes root to give something away
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    const auto image = find_image("default", config_);
    ASSERT_FALSE(image) << path;
    EXPECT_EQ(image.error().code, ErrorCode::kHost);
    EXPECT_THAT(image.error().detail, HasSubstr(path + " belongs to uid 12345"));
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
}

// Who may move a directory of images away can put his own there.
class ImageParents : public Images {
 protected:
  // The images lie in TOP/parent/images now.
  void SetUp() override {
    Images::SetUp();
    top_ = config_.image_dir;
    parent_ = top_ + "/parent";
    config_.image_dir = parent_ + "/images";
    add("default", "d1");
    ASSERT_TRUE(find_image("default", config_)) << "control: /tmp is sticky";
  }
  void TearDown() override {
    config_.image_dir = top_;
    Images::TearDown();
  }
  [[nodiscard]] Error refusal() const {
    const auto image = find_image("default", config_);
    return image ? invalid("accepted") : image.error();
  }
  std::string top_, parent_;
};

TEST_F(ImageParents, ThatOthersCanWriteAreRefusedUnlessTheyAreSticky) {
  for (const std::string& path : {top_, parent_}) {
    for (const mode_t mode : {0757U, 0777U}) {
      ASSERT_EQ(::chmod(path.c_str(), mode), 0);
      EXPECT_EQ(refusal().code, ErrorCode::kHost) << path << " " << mode;
      EXPECT_THAT(refusal().fix, HasSubstr("chmod go-w " + path + " "));
      ASSERT_EQ(::chmod(path.c_str(), mode | S_ISVTX), 0);
      EXPECT_TRUE(find_image("default", config_)) << path << " " << mode;
    }
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
}

TEST_F(ImageParents, ThatBelongToSomebodyElseAreRefused) {
  if (::geteuid() != 0) return;  // it takes root to give something away
  for (const std::string& path : {top_, parent_}) {
    ASSERT_EQ(::chown(path.c_str(), 12345, 0), 0);
    EXPECT_EQ(refusal().code, ErrorCode::kHost) << path;
    EXPECT_THAT(refusal().detail, HasSubstr(path + " belongs to uid 12345"));
    ASSERT_EQ(::chown(path.c_str(), 0, 0), 0);
  }
  EXPECT_TRUE(find_image("default", config_));
}

TEST_F(ImageParents, AreThoseBehindLinksToo) {
  fs::create_directory_symlink("parent/../parent/./images", top_ + "/link");
  fs::create_directory_symlink(top_ + "/link/", top_ + "/linked");
  for (const std::string& name : {std::string("/link"), std::string("/linked//")}) {
    config_.image_dir = top_ + name;
    EXPECT_TRUE(find_image("default", config_)) << name;
    ASSERT_EQ(::chmod(parent_.c_str(), 0777), 0);
    EXPECT_THAT(refusal().detail, HasSubstr(parent_ + " can be written by others")) << name;
    ASSERT_EQ(::chmod(parent_.c_str(), 0755), 0);
  }
  // The image itself, too, may be elsewhere.
  fs::create_directory(top_ + "/elsewhere");
  fs::rename(parent_ + "/images/default", top_ + "/elsewhere/default");
  fs::create_directory_symlink(top_ + "/elsewhere/default", parent_ + "/images/default");
  EXPECT_TRUE(find_image("default", config_));
  ASSERT_EQ(::chmod((top_ + "/elsewhere").c_str(), 0777), 0);
  EXPECT_THAT(refusal().detail, HasSubstr("/elsewhere can be written by others"));
  ASSERT_EQ(::chmod((top_ + "/elsewhere").c_str(), 01777), 0);
  EXPECT_TRUE(find_image("default", config_)) << "a sticky parent";
  ASSERT_EQ(::chmod((top_ + "/elsewhere/default").c_str(), 01777), 0);
  EXPECT_FALSE(find_image("default", config_)) << "but no sticky part";
}

// In a sticky directory a link is its owner's to replace.
TEST_F(ImageParents, AreReachedByNobodyElsesLinks) {
  if (::geteuid() != 0) return;  // it takes root to give something away
  fs::create_directory_symlink("parent/images", top_ + "/link");
  config_.image_dir = top_ + "/link";
  EXPECT_TRUE(find_image("default", config_)) << "control";
  ASSERT_EQ(::lchown((top_ + "/link").c_str(), 12345, 0), 0);
  EXPECT_THAT(refusal().detail, HasSubstr("/link belongs to uid 12345"));
}

TEST(ImageParent, IsWhoseImageItMayBeOrTheRootDirectorysOwners) {
  const auto check = [](uid_t owner, gid_t group, mode_t mode, uid_t caller, uid_t top = 0) {
    struct stat info{};
    info.st_uid = owner;
    info.st_gid = group;
    info.st_mode = mode;
    return check_image_parent("/x", info, caller, top).has_value();
  };
  EXPECT_TRUE(check(0, 0, 0755, 1000));
  EXPECT_TRUE(check(1000, 100, 0700, 1000));
  EXPECT_TRUE(check(0, 0, 01777, 1000));
  EXPECT_FALSE(check(0, 0, 0777, 1000));
  EXPECT_FALSE(check(1001, 1001, 0755, 1000));
  EXPECT_FALSE(check(1001, 1001, 01777, 1000)) << "the owner is not held back";
  EXPECT_FALSE(check(1000, 1000, 0755, 0)) << "a user's, for root";
  EXPECT_TRUE(check(1000, 1000, 0775, 1000)) << "a group of his own";
  EXPECT_FALSE(check(1000, 100, 0775, 1000)) << "everybody's group";
  EXPECT_FALSE(check(0, 50, 0775, 1000));
  EXPECT_TRUE(check(65534, 65534, 0755, 1000, 65534)) << "root, without an id here";
  EXPECT_FALSE(check(65534, 65534, 0755, 1000));
}

// What find_image() says to an ordinary user: root reads everything.
std::string said_to_a_user(const policy::RuntimeConfig& config,
                           const std::string& name = "default") {
  auto pipe = sys::pipe();
  if (!pipe) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(1);
    const auto image = find_image(name, config);
    (void)sys::write_all(pipe->second.get(),
                         image ? "found" : to_string(image.error()) + " | " + image.error().fix);
    ::_exit(0);
  }
  pipe->second.reset();
  const auto said = sys::read_all(pipe->first.get(), 4096);
  (void)::waitpid(child, nullptr, 0);
  return said ? *said : to_string(said.error());
}

TEST_F(Images, ThatCannotBeReadAreSaidToBeThere) {
  add("default", "d1");
  ASSERT_EQ(::chmod(config_.image_dir.c_str(), 0755), 0);
  ASSERT_EQ(said_to_a_user(config_), "found") << "control: root's images are everybody's";
  const std::string base = config_.image_dir + "/default";
  for (const std::string& path : {base, base + "/d1", base + "/d1/rootfs"}) {
    ASSERT_EQ(::chmod(path.c_str(), 0), 0);
    EXPECT_THAT(said_to_a_user(config_),
                AllOf(HasSubstr(path), HasSubstr("Permission denied"), HasSubstr("chmod a+rX")));
    ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  }
}

// As su leaves it, or whoever starts a service as root: the first place decides what is said.
TEST_F(Images, InAHomeThatIsSomebodyElsesAreNobodysBusiness) {
  ASSERT_EQ(::chmod(directory_.c_str(), 0), 0);
  const char* const was = std::getenv("XDG_DATA_HOME");
  const std::string before = was != nullptr ? was : "";
  ASSERT_EQ(::setenv("XDG_DATA_HOME", directory_.c_str(), 1), 0);
  const std::string said = said_to_a_user({}, "no-such-image");
  if (was != nullptr) {
    ::setenv("XDG_DATA_HOME", before.c_str(), 1);
  } else {
    ::unsetenv("XDG_DATA_HOME");
  }
  ASSERT_EQ(::chmod(directory_.c_str(), 0700), 0);
  EXPECT_THAT(said, AllOf(HasSubstr("no image 'no-such-image' in /var/lib/sbx/images/"),
                          HasSubstr("./scripts/image")));
}

TEST(ImageParts, AreRootsOrTheCallersAndNobodyElsesToWrite) {
  EXPECT_TRUE(check_image_part("/x", 0, 0755, 1000));
  EXPECT_TRUE(check_image_part("/x", 1000, 0755, 1000));
  EXPECT_TRUE(check_image_part("/x", 0, 0755, 0));
  EXPECT_FALSE(check_image_part("/x", 1000, 0755, 0)) << "a user's, for root";
  EXPECT_FALSE(check_image_part("/x", 1001, 0755, 1000));
  EXPECT_FALSE(check_image_part("/x", 1000, 0775, 1000));
}

TEST_F(Images, AreNamedNotGivenAsPaths) {
  for (const std::string& name :
       {std::string(), std::string(".."), std::string(".hidden"), std::string("/usr"),
        std::string("a/b"), std::string("A"), std::string(65, 'a')}) {
    const auto image = find_image(name, config_);
    ASSERT_FALSE(image) << name;
    EXPECT_EQ(image.error().code, ErrorCode::kInvalid) << name;
  }
}

TEST_F(Images, OfTheHostNeedNoDirectory) {
  config_.image_dir = "/nowhere";
  const auto image = find_image("host", config_);
  ASSERT_TRUE(image);
  EXPECT_TRUE(image->is_host());
  EXPECT_THAT(image_packages(*image, "python"), IsEmpty());
}

TEST_F(Images, SayWhatTheyHoldAndABrokenManifestSaysNothing) {
  add("default", "d1");
  const auto image = find_image("default", config_);
  ASSERT_TRUE(image);
  const std::string manifest = image->directory + "/manifest.json";
  std::ofstream(manifest) << R"({"packages": {"python": {"numpy": "1.24", "pandas": "1.5"}}})";
  EXPECT_THAT(image_packages(*image, "python"), ElementsAre("numpy 1.24", "pandas 1.5"));
  EXPECT_THAT(image_packages(*image, "javascript"), IsEmpty());
  for (const char* broken :
       {"", "{", "[]", R"({"packages": 1})", R"({"packages":{"python":[]}})"}) {
    std::ofstream(manifest, std::ios::trunc) << broken;
    EXPECT_THAT(image_packages(*image, "python"), IsEmpty()) << broken;
  }
}

}  // namespace
}  // namespace sbx::plan
