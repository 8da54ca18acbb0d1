// The log of a daemon: one JSON object a line on stderr. Stage: base.
//
//   log::info("run ended", {{"run", id}, {"status", status}, {"seconds", 1.5}});
//   {"time":"2024-05-01T12:00:00.123Z","level":"info","event":"run ended","run":"…",…}
//
// The only global of the tree. It never blocks: what stderr does not take at once is dropped, and
// counted in the next line that gets through. From any thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace sbx::log {

enum class Level { kDebug, kInfo, kWarning, kError };

[[nodiscard]] std::string_view level_name(Level level);
[[nodiscard]] std::optional<Level> level_from_name(std::string_view name);

struct Field {
  std::string_view name;
  std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;
};
using Fields = std::initializer_list<Field>;

// Longer lines are cut: up to this length a line is written whole or not at all.
inline constexpr std::size_t kMaxLine = 4096;  // PIPE_BUF

// Lines below `level` are not written. At start-up, before other threads.
void set_level(Level level);

void write(Level level, std::string_view event, Fields fields);
inline void debug(std::string_view event, Fields fields = {}) {
  write(Level::kDebug, event, fields);
}
inline void info(std::string_view event, Fields fields = {}) {
  write(Level::kInfo, event, fields);
}
inline void warning(std::string_view event, Fields fields = {}) {
  write(Level::kWarning, event, fields);
}
inline void error(std::string_view event, Fields fields = {}) {
  write(Level::kError, event, fields);
}

// What write() writes, without its end. `milliseconds` since the epoch.
[[nodiscard]] std::string line(std::int64_t milliseconds, Level level, std::string_view event,
                               Fields fields);
// "2024-05-01T12:00:00.123Z".
[[nodiscard]] std::string utc_time(std::int64_t milliseconds_since_epoch);

}  // namespace sbx::log
