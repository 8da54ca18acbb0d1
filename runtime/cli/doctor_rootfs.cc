#include "runtime/cli/doctor_rootfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/as_user.h"
#include "runtime/base/sys.h"
#include "runtime/policy/language.h"

namespace sbx::cli {
namespace {

constexpr uid_t kNobody = 65534;
constexpr std::size_t kMaxEntries = 1'000'000;  // the shipped image has 15 000

Result<UniqueFd> open_rootfs(const plan::Image& image) {
  auto fd = sys::open(image.rootfs, O_PATH | O_DIRECTORY);
  if (!fd && fd.error().sys_errno == EACCES) {
    return host_lacks("open", EACCES, image.rootfs, plan::kReadableFix);
  }
  return fd;
}

Result<void> look_at_interpreter(int rootfs, const policy::Language& language,
                                 const std::string& shown) {
  const auto broken = [&](int error, const std::string& what) {
    return host_lacks("interpreter", error, shown + ", which runs " + language.name + what,
                      error == EACCES ? plan::kReadableFix : plan::kRebuildFix);
  };
  const auto fd = sys::open_beneath(rootfs, language.argv.front(), O_PATH, 0, RESOLVE_IN_ROOT);
  if (!fd) return broken(fd.error().sys_errno, "");
  struct stat info{};
  if (::fstat(fd->get(), &info) != 0) return sys_error("fstat", shown);
  if (!S_ISREG(info.st_mode)) return broken(0, ", is not a regular file");
  if ((info.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0) return broken(0, ", is no program");
  if ((info.st_mode & S_IXOTH) == 0) return broken(EACCES, ", cannot be executed by everybody");
  return {};
}

// From the top down, a directory at a time.
class Contents {
 public:
  explicit Contents(const plan::Image& image) : image_(image) {}

  Result<void> check() {
    SBX_ASSIGN(rootfs_, open_rootfs(image_));
    struct stat top{};
    if (::fstat(rootfs_.get(), &top) != 0) return sys_error("fstat", image_.rootfs);
    SBX_TRY(judge(image_.rootfs, top));
    while (!left_.empty() && entries_ < kMaxEntries) {
      const std::string directory = std::move(left_.back());
      left_.pop_back();
      SBX_TRY(list(directory));
    }
    if (left_.empty()) return {};
    return host_lacks("contents", 0,
                      fmt::format("{} has more than {} entries: the others were not looked at",
                                  image_.rootfs, kMaxEntries),
                      "take out of it what no program needs");
  }

 private:
  Result<void> list(const std::string& directory) {
    auto fd = sys::open_beneath(rootfs_.get(), directory, O_RDONLY | O_DIRECTORY, 0,
                                RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (!fd && fd.error().sys_errno == EACCES) {
      return host_lacks("contents", EACCES, image_.rootfs + "/" + directory, plan::kReadableFix);
    }
    if (!fd) return std::move(fd).error().with_context(image_.rootfs);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(fd->get()), ::closedir);
    if (!entries) return sys_error("fdopendir", image_.rootfs + "/" + directory);
    const int parent = fd->release();  // closedir() closes it
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(entries.get());
      if (entry == nullptr && errno != 0) return sys_error("readdir", image_.rootfs);
      if (entry == nullptr) return {};
      const std::string_view name = entry->d_name;
      if (name == "." || name == "..") continue;
      SBX_TRY(look_at(parent, entry->d_name, directory));
    }
  }

  Result<void> look_at(int parent, const char* name, const std::string& directory) {
    const std::string path = directory == "." ? name : directory + "/" + name;
    const std::string shown = image_.rootfs + "/" + path;
    struct stat info{};
    if (::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0)
      return sys_error("fstatat", shown);
    ++entries_;
    if (S_ISDIR(info.st_mode)) left_.push_back(path);
    if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode)) return {};
    return judge(shown, info);
  }

  Result<void> judge(const std::string& shown, const struct stat& info) {
    SBX_TRY(plan::check_image_part(shown, info.st_uid, info.st_mode, ::geteuid()));
    const mode_t wanted = S_ISDIR(info.st_mode) ? S_IROTH | S_IXOTH : S_IROTH;
    if ((info.st_mode & wanted) == wanted) return {};
    return host_lacks("contents", EACCES, shown + ", which a program may want",
                      "chmod -R a+rX " + image_.rootfs);
  }

  const plan::Image& image_;
  UniqueFd rootfs_;
  std::vector<std::string> left_ = {"."};  // directories below rootfs/
  std::size_t entries_ = 0;
};

}  // namespace

Result<void> check_interpreter(const plan::Image& image, const policy::Language& language) {
  // What root may read and pass, a run's own id may not.
  const AsUser anybody(kNobody, kNobody);
  SBX_ASSIGN(const UniqueFd rootfs, open_rootfs(image));
  return look_at_interpreter(rootfs.get(), language, image.rootfs + language.argv.front());
}

Result<void> check_interpreters(const plan::Image& image) {
  for (const policy::Language& language : policy::languages()) {
    if (plan::image_packages(image, language.image).empty()) continue;
    SBX_TRY(check_interpreter(image, language));
  }
  return {};
}

Result<void> check_contents(const plan::Image& image) {
  return Contents(image).check();
}

}  // namespace sbx::cli
