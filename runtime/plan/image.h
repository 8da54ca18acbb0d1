// Finding a root filesystem image, and what its manifest says. Stage: plan.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/policy/config.h"

namespace sbx::plan {

struct Image {
  std::string name;       // "default", or "host" for the host's own /usr
  std::string digest;     // SHA-256 of the image's file list; "" for host
  std::string rootfs;     // absolute path of the tree; "" for host
  std::string directory;  // holds rootfs/ and manifest.json; "" for host
  // Inside, matplotlib's directory with a font cache made ahead; a rootfs without one gets a
  // writable directory, where the cache is made at the first import.
  std::string matplotlib_directory = "/tmp/.matplotlib";

  // Holds a shared lock on the generation, which a rebuild does not delete while anybody does.
  // Shared: the second owner is every Plan made from this image.
  std::shared_ptr<UniqueFd> lock;

  [[nodiscard]] bool is_host() const { return rootfs.empty(); }
};

// Where the system has its images, for everybody.
inline constexpr const char* kSystemImages = "/var/lib/sbx/images";

// For an image of which a part is gone or broken, and for one that not all may read.
inline constexpr const char* kRebuildFix = "rebuild the image: ./scripts/image --force";
inline constexpr const char* kReadableFix =
    "the image and the directories above it must be readable by everyone: chmod a+rX";

// Where images are looked for, in order.
[[nodiscard]] std::vector<std::string> image_directories(const policy::RuntimeConfig& config);

// SECURITY: whoever can write to a part of an image (the directory of images, what lies in it down
// to rootfs/) decides what runs. So each must be root's or the caller's, and nobody else's to
// write: kHost with the fix otherwise. What lies below rootfs/ is then as its builder made it.
[[nodiscard]] Result<void> check_image_part(const std::string& path, uid_t owner, mode_t mode,
                                            uid_t caller);

// SECURITY: whoever can write to a directory above the parts can put others in their place. So the
// same holds for each, links followed; only that a sticky one (/tmp) may be everybody's, since what
// lies in it is its owner's to move, and that the owner's group may write when it is his alone (its
// id is his, as useradd has it). `top_owner` owns "/" and with it everything: in a user namespace
// without root's id that is who root looks like.
[[nodiscard]] Result<void> check_image_parent(const std::string& path, const struct stat& info,
                                              uid_t caller, uid_t top_owner);

// kHost, with the fix, when there is none, when it cannot be read, when somebody else could change
// it, or when what a run mounts over is not an empty directory in it; kInvalid for a name that is
// no name.
[[nodiscard]] Result<Image> find_image(const std::string& name,
                                       const policy::RuntimeConfig& config);

// kHost, with the fix, where the manifest cannot be read or lists no packages: what the image
// offers cannot be told then. No run needs it.
[[nodiscard]] Result<void> check_manifest(const Image& image);

// Names (with versions) that the manifest lists for a language's key ("python"). Empty for host.
[[nodiscard]] std::vector<std::string> image_packages(const Image& image, const std::string& key);

}  // namespace sbx::plan
