#include "runtime/plan/image.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/base/sys.h"

namespace sbx::plan {
namespace {

constexpr std::size_t kMaxManifest = 4 * 1024 * 1024;
constexpr const char* kMatplotlib = "/opt/sbx/matplotlib";
constexpr const char* kBuildFix = "build it: ./scripts/image (or give --rootfs host)";
constexpr const char* kRebuildFix = "rebuild it: ./scripts/image --force";
// What a run mounts over.
constexpr const char* kMountPoints[] = {"dev", "proc", "tmp", "code", "input", "output", "work"};

bool valid_name(const std::string& name) {
  if (name.empty() || name.size() > 64 || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

bool is_empty_directory(int parent, const char* name) {
  const UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return false;
  alignas(8) char buffer[512];
  const long size = ::syscall(SYS_getdents64, fd.get(), buffer, sizeof buffer);
  // "." and ".." alone: 24 bytes each.
  return size >= 0 && size <= 48;
}

// From the top, so that below a part that is found good nobody else can change what is looked at
// next.
Result<void> check_parts(const std::string& directory, const std::string& base,
                         const Image& image) {
  for (const std::string& path : {directory, base, image.directory, image.rootfs}) {
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return sys_error("stat", path);
    SBX_TRY(check_image_part(path, info.st_uid, info.st_mode, ::geteuid()));
  }
  return {};
}

// SECURITY: sbx-init itself follows no link on the way to a mount point. An image that has one, or
// that hides something below one (dev/null as a link), was made by somebody else than our builder
// and is refused as a whole (CVE-2025-31133, CVE-2025-52565).
Result<void> check_mount_points(const std::string& rootfs) {
  const UniqueFd root(::open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const char* const name : kMountPoints) {
    if (is_empty_directory(root.get(), name)) continue;
    return host_lacks("find_image", 0, rootfs + "/" + name + " is not an empty directory",
                      kRebuildFix);
  }
  return {};
}

}  // namespace

std::vector<std::string> image_directories(const policy::RuntimeConfig& config) {
  if (!config.image_dir.empty()) return {config.image_dir};
  std::vector<std::string> directories{"/var/lib/sbx/images"};
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  if (data != nullptr && *data == '/') {
    directories.push_back(std::string(data) + "/sbx/images");
  } else if (home != nullptr && *home == '/') {
    directories.push_back(std::string(home) + "/.local/share/sbx/images");
  }
  return directories;
}

Result<void> check_image_part(const std::string& path, uid_t owner, mode_t mode, uid_t caller) {
  constexpr mode_t kOthersWrite = 022;
  const std::string sudo = caller == 0 || owner == caller ? "" : "sudo ";
  if (owner != 0 && owner != caller) {
    return host_lacks("find_image", 0,
                      path + " belongs to uid " + std::to_string(owner) +
                          ", neither root's nor the caller's: who owns it decides what runs",
                      sudo + "chown -R root: " + path +
                          " # if you trust what is in it; else remove it and build it anew");
  }
  if ((mode & kOthersWrite) != 0) {
    return host_lacks("find_image", 0, path + " can be written by others, who decide what runs",
                      sudo + "chmod go-w " + path +
                          " # if you trust what is in it; else remove it and build it anew");
  }
  return {};
}

Result<Image> find_image(const std::string& name, const policy::RuntimeConfig& config) {
  Image image;
  image.name = name;
  if (name == "host") return image;
  if (!valid_name(name)) {
    return invalid("rootfs '" + name + "' is not an image name",
                   "use a name such as 'default', or 'host'");
  }
  std::string searched;
  for (const std::string& directory : image_directories(config)) {
    const std::string base = directory + "/" + name;
    searched += (searched.empty() ? "" : ", ") + base;
    // The generation is fixed now: a rebuild may switch `current` while this run goes on.
    const std::string generation = sys::link_target(base + "/current");
    if (generation.empty() || generation.find('/') != std::string::npos) continue;
    image.digest = generation;
    image.directory = base + "/" + generation;
    image.rootfs = image.directory + "/rootfs";
    auto held = sys::open(image.directory, O_RDONLY | O_DIRECTORY);
    // A rebuild that is just deleting it holds the lock; `current` then names another one.
    if (!held || ::flock(held->get(), LOCK_SH | LOCK_NB) != 0) continue;
    if (::access(image.rootfs.c_str(), X_OK) != 0) continue;
    SBX_TRY(check_parts(directory, base, image));
    SBX_TRY(check_mount_points(image.rootfs));
    image.lock = std::make_shared<UniqueFd>(*std::move(held));
    if (::access((image.rootfs + kMatplotlib).c_str(), X_OK) == 0) {
      image.matplotlib_directory = kMatplotlib;
    }
    return image;
  }
  return host_lacks("find_image", 0, "no image '" + name + "' in " + searched, kBuildFix);
}

std::vector<std::string> image_packages(const Image& image, const std::string& key) {
  std::vector<std::string> packages;
  if (image.is_host()) return packages;
  const auto text = sys::read_file(image.directory + "/manifest.json", kMaxManifest);
  if (!text) return packages;
  const auto manifest = nlohmann::json::parse(*text, nullptr, false);
  if (!manifest.is_object() || !manifest.contains("packages")) return packages;
  const auto& all = manifest["packages"];
  if (!all.is_object() || !all.contains(key) || !all[key].is_object()) return packages;
  for (const auto& [package, version] : all[key].items()) {
    packages.push_back(version.is_string() ? package + " " + version.get<std::string>() : package);
  }
  return packages;
}

}  // namespace sbx::plan
