// memory_hog N: N children, each of which takes memory until it is killed; prints how many of them
// ended, if it lives to see that.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

[[noreturn]] void hog() {
  constexpr std::size_t kPiece = 1U << 20;
  for (;;) {
    void* const memory =
        ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) ::_exit(9);
    std::memset(memory, 1, kPiece);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int i = 0; i < count; ++i) {
    if (::fork() == 0) hog();
  }
  int ended = 0;
  while (::wait(nullptr) > 0) ++ended;
  (void)std::printf("%d ended\n", ended);
  return 0;
}
