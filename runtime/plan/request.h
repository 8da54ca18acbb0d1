// Request: what the caller wants run. Stage: plan. A value; nothing in it was checked yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace sbx::plan {

// A file given with the request. `content` is read by the caller, never by path inside the runtime.
struct InputFile {
  std::string name;  // one component, no '/' and no NUL, not "." or ".."
  std::string content;
};

// What a session's workspace holds, as a tmpfs counts it.
struct WorkspaceSize {
  std::uint64_t bytes = 0;   // whole pages of data
  std::uint64_t inodes = 1;  // the top directory is one
};

struct Request {
  // Exactly one of `language` (with `code`) and `argv` (any program of the rootfs).
  std::string language;
  std::string code;
  std::vector<std::string> argv;
  std::vector<std::string> args;                         // after the program's own argv
  std::vector<std::pair<std::string, std::string>> env;  // adds to, and replaces, the fixed list
  std::vector<InputFile> files;                          // below /input
  std::optional<WorkspaceSize> workspace;                // none: /work starts empty and is dropped
  std::optional<std::string> stdin_text;  // none: /dev/null, unless RunHooks::stdin_fd is set
};

}  // namespace sbx::plan
