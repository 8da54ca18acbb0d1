#include "agentd/redact/random_hex.h"

#include <sys/random.h>

#include <cerrno>
#include <system_error>
#include <vector>

namespace agentd::redact {

std::string random_hex(std::size_t bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::vector<unsigned char> random(bytes);
  // Up to 256 bytes it is never short; a signal can end the wait for the pool.
  while (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  std::string text;
  for (const unsigned char byte : random) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

}  // namespace agentd::redact
