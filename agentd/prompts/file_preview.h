// An attached file as a model is told of it: path, size, first lines. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace agentd::prompts {

inline constexpr std::size_t kMaxPreviewLines = 6;
inline constexpr std::size_t kMaxPreviewBytes = 800;    // of one file
inline constexpr std::size_t kMaxPreviewsBytes = 2400;  // of all

struct AttachedFile {
  std::string name;
  std::string_view content;  // borrowed
};

// Text of strangers: the caller wraps it. Empty for no files.
[[nodiscard]] std::string describe_files(std::span<const AttachedFile> files);

}  // namespace agentd::prompts
