#include "runtime/policy/limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <variant>

namespace sbx::policy {
namespace {

using std::chrono::milliseconds;

using Member = std::variant<std::uint64_t Limits::*, std::uint32_t Limits::*, bool Limits::*,
                            milliseconds Limits::*, std::optional<milliseconds> Limits::*,
                            NetworkMode Limits::*>;

// `min` and `max` are in the unit of the member: bytes, entries, thousandths of a CPU,
// milliseconds.
struct Row {
  LimitField field;
  Member member;
  std::uint64_t min;
  std::uint64_t max;
};

constexpr std::uint64_t kMaxBytes = 16 * 1024 * kGiB;
constexpr std::uint64_t kMaxMilliseconds = 7ULL * 24 * 3600 * 1000;
// A tmpfs of size 0, or with 0 inodes, is one without a limit: so neither may be asked for.
constexpr std::uint64_t kMinTmpfs = 4 * kKiB;
constexpr std::uint64_t kMinInodes = 2;
constexpr std::uint64_t kMaxInodes = 1ULL << 30U;
constexpr std::uint64_t kMaxStream = kGiB;

// The table, in the order of printing.
const Row kRows[] = {
    {{"wall_seconds", LimitKind::kSeconds, "--timeout", "seconds of wall time"},
     &Limits::wall_seconds,
     10,
     kMaxMilliseconds},
    {{"cpu_seconds", LimitKind::kSeconds, "--cpu-time", "seconds of CPU time, or none"},
     &Limits::cpu_seconds,
     10,
     kMaxMilliseconds},
    {{"memory", LimitKind::kBytes, "--memory", "bytes of memory, files included; no swap"},
     &Limits::memory,
     kMiB,
     kMaxBytes},
    {{"cpus", LimitKind::kCpus, "--cpus", "CPUs, to thousandths"},
     &Limits::cpus_milli,
     10,
     1'024'000},
    {{"pids", LimitKind::kCount, "--pids", "processes and threads at once"},
     &Limits::pids,
     1,
     4'194'304},
    {{"tmp", LimitKind::kBytes, "", "bytes in /tmp"}, &Limits::tmp, kMinTmpfs, kMaxBytes},
    {{"tmp_inodes", LimitKind::kCount, "", "files in /tmp"},
     &Limits::tmp_inodes,
     kMinInodes,
     kMaxInodes},
    {{"input", LimitKind::kBytes, "", "bytes in /input"}, &Limits::input, kMinTmpfs, kMaxBytes},
    {{"input_inodes", LimitKind::kCount, "", "files in /input"},
     &Limits::input_inodes,
     kMinInodes,
     kMaxInodes},
    {{"output", LimitKind::kBytes, "", "bytes in /output"}, &Limits::output, kMinTmpfs, kMaxBytes},
    {{"output_inodes", LimitKind::kCount, "", "files in /output"},
     &Limits::output_inodes,
     kMinInodes,
     kMaxInodes},
    {{"work", LimitKind::kBytes, "", "bytes in /work"}, &Limits::work, kMinTmpfs, kMaxBytes},
    {{"work_inodes", LimitKind::kCount, "", "files in /work"},
     &Limits::work_inodes,
     kMinInodes,
     kMaxInodes},
    {{"shm", LimitKind::kBytes, "", "bytes in /dev/shm"}, &Limits::shm, kMinTmpfs, kMaxBytes},
    {{"shm_inodes", LimitKind::kCount, "", "files in /dev/shm"},
     &Limits::shm_inodes,
     kMinInodes,
     kMaxInodes},
    {{"stdout_bytes", LimitKind::kBytes, "", "bytes of stdout kept, half head, half tail"},
     &Limits::stdout_bytes,
     2,
     kMaxStream},
    {{"stderr_bytes", LimitKind::kBytes, "", "bytes of stderr kept, half head, half tail"},
     &Limits::stderr_bytes,
     2,
     kMaxStream},
    {{"files", LimitKind::kCount, "", "entries collected from /output"},
     &Limits::files,
     0,
     1'000'000},
    {{"file_bytes", LimitKind::kBytes, "", "bytes of one collected file"},
     &Limits::file_bytes,
     0,
     kMaxBytes},
    {{"files_bytes", LimitKind::kBytes, "", "bytes of all collected files"},
     &Limits::files_bytes,
     0,
     kMaxBytes},
    {{"file_depth", LimitKind::kCount, "", "directories below /output"},
     &Limits::file_depth,
     0,
     64},
    {{"nofile", LimitKind::kCount, "", "open descriptors of a process"},
     &Limits::nofile,
     8,
     1'048'576},
    {{"fsize", LimitKind::kBytes, "", "bytes of one file that a process writes"},
     &Limits::fsize,
     kKiB,
     kMaxBytes},
    {{"output_kills", LimitKind::kBool, "", "end the run once stdout or stderr is over its cap"},
     &Limits::output_kills,
     0,
     1},
    {{"network", LimitKind::kNetwork, "--net", "none, or host: the host's own network"},
     &Limits::network,
     0,
     1},
};

const Row* find_row(std::string_view name) {
  const auto* row = std::find_if(std::begin(kRows), std::end(kRows),
                                 [name](const Row& each) { return each.field.name == name; });
  return row == std::end(kRows) ? nullptr : row;
}

// nullopt: no limit (cpu_seconds only).
std::optional<std::uint64_t> load(const Limits& limits, const Member& member) {
  struct Visitor {
    const Limits& limits;
    std::optional<std::uint64_t> operator()(std::uint64_t Limits::* m) const { return limits.*m; }
    std::optional<std::uint64_t> operator()(std::uint32_t Limits::* m) const { return limits.*m; }
    std::optional<std::uint64_t> operator()(bool Limits::* m) const { return limits.*m ? 1 : 0; }
    std::optional<std::uint64_t> operator()(milliseconds Limits::* m) const {
      return static_cast<std::uint64_t>((limits.*m).count());
    }
    std::optional<std::uint64_t> operator()(std::optional<milliseconds> Limits::* m) const {
      if (!(limits.*m)) return std::nullopt;
      return static_cast<std::uint64_t>((limits.*m)->count());
    }
    std::optional<std::uint64_t> operator()(NetworkMode Limits::* m) const {
      return static_cast<std::uint64_t>(limits.*m);
    }
  };
  return std::visit(Visitor{limits}, member);
}

// Precondition: `value` is within the row's range, so that every cast keeps it.
void store(Limits& limits, const Member& member, std::uint64_t value) {
  struct Visitor {
    Limits& limits;
    std::uint64_t value;
    void operator()(std::uint64_t Limits::* m) const { limits.*m = value; }
    void operator()(std::uint32_t Limits::* m) const {
      limits.*m = static_cast<std::uint32_t>(value);
    }
    void operator()(bool Limits::* m) const { limits.*m = value != 0; }
    void operator()(milliseconds Limits::* m) const {
      limits.*m = milliseconds{static_cast<std::int64_t>(value)};
    }
    void operator()(std::optional<milliseconds> Limits::* m) const {
      limits.*m = milliseconds{static_cast<std::int64_t>(value)};
    }
    void operator()(NetworkMode Limits::* m) const {
      limits.*m = value == 0 ? NetworkMode::kNone : NetworkMode::kHost;
    }
  };
  std::visit(Visitor{limits, value}, member);
}

bool may_be_none(const Row& row) {
  return std::holds_alternative<std::optional<milliseconds> Limits::*>(row.member);
}

std::string value_text(LimitKind kind, std::uint64_t value) {
  switch (kind) {
    case LimitKind::kSeconds:
    case LimitKind::kCpus:
      return thousandths_text(value);
    case LimitKind::kBytes:
      return size_text(value);
    case LimitKind::kCount:
      return std::to_string(value);
    case LimitKind::kBool:
      return value == 0 ? "false" : "true";
    case LimitKind::kNetwork:
      return value == 0 ? "none" : "host";
  }
  return {};
}

std::string_view expectation(const Row& row) {
  switch (row.field.kind) {
    case LimitKind::kSeconds:
      return may_be_none(row) ? "a number of seconds, or none" : "a number of seconds";
    case LimitKind::kCpus:
      return "a number of CPUs";
    case LimitKind::kBytes:
      return "a size: bytes, or a number with K, M or G";
    case LimitKind::kCount:
      return "a whole number";
    case LimitKind::kBool:
      return "true or false";
    case LimitKind::kNetwork:
      return "none or host";
  }
  return {};
}

// A number that no limit of the row's kind can hold: negative, or too small or large to be written
// without an exponent.
bool is_beyond(const Row& row, std::string_view text) {
  const bool decimal = row.field.kind == LimitKind::kSeconds || row.field.kind == LimitKind::kCpus;
  if (!decimal && row.field.kind != LimitKind::kBytes && row.field.kind != LimitKind::kCount) {
    return false;
  }
  const std::string_view digits = text.substr(text.starts_with('-') ? 1 : 0);
  if (digits.empty() || !is_digit(digits.front())) return false;
  if (!decimal) return std::all_of(digits.begin(), digits.end(), is_digit);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return false;
  const double thousandths = value * 1000;
  return error == std::errc::result_out_of_range || thousandths < static_cast<double>(row.min) ||
         thousandths > static_cast<double>(row.max);
}

std::optional<std::uint64_t> parse_value(LimitKind kind, std::string_view text) {
  switch (kind) {
    case LimitKind::kSeconds:
    case LimitKind::kCpus:
      return parse_thousandths(text);
    case LimitKind::kBytes: {
      auto size = parse_size(text);
      if (!size) return std::nullopt;
      return *size;
    }
    case LimitKind::kCount:
      return parse_digits(text);
    case LimitKind::kBool:
      if (text == "true") return 1;
      if (text == "false") return 0;
      return std::nullopt;
    case LimitKind::kNetwork:
      if (text == "none") return 0;
      if (text == "host") return 1;
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

const std::vector<LimitField>& limit_fields() {
  static const std::vector<LimitField> fields = [] {
    std::vector<LimitField> all;
    for (const Row& row : kRows) all.push_back(row.field);
    return all;
  }();
  return fields;
}

Result<void> set_limit(Limits& limits, std::string_view name, std::string_view value) {
  const Row* row = find_row(name);
  if (row == nullptr) return invalid(fmt::format("'{}' is not a limit", name));
  if (may_be_none(*row) && value == "none") {
    limits.*std::get<std::optional<milliseconds> Limits::*>(row->member) = std::nullopt;
    return {};
  }
  const auto number = parse_value(row->field.kind, value);
  if (!number && !is_beyond(*row, value)) {
    return invalid(fmt::format("{}: '{}' is not {}", name, value, expectation(*row)));
  }
  if (!number || *number < row->min || *number > row->max) {
    return invalid(fmt::format("{}: {} is out of range: {} to {}", name, value,
                               value_text(row->field.kind, row->min),
                               value_text(row->field.kind, row->max)));
  }
  store(limits, row->member, *number);
  return {};
}

bool limit_is_above(const Limits& limits, const Limits& most, std::string_view name) {
  const Row* row = find_row(name);
  if (row == nullptr) return false;
  const auto bound = load(most, row->member);
  if (!bound) return false;
  const auto value = load(limits, row->member);
  return !value || *value > *bound;
}

void copy_limit(Limits& limits, const Limits& from, std::string_view name) {
  const Row* row = find_row(name);
  if (row == nullptr) return;
  if (const auto value = load(from, row->member)) {
    store(limits, row->member, *value);
  } else {
    limits.*std::get<std::optional<milliseconds> Limits::*>(row->member) = std::nullopt;
  }
}

std::string limit_text(const Limits& limits, std::string_view name) {
  const Row* row = find_row(name);
  if (row == nullptr) return {};
  const auto value = load(limits, row->member);
  return value ? value_text(row->field.kind, *value) : "none";
}

std::string limit_json(const Limits& limits, std::string_view name) {
  const Row* row = find_row(name);
  if (row == nullptr) return "null";
  const auto value = load(limits, row->member);
  if (!value) return "null";
  if (row->field.kind == LimitKind::kBytes) return std::to_string(*value);
  const std::string text = value_text(row->field.kind, *value);
  return row->field.kind == LimitKind::kNetwork ? '"' + text + '"' : text;
}

std::string caller_limit_text(const CallerLimit& limit) {
  if (limit.is_size) return limit.name + " " + size_text(limit.value);
  return limit.name + " " + std::to_string(limit.value) + (limit.name == "cpu" ? " s" : "");
}

}  // namespace sbx::policy
