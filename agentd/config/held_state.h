// HeldState: the state directory that agentd works in, and whether it is still where it was. What
// is stored in one that was moved away or removed is kept by nobody.
//
// On the loop, for every request: a few looks at what the kernel of a local file system has in
// memory, none at a disk.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace agentd::config {

class HeldState {
 public:
  // When its files have been opened.
  [[nodiscard]] static sbx::Result<HeldState> open(const std::string& state_dir);
  // kHost, with the fix, when the directory, its lock, its database or its log is not the one that
  // was opened, or cannot be looked at.
  [[nodiscard]] sbx::Result<void> check() const;

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  struct File {
    const char* name;  // in the directory; "" is the directory itself
    Identity identity{};
  };
  explicit HeldState(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] sbx::Result<Identity> look(const char* name) const;
  [[nodiscard]] std::string path_of(const char* name) const;

  std::string path_;
  sbx::UniqueFd directory_;
  std::vector<File> files_;
};

}  // namespace agentd::config
