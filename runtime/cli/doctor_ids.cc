#include "runtime/cli/doctor_ids.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "runtime/cli/doctor_lines.h"

namespace sbx::cli {
namespace {

// The defaults of login.defs(5).
constexpr std::uint64_t kLeast = 100000;
constexpr std::uint64_t kMost = 600100000;

constexpr std::string_view kBlanks = " \t\r";

// [first, end)
struct Span {
  std::uint64_t first = 0, end = 0;
};

std::optional<std::uint64_t> number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "name:first:count"
void add_ranges(std::string_view text, std::vector<Span>& spans) {
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() < 3) continue;
    const auto first = number(fields[1]);
    const auto count = number(fields[2]);
    if (!first || !count) continue;
    spans.push_back({*first, *first + std::min(*count, UINT64_MAX - *first)});
  }
}

// The ids of the users and groups themselves.
void add_ids(std::string_view text, std::size_t field, std::vector<Span>& spans) {
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> fields = split(line, ':');
    if (fields.size() <= field) continue;
    if (const auto id = number(fields[field]); id && *id < UINT64_MAX) {
      spans.push_back({*id, *id + 1});
    }
  }
}

// "NAME value"; `otherwise` where it is not there, or no decimal number.
std::uint64_t login_default(std::string_view text, std::string_view name, std::uint64_t otherwise) {
  std::uint64_t value = otherwise;
  for (std::string_view line : split(text, '\n')) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (line.find_first_of(kBlanks) == 0) value = number(line).value_or(otherwise);
  }
  return value;
}

Span usable(const std::string& login_defs) {
  const auto at = [&](std::string_view name, std::uint64_t otherwise) {
    return login_default(login_defs, name, otherwise);
  };
  const std::uint64_t end = std::min(at("SUB_UID_MAX", kMost), at("SUB_GID_MAX", kMost));
  return {std::max({kLeast, at("SUB_UID_MIN", kLeast), at("SUB_GID_MIN", kLeast)}),
          std::min<std::uint64_t>(end, UINT32_MAX)};
}

}  // namespace

std::optional<std::uint32_t> free_subordinate_ids(const IdFiles& files,
                                                  const std::vector<IdRange>& taken) {
  std::vector<Span> spans;
  for (const IdRange& range : taken) {
    spans.push_back({range.first, std::uint64_t{range.first} + range.count});
  }
  add_ranges(files.subuid, spans);
  add_ranges(files.subgid, spans);
  add_ids(files.passwd, 2, spans);
  add_ids(files.passwd, 3, spans);
  add_ids(files.group, 2, spans);
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return a.first < b.first; });
  const Span within = usable(files.login_defs);
  std::uint64_t first = within.first;
  for (const Span& span : spans) {
    if (span.first == span.end) continue;
    if (span.first < first + kSubordinateCount) first = std::max(first, span.end);
  }
  if (first > within.end || within.end - first < kSubordinateCount) return std::nullopt;
  return static_cast<std::uint32_t>(first);
}

}  // namespace sbx::cli
