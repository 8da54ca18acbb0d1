// SHA-256 of a file's bytes, and of bytes at hand. Stage: base.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace sbx {

// Lower-case hex of the first `size` bytes of `fd`, read from offset 0 without moving it. An error
// when the file is not exactly `size` bytes long. Blocks for the reading.
[[nodiscard]] Result<std::string> sha256_of_file(int fd, std::uint64_t size);
// Lower-case hex.
[[nodiscard]] std::string sha256_of(std::string_view bytes);

}  // namespace sbx
