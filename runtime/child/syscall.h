// Raw system calls for sbx-init and for the payload before its exec. Stage: child.
//
// No libc: sbx-init is a tiny static program without one, and between clone(CLONE_VM) and exec the
// payload shares pid 1's memory, errno included. A call returns what the kernel does: a value, or
// -errno. Rules of this folder: no allocation, no stdio, no exceptions, no std containers.
#pragma once

#include <asm/unistd.h>

#include <cstddef>
#include <cstdint>

extern "C" void* memset(void* to, int byte, std::size_t size);

namespace sbx::child {

using Word = long;

inline Word raw_syscall(Word nr, Word a = 0, Word b = 0, Word c = 0, Word d = 0, Word e = 0,
                        Word f = 0) {
#if defined(__x86_64__)
  Word result;
  register Word r10 __asm__("r10") = d;
  register Word r8 __asm__("r8") = e;
  register Word r9 __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register Word x8 __asm__("x8") = nr;
  register Word x0 __asm__("x0") = a;
  register Word x1 __asm__("x1") = b;
  register Word x2 __asm__("x2") = c;
  register Word x3 __asm__("x3") = d;
  register Word x4 __asm__("x4") = e;
  register Word x5 __asm__("x5") = f;
  __asm__ volatile("svc #0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory");
  return x0;
#else
#error "sbx-init knows x86-64 and aarch64"
#endif
}

inline Word word(const void* pointer) {
  return reinterpret_cast<Word>(pointer);
}
inline Word word(std::uint64_t value) {
  return static_cast<Word>(value);
}
inline Word word(std::uint32_t value) {
  return static_cast<Word>(value);
}
inline Word word(int value) {
  return value;
}
inline Word word(Word value) {
  return value;
}

template <typename... Args>
inline Word sys(Word nr, Args... args) {
  return raw_syscall(nr, word(args)...);
}

inline std::size_t text_size(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') ++size;
  return size;
}

inline void close_fd(int fd) {
  (void)sys(__NR_close, fd);
}

[[noreturn]] inline void exit_now(int code) {
  for (;;) (void)sys(__NR_exit_group, code);
}

}  // namespace sbx::child
