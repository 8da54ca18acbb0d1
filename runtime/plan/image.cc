#include "runtime/plan/image.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <nlohmann/json.hpp>
#include <string_view>

#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"

namespace sbx::plan {
namespace {

constexpr std::size_t kMaxManifest = 4 * 1024 * 1024;
constexpr const char* kMatplotlib = "/opt/sbx/matplotlib";
constexpr mode_t kOthersWrite = 022;
constexpr int kMaxLinks = 40;  // as the kernel follows
// What a run mounts over.
constexpr const char* kMountPoints[] = {"dev", "proc", "tmp", "code", "input", "output", "work"};

bool valid_name(const std::string& name) {
  if (name.empty() || name.size() > 64 || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

Result<void> check_mount_point(int parent, const char* name, const std::string& shown) {
  const UniqueFd fd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno == EACCES) return host_lacks("find_image", EACCES, shown, kReadableFix);
  if (!fd && !scarcity_fix(errno).empty()) return name_scarcity(sys_error("find_image", shown));
  alignas(8) char buffer[512];
  const long size = fd ? ::syscall(SYS_getdents64, fd.get(), buffer, sizeof buffer) : -1;
  // "." and ".." alone: 24 bytes each.
  if (size >= 0 && size <= 48) return {};
  return host_lacks("find_image", 0, shown + " is not an empty directory", kRebuildFix);
}

struct Component {
  std::string name;
  bool part = false;  // of the image, and not of what is above it
};

// The last of them is a part when the whole is one.
std::deque<Component> components_of(std::string_view path, bool part) {
  std::deque<Component> found;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(name.size() + 1, path.size()));
    if (!name.empty() && name != ".") found.push_back({std::string(name), false});
  }
  if (found.empty()) found.push_back({".", false});
  found.back().part = part;
  return found;
}

Result<void> check_owner(const std::string& path, uid_t owner, uid_t caller, uid_t top_owner) {
  if (owner == 0 || owner == caller || owner == top_owner) return {};
  return host_lacks("find_image", 0,
                    path + " belongs to uid " + std::to_string(owner) +
                        ", who could put another image in the place of the one below it",
                    "move the images below directories of root's or the caller's, and name the "
                    "place with image_dir in runtime.toml");
}

// Goes the way to a path as the kernel does, link by link, and looks at every directory on it. From
// the top, so that below what is found good nobody else can change what is looked at next.
class Way {
 public:
  explicit Way(std::deque<Component> components) : left_(std::move(components)) {}

  Result<void> check() {
    struct stat top{};
    if (::lstat("/", &top) != 0) return sys_error("lstat", "/");
    top_owner_ = top.st_uid;
    SBX_TRY(check_image_parent("/", top, caller_, top_owner_));
    while (!left_.empty()) {
      const Component next = std::move(left_.front());
      left_.pop_front();
      SBX_TRY(go(next));
    }
    return {};
  }

 private:
  Result<void> go(const Component& next) {
    std::string to = at_ + "/" + next.name;
    if (next.name == ".") to = at_;
    if (next.name == "..") to = at_.substr(0, at_.empty() ? 0 : at_.rfind('/'));
    const std::string path = to.empty() ? "/" : to;
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return sys_error("lstat", path);
    if (S_ISLNK(info.st_mode)) return follow(path, info.st_uid, next.part);
    SBX_TRY(next.part ? check_image_part(path, info.st_uid, info.st_mode, caller_)
                      : check_image_parent(path, info, caller_, top_owner_));
    at_ = std::move(to);
    return {};
  }

  // Who owns a link in a sticky directory can replace it.
  Result<void> follow(const std::string& link, uid_t owner, bool part) {
    SBX_TRY(check_owner(link, owner, caller_, top_owner_));
    const std::string target = sys::link_target(link);
    if (target.empty()) return sys_error("readlink", link);
    if (++links_ > kMaxLinks) {
      errno = ELOOP;
      return sys_error("readlink", link);
    }
    if (target.front() == '/') at_.clear();
    const std::deque<Component> components = components_of(target, part);
    left_.insert(left_.begin(), components.begin(), components.end());
    return {};
  }

  std::deque<Component> left_;
  std::string at_;  // without links; "" is the root directory
  const uid_t caller_ = ::geteuid();
  uid_t top_owner_ = 0;
  int links_ = 0;
};

Result<void> check_way(const std::string& directory, const Image& image) {
  std::deque<Component> components = components_of(directory, true);
  for (const std::string& part : {image.name, image.digest, std::string("rootfs")}) {
    components.push_back({part, true});
  }
  return Way(std::move(components)).check();
}

// SECURITY: sbx-init itself follows no link on the way to a mount point. An image that has one, or
// that hides something below one (dev/null as a link), was made by somebody else than our builder
// and is refused as a whole (CVE-2025-31133, CVE-2025-52565).
Result<void> check_mount_points(const std::string& rootfs) {
  const UniqueFd root(::open(rootfs.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const char* const name : kMountPoints) {
    SBX_TRY(check_mount_point(root.get(), name, rootfs + "/" + name));
  }
  return {};
}

// The manifest's "packages": an object for each language.
Result<nlohmann::json> read_packages(const Image& image) {
  const std::string path = image.directory + "/manifest.json";
  const auto text = sys::read_file(path, kMaxManifest);
  if (!text) {
    const int error = text.error().sys_errno;
    return host_lacks("manifest", error, path, error == EACCES ? kReadableFix : kRebuildFix);
  }
  nlohmann::json manifest = nlohmann::json::parse(*text, nullptr, false);
  if (manifest.is_object() && manifest.contains("packages") && manifest["packages"].is_object()) {
    return std::move(manifest["packages"]);
  }
  return host_lacks("manifest", 0, path + " is not a manifest: it lists no packages", kRebuildFix);
}

}  // namespace

std::vector<std::string> image_directories(const policy::RuntimeConfig& config) {
  if (!config.image_dir.empty()) return {config.image_dir};
  std::vector<std::string> directories{kSystemImages};
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

Result<void> check_image_parent(const std::string& path, const struct stat& info, uid_t caller,
                                uid_t top_owner) {
  SBX_TRY(check_owner(path, info.st_uid, caller, top_owner));
  const mode_t foreign = info.st_gid == info.st_uid ? S_IWOTH : kOthersWrite;
  if ((info.st_mode & foreign) == 0 || (info.st_mode & S_ISVTX) != 0) return {};
  const std::string sudo = caller == 0 || info.st_uid == caller ? "" : "sudo ";
  return host_lacks("find_image", 0,
                    path +
                        " can be written by others, who could put another image in the place "
                        "of the one below it",
                    sudo + "chmod go-w " + path + " # or move the images, see image_dir");
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
  std::string unreadable;
  const std::vector<std::string> directories = image_directories(config);
  for (const std::string& directory : directories) {
    // What cannot be looked at may be there all the same: told when no other is found. But a user's
    // place that is out of his own reach is somebody else's (HOME kept by su).
    const auto note_failure = [&](const std::string& path, int error) {
      if (error == EACCES && directory == directories.front()) unreadable = path;
    };
    const std::string base = directory + "/" + name;
    searched += (searched.empty() ? "" : ", ") + base;
    // The generation is fixed now: a rebuild may switch `current` while this run goes on.
    const std::string generation = sys::link_target(base + "/current");
    if (generation.empty()) note_failure(base + "/current", errno);
    if (generation.empty() || generation.find('/') != std::string::npos) continue;
    image.digest = generation;
    image.directory = base + "/" + generation;
    image.rootfs = image.directory + "/rootfs";
    auto held = sys::open(image.directory, O_RDONLY | O_DIRECTORY);
    if (!held && !scarcity_fix(held.error().sys_errno).empty()) {
      return name_scarcity(std::move(held).error());
    }
    if (!held) note_failure(image.directory, held.error().sys_errno);
    // A rebuild that is just deleting it holds the lock; `current` then names another one.
    if (!held || ::flock(held->get(), LOCK_SH | LOCK_NB) != 0) continue;
    if (::access(image.rootfs.c_str(), X_OK) != 0) {
      note_failure(image.rootfs, errno);
      continue;
    }
    SBX_TRY(check_way(directory, image));
    SBX_TRY(check_mount_points(image.rootfs));
    image.lock = std::make_shared<UniqueFd>(*std::move(held));
    if (::access((image.rootfs + kMatplotlib).c_str(), X_OK) == 0) {
      image.matplotlib_directory = kMatplotlib;
    }
    return image;
  }
  if (!unreadable.empty()) return host_lacks("find_image", EACCES, unreadable, kReadableFix);
  const std::string named = name == "default" ? "" : " --name " + name;
  return host_lacks("find_image", 0, "no image '" + name + "' in " + searched,
                    "build it: ./scripts/image" + named + " (or give --rootfs host)");
}

Result<void> check_manifest(const Image& image) {
  if (image.is_host()) return {};
  const auto packages = read_packages(image);
  return packages ? Result<void>{} : unexpected(packages.error());
}

std::vector<std::string> image_packages(const Image& image, const std::string& key) {
  std::vector<std::string> packages;
  if (image.is_host()) return packages;
  const auto all = read_packages(image);
  if (!all || !all->contains(key) || !(*all)[key].is_object()) return packages;
  for (const auto& [package, version] : (*all)[key].items()) {
    packages.push_back(version.is_string() ? package + " " + version.get<std::string>() : package);
  }
  return packages;
}

}  // namespace sbx::plan
