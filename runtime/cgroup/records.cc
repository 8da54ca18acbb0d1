#include "runtime/cgroup/records.h"

namespace sbx::cgroup {

Result<void> check_record(std::string_view record) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  const bool reserved = record == kSupervisorLeaf || record.ends_with(kSpawnerSuffix);
  if (record.empty() || record.size() > kMaxRecord || record[0] == '.' || reserved ||
      record.find_first_not_of(kAllowed) != std::string_view::npos) {
    return invalid("not a record name: " + std::string(record.substr(0, kMaxRecord)));
  }
  return {};
}

std::string_view record_of(std::string_view group_name) {
  if (group_name == kSupervisorLeaf) return {};
  if (group_name.ends_with(kSpawnerSuffix)) group_name.remove_suffix(kSpawnerSuffix.size());
  return group_name;
}

}  // namespace sbx::cgroup
