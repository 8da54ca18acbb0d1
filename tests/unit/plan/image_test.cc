// Finding an image: by name alone, never by path, and with the generation fixed.
#include "runtime/plan/image.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sbx::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class Images : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/test-sbx-images-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    config_.image_dir = path;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(config_.image_dir, ignored);
  }
  void add(const std::string& name, const std::string& current) const {
    for (const char* point : {"dev", "proc", "tmp", "code", "input", "output", "work"}) {
      fs::create_directories(config_.image_dir + "/" + name + "/d1/rootfs/" + point);
    }
    fs::create_symlink(current, config_.image_dir + "/" + name + "/current");
  }
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
  EXPECT_THAT(image.error().fix, HasSubstr("./scripts/image"));
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
