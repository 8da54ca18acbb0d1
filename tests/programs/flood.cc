// flood line|nul BYTES: writes that many bytes to standard output, one line without an end or NULs,
// and exits 0.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

char piece[64 * 1024];

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::memset(piece, std::strcmp(argv[1], "nul") == 0 ? 0 : 'x', sizeof piece);
  unsigned long long left = std::strtoull(argv[2], nullptr, 10);
  while (left > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<unsigned long long>(left, sizeof piece));
    const ssize_t put = ::write(STDOUT_FILENO, piece, wanted);
    if (put <= 0) return 1;
    left -= static_cast<unsigned long long>(put);
  }
  return 0;
}
