// SHA-256 of a file's bytes, and of bytes at hand. Stage: base.
#pragma once

#include <array>
#include <cstddef>
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

// One hash in the making, for bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  void add(std::string_view bytes);
  // Lower-case hex. Once; nothing can be added then.
  [[nodiscard]] std::string finish();

 private:
  alignas(8) std::array<std::byte, 112> state_;  // libcrypto's SHA256_CTX
};

}  // namespace sbx
