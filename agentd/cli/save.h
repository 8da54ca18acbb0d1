// Saving files of a result, whose names a hostile program chose.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace agentd::cli {

// The last component, fit to be a file's name here: no slash, control or deceptive character, no
// dot or dash in front, not over 200 bytes; "file" when nothing is left.
[[nodiscard]] std::string safe_name(std::string_view name);

// Writes the file into `directory`, which is made when it is not there. Nothing is ever replaced
// and no link followed: a name that is taken gets a number. The path.
[[nodiscard]] sbx::Result<std::string> save_file(const std::string& directory,
                                                 std::string_view name, std::string_view content);

}  // namespace agentd::cli
