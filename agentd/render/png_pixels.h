// The pixels of a PNG file that nobody trusts.
//
// SECURITY: libpng reads it in a child process that can do nothing but read and write what it has,
// and allocate memory (seccomp, resource limits). What comes back is a width, a height and bytes,
// checked against each other. A child that breaks, or takes too long, is a file without pixels.
#pragma once

#include <optional>
#include <string>

#include "agentd/render/sixel.h"

namespace agentd::render {

inline constexpr int kMaxPictureSide = 4096;

// On white where it is transparent. nullopt: no PNG, too large, or broken. Blocks, at most a few
// seconds.
[[nodiscard]] std::optional<Pixels> png_pixels(const std::string& file);

}  // namespace agentd::render
