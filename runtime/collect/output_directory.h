// Writes collected files below a directory of the caller's (sbx-run --output-dir). Stage: collect.
//
// Writes only beneath the target, never over or through a link: an existing entry that is not a
// regular file is refused, an existing regular file is replaced atomically, directories on the way
// are opened with openat2 BENEATH|NO_SYMLINKS and made with mode 0755, files with 0644, both less
// the umask. Leaves no temporary name behind, also when killed; only on a file system without
// O_TMPFILE can a kill leave a file cut short or one named `.sbx-…`. Needs /proc. Replacing forks a
// child for two calls and waits for it (the caller gets a SIGCHLD).
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/collect/collection.h"

namespace sbx::collect {

class OutputDirectory {
 public:
  // Makes the directory when its parent exists, and checks that it can be written, before the run.
  // kInvalid when not, with the errno and what to do.
  [[nodiscard]] static Result<OutputDirectory> open(const std::string& path);
  // What open() would say, but nothing is made.
  [[nodiscard]] static Result<void> check(const std::string& path);
  // A sink that saves there under the exact bytes of each name; `saved_as` becomes path + "/" +
  // CollectedFile::path. This object outlives the sink (it may be moved). Names that are taken by
  // anything but a regular file come back as errors, which Collection lists as refused entries.
  [[nodiscard]] FileSink sink() const;

 private:
  OutputDirectory(std::string path, UniqueFd fd);
  std::string path_;
  UniqueFd fd_;
};

}  // namespace sbx::collect
