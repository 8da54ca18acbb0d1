// Saving files of a result, whose names a hostile program chose.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace agentd::cli {

// The last component, fit to be a file's name here: no slash, control or deceptive character, no
// dot or dash in front, not over 200 bytes; "file" when nothing is left.
[[nodiscard]] std::string safe_name(std::string_view name);

// All components, each of them safe; the last one alone when they are more than a sandbox hands
// out.
[[nodiscard]] std::vector<std::string> safe_components(std::string_view name);

// Whether files could be saved there, for one who is about to spend money on them. Makes nothing.
// kInvalid, with a fix.
[[nodiscard]] sbx::Result<void> check_directory(const std::string& path);

// Where files are saved: a directory of the caller's own choice.
class SaveDirectory {
 public:
  // Makes it, and those above it, when they are not there. kInvalid, with a fix.
  [[nodiscard]] static sbx::Result<SaveDirectory> open(const std::string& path);

  // Writes the file, in directories below this one as its name says. Its path.
  // SECURITY: nothing is ever replaced and no link followed below: a name that is taken by a file,
  // or where a directory is wanted by anything else, gets a number.
  [[nodiscard]] sbx::Result<std::string> save(std::string_view name,
                                              std::string_view content) const;

 private:
  SaveDirectory(std::string path, sbx::UniqueFd directory)
      : path_(std::move(path)), directory_(std::move(directory)) {}

  std::string path_;
  sbx::UniqueFd directory_;
};

}  // namespace agentd::cli
