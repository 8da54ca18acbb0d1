#include "runtime/base/log.h"

#include <fmt/core.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>

namespace sbx::log {
namespace {

std::atomic<Level> least_level{Level::kInfo};
std::atomic<std::uint64_t> dropped{0};

constexpr std::size_t kUsualLine = 384;

bool is_plain(char c) {
  return c >= 0x20 && c <= 0x7e && c != '"' && c != '\\';
}

// The last digits of the number, over the `count` characters from `at` on.
void put_digits(std::string& text, std::size_t at, std::size_t count, std::int64_t number) {
  for (; count > 0; number /= 10) text[at + --count] = static_cast<char>('0' + number % 10);
}

// Bytes from outside 0x20–0x7e go escaped: a log line is ASCII whatever a client sent.
void append_string(std::string& text, std::string_view value) {
  text += '"';
  const auto special = std::find_if_not(value.begin(), value.end(), is_plain);
  text.append(value.begin(), special);
  value.remove_prefix(static_cast<std::size_t>(special - value.begin()));
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (!is_plain(c)) {
      text += fmt::format("\\u{:04x}", byte);
    } else {
      text += c;
    }
  }
  text += '"';
}

void append_value(std::string& text, const Field& field) {
  if (const auto* string = std::get_if<std::string_view>(&field.value)) {
    append_string(text, *string);
  } else if (const auto* boolean = std::get_if<bool>(&field.value)) {
    text += *boolean ? "true" : "false";
  } else if (const auto* number = std::get_if<double>(&field.value)) {
    text += std::isfinite(*number) ? fmt::format("{:.6g}", *number) : "null";
  } else if (const auto* whole = std::get_if<std::int64_t>(&field.value)) {
    text += std::to_string(*whole);
  } else {
    text += std::to_string(std::get<std::uint64_t>(field.value));
  }
}

// A field that does not fit is left out, with those after it.
bool append_field(std::string& text, const Field& field) {
  std::string part = ",";
  append_string(part, field.name);
  part += ':';
  append_value(part, field);
  constexpr std::string_view kCut = R"(,"cut":true})";
  if (text.size() + part.size() + kCut.size() + 1 > kMaxLine) {
    text += R"(,"cut":true)";
    return false;
  }
  text += part;
  return true;
}

bool write_line(const std::string& text) {
  pollfd ready{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&ready, 1, 0) <= 0) return false;
  return ::write(STDERR_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::int64_t now_milliseconds() {
  timespec now{};
  (void)::clock_gettime(CLOCK_REALTIME, &now);  // fails for a bad clock only
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      break;
  }
  return "error";
}

std::optional<Level> level_from_name(std::string_view name) {
  for (const Level level : {Level::kDebug, Level::kInfo, Level::kWarning, Level::kError}) {
    if (level_name(level) == name) return level;
  }
  return std::nullopt;
}

void set_level(Level level) {
  least_level = level;
}

std::string utc_time(std::int64_t milliseconds_since_epoch) {
  std::int64_t rest = milliseconds_since_epoch % 1000;
  if (rest < 0) rest += 1000;  // before 1970
  const time_t seconds = (milliseconds_since_epoch - rest) / 1000;
  tm parts{};
  (void)::gmtime_r(&seconds, &parts);
  std::string text = "0000-00-00T00:00:00.000Z";
  put_digits(text, 0, 4, parts.tm_year + 1900);
  put_digits(text, 5, 2, parts.tm_mon + 1);
  put_digits(text, 8, 2, parts.tm_mday);
  put_digits(text, 11, 2, parts.tm_hour);
  put_digits(text, 14, 2, parts.tm_min);
  put_digits(text, 17, 2, parts.tm_sec);
  put_digits(text, 20, 3, rest);
  return text;
}

std::string line(std::int64_t milliseconds, Level level, std::string_view event, Fields fields) {
  std::string text;
  text.reserve(kUsualLine);
  text += R"({"time":")";
  text += utc_time(milliseconds);
  text += R"(","level":")";
  text += level_name(level);
  text += R"(","event":)";
  append_string(text, event);
  for (const Field& field : fields) {
    if (!append_field(text, field)) break;
  }
  return text + '}';
}

void write(Level level, std::string_view event, Fields fields) {
  if (level < least_level) return;
  if (const std::uint64_t lost = dropped.exchange(0); lost > 0) {
    const Field count{"lines", lost};
    if (!write_line(line(now_milliseconds(), Level::kWarning, "log lines dropped", {count}) + '\n'))
      dropped += lost;
  }
  if (!write_line(line(now_milliseconds(), level, event, fields) + '\n')) ++dropped;
}

}  // namespace sbx::log
