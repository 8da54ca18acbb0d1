#include "agentd/history/artifact_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "runtime/base/sys.h"

namespace agentd::history {
namespace {

sbx::Result<void> write_file(const std::string& path, std::string_view content) {
  SBX_ASSIGN(const sbx::UniqueFd file,
             sbx::sys::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  auto written = sbx::sys::write_all(file.get(), content);
  if (!written) return std::move(written).error().with_context(path);
  return {};
}

}  // namespace

sbx::Result<ArtifactFiles> ArtifactFiles::open(const std::string& state_dir) {
  const std::string directory = state_dir + "/artifacts";
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return sbx::host_lacks("mkdir", errno, directory, "make the state directory writable");
  }
  return ArtifactFiles(directory);
}

// Ids are ours: letters, digits and "_".
std::string ArtifactFiles::directory_of(const std::string& request) const {
  return directory_ + "/" + request;
}

sbx::Result<void> ArtifactFiles::write(const std::string& request,
                                       const std::vector<std::string>& contents) const {
  if (contents.empty()) return {};
  const std::string directory = directory_of(request);
  if (::mkdir(directory.c_str(), 0700) != 0) return sbx::sys_error("mkdir", directory);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    auto written = write_file(directory + "/" + std::to_string(i), contents[i]);
    if (written) continue;
    remove(request);
    return written;
  }
  return {};
}

sbx::Result<sbx::UniqueFd> ArtifactFiles::read(const std::string& request,
                                               std::size_t number) const {
  return sbx::sys::open(directory_of(request) + "/" + std::to_string(number),
                        O_RDONLY | O_NOFOLLOW);
}

void ArtifactFiles::remove(const std::string& request) const {
  std::error_code ignored;  // what cannot be removed now is found no more
  std::filesystem::remove_all(directory_of(request), ignored);
}

}  // namespace agentd::history
