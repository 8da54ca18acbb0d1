#include "runtime/cli/doctor_image.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

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

// What is wrong in it; not `broken`: no run is refused for it.
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
  const Result<plan::Image> image = host.find_image(options.image, options.config);
  if (!image) {
    const Error& error = image.error();
    if (error.sys_errno != 0) return image_unreadable(error.detail, error.sys_errno);
    return {"image", true, CheckState::kMissing, error.detail, error.fix};
  }
  const PathFacts rootfs = host.path_facts(image->rootfs);
  if (rootfs.sys_errno != 0) return image_unreadable(image->rootfs, rootfs.sys_errno);
  if ((rootfs.mode & S_IXOTH) == 0) return image_shut(image->rootfs, "shut to others");
  if (const Result<void> found = host.check_interpreters(*image); !found) {
    return image_fault(found.error(), true);
  }
  for (const Result<void>& found : {host.check_manifest(*image), host.check_contents(*image)}) {
    if (!found) return image_fault(found.error(), false);
  }
  return image_ok(image->directory);
}

// All of it together: only where each required part is there, since else its fix comes first.
Check check_run(Host& host, const DoctorOptions& options, bool rest_holds) {
  if (!rest_holds) {
    return {"run", true, CheckState::kUntried, "not before what is required above is ok",
            "mend what is above first"};
  }
  const Result<std::vector<std::string>> ran = host.run_languages(options.image, options.config);
  if (!ran) {
    return {"run", true, CheckState::kMissing, to_string(ran.error()), ran.error().fix};
  }
  return {"run",
          true,
          CheckState::kOk,
          ran->empty() ? "no language in the image"
                       : fmt::format("an empty program of {}", fmt::join(*ran, ", ")),
          {}};
}

}  // namespace sbx::cli
