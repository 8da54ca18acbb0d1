#include "runtime/cli/doctor_image.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace sbx::cli {
namespace {

Check image_ok(std::string detail) {
  return {"image", true, CheckState::kOk, std::move(detail), {}};
}

Check image_shut(const std::string& path, std::string_view what) {
  return {"image", true, CheckState::kMissing, fmt::format("{}: {}", path, what),
          plan::kReadableFix};
}

// What is wrong below rootfs/: no run is refused for what others may write there.
Check image_fault(const Error& error, bool broken) {
  const std::string why =
      error.detail +
      (error.sys_errno == 0 ? "" : fmt::format(": {}", std::strerror(error.sys_errno)));
  return {"image", broken, broken ? CheckState::kMissing : CheckState::kDegraded, why,
          error.fix.empty() ? plan::kRebuildFix : error.fix};
}

// No mode helps a part that is gone, or a disk that fails.
Check image_unreadable(const std::string& path, int sys_errno) {
  if (sys_errno == EACCES) return image_shut(path, std::strerror(EACCES));
  return {"image", true, CheckState::kMissing,
          fmt::format("{}: {}", path, std::strerror(sys_errno)), plan::kRebuildFix};
}

}  // namespace

Check check_image(Host& host, const DoctorOptions& options) {
  if (options.image == "host") return image_ok("the host's /usr");
  constexpr mode_t kWorldReadable = 05;  // r-x for others
  const Result<plan::Image> image = host.find_image(options.image, options.config);
  if (!image) {
    const Error& error = image.error();
    if (error.sys_errno != 0) return image_unreadable(error.detail, error.sys_errno);
    return {"image", true, CheckState::kMissing, error.detail, error.fix};
  }
  const PathFacts rootfs = host.path_facts(image->rootfs);
  if (rootfs.sys_errno != 0) return image_unreadable(image->rootfs, rootfs.sys_errno);
  if ((rootfs.mode & kWorldReadable) != kWorldReadable) {
    return image_shut(image->rootfs, "not readable by everyone");
  }
  const std::string manifest = image->directory + "/manifest.json";
  if (const PathFacts facts = host.path_facts(manifest); facts.sys_errno != 0) {
    return image_unreadable(manifest, facts.sys_errno);
  }
  if (const Result<void> found = host.check_interpreters(*image); !found) {
    return image_fault(found.error(), true);
  }
  if (const Result<void> found = host.check_contents(*image); !found) {
    return image_fault(found.error(), false);
  }
  return image_ok(image->directory);
}

}  // namespace sbx::cli
