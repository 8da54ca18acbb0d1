// Takes 96 MiB before main, as a library's constructor can; prints "main" when it lives to see it.
#include <sys/mman.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

constexpr std::size_t kSize = 96U << 20;

__attribute__((constructor)) void take_memory() {
  void* const memory =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) std::memset(memory, 1, kSize);
}

}  // namespace

int main() {
  (void)std::puts("main");
  return 0;
}
