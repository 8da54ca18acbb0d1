// A tree on disk as the stream that sbx-init's filler reads. Stage: workspace.
#pragma once

#include <cstdint>

#include "runtime/base/result.h"

namespace sbx::workspace {

// Writes everything below `tree` as entries of the tmpfs `mount` (an index into Plan::tmpfs), and
// the end, into the blocking pipe. Holes stay holes, and so do pages of zeros: what is filled never
// needs more than measure() said, whatever the file system makes of holes. Constant memory but for
// the names of the directories on the way.
//
// Blocks on disk and while the filler is slow; a filler that died makes an error (EPIPE; SIGPIPE
// must be ignored). A tree that holds anything but directories, regular files and symbolic links is
// refused: nothing of ours makes one.
[[nodiscard]] Result<void> write_fill_stream(int tree, std::uint32_t mount, int pipe);

}  // namespace sbx::workspace
