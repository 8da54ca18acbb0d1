// ArtifactFiles: the bytes of artifacts, as plain files in the state directory. Blocking.
//
// <state>/artifacts/<request>/<number>: the names that programs chose are in the record alone, and
// never part of a path.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace agentd::history {

class ArtifactFiles {
 public:
  // Makes the directory where it is missing.
  [[nodiscard]] static sbx::Result<ArtifactFiles> open(const std::string& state_dir);

  // All of a request's, in order. After a failure none is left.
  [[nodiscard]] sbx::Result<void> write(const std::string& request,
                                        const std::vector<std::string>& contents) const;
  [[nodiscard]] sbx::Result<sbx::UniqueFd> read(const std::string& request,
                                                std::size_t number) const;
  void remove(const std::string& request) const;

 private:
  explicit ArtifactFiles(std::string directory) : directory_(std::move(directory)) {}
  [[nodiscard]] std::string directory_of(const std::string& request) const;

  std::string directory_;
};

}  // namespace agentd::history
