// A page of the entries of a tree. Stage: workspace.
#pragma once

#include <time.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::workspace {

enum class EntryKind : std::uint8_t { kFile, kDirectory, kSymlink };
[[nodiscard]] std::string_view kind_name(EntryKind kind);  // "file", "directory", "symlink"

struct ListedEntry {
  std::string path;
  EntryKind kind = EntryKind::kFile;
  std::uint64_t size = 0;  // of a file, in bytes
  std::uint32_t mode = 0;  // permission bits
  timespec modified{};
  std::string target;  // of a symbolic link
};

struct Listing {
  std::vector<ListedEntry> entries;
  bool more = false;  // further entries follow the last one
};

// The first entries, in byte order of their paths, whose path is greater than `after` ("": from the
// start): at most `max_entries`, and at most `max_bytes` of paths and targets, but one in any case.
// Walks the whole tree, and keeps one page of it. Blocks on disk.
[[nodiscard]] Result<Listing> list_entries(int tree, const std::string& after,
                                           std::size_t max_entries, std::size_t max_bytes);

}  // namespace sbx::workspace
