// Copying and comparing files with holes. Stage: workspace. Blocks on disk.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "runtime/base/result.h"

namespace sbx::workspace {

// Gives the empty file `to` the content of `from`, holes included, then `mode` and the time of
// `info`, which is fstat(2)'s of `from`. Time and space go by the data, not by the length.
[[nodiscard]] Result<void> copy_file(int from, int to, const struct stat& info, mode_t mode);

// True when both files have the same data in the same places. Files that read alike but differ in
// their holes count as different: two long holes must not cost reading them.
[[nodiscard]] Result<bool> same_content(int a, int b, std::uint64_t size);

}  // namespace sbx::workspace
