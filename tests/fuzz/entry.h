// What fuzz entries share: the entry's name, `require`, and taking an input apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <type_traits>

// Called by libFuzzer, and by replay_main.cc. Aborts when a property does not hold.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace sbx::fuzz {

inline void require(bool holds) {
  if (!holds) std::abort();
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Takes an input apart from its front. What is not there reads as zeros.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : rest_(as_text(data, size)) {}

  [[nodiscard]] bool empty() const { return rest_.empty(); }
  std::string_view take(std::size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return take(rest_.size()); }
  template <typename T>
  T value() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::uint8_t byte() { return value<std::uint8_t>(); }

 private:
  std::string_view rest_;
};

}  // namespace sbx::fuzz
