// What lies below an image's rootfs/, as `sbx-run doctor` looks through it. Stage: edge (doctor).
// A run looks at nothing there but its mount points.
#pragma once

#include "runtime/base/result.h"
#include "runtime/plan/image.h"
#include "runtime/policy/language.h"

namespace sbx::cli {

// kHost, with the fix, where the interpreter of the language is not there, is no regular file, or
// cannot be executed by everybody. Links are resolved inside.
[[nodiscard]] Result<void> check_interpreter(const plan::Image& image,
                                             const policy::Language& language);
// The same of each language that the manifest lists.
[[nodiscard]] Result<void> check_interpreters(const plan::Image& image);

// kHost, with the fix, for the first directory or file that is not root's or the caller's or that
// others can write (whoever can, decides what runs), and for one that not everybody can read, which
// a run's own id could not either. Links are not followed; more than a million entries are too many
// to look at.
[[nodiscard]] Result<void> check_contents(const plan::Image& image);

}  // namespace sbx::cli
