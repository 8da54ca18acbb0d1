#include "runtime/daemon/ceilings.h"

#include <fmt/core.h>

#include <algorithm>

#include "runtime/plan/plan.h"

namespace sbx::daemon {

Result<void> Ceilings::set(std::string_view name, std::string_view value) {
  SBX_TRY(policy::set_limit(most_, name, value));
  if (!has(name)) names_.emplace_back(name);
  std::sort(names_.begin(), names_.end());
  return {};
}

void Ceilings::lower(std::string_view name, const policy::Limits& most) {
  if (has(name) && !policy::limit_is_above(most_, most, name)) return;
  policy::copy_limit(most_, most, name);
  if (!has(name)) names_.emplace_back(name);
  std::sort(names_.begin(), names_.end());
}

bool Ceilings::has(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

std::vector<std::string_view> Ceilings::names() const {
  std::vector<std::string_view> ordered;
  for (const policy::LimitField& field : policy::limit_fields()) {
    if (has(field.name)) ordered.push_back(field.name);
  }
  return ordered;
}

std::string Ceilings::text(std::string_view name) const {
  return policy::limit_text(most_, name);
}

bool Ceilings::is_above(const policy::Limits& limits, std::string_view name) const {
  return has(name) && policy::limit_is_above(limits, most_, name);
}

void Ceilings::apply(policy::Limits& limits) const {
  for (const std::string& name : names_) {
    if (is_above(limits, name)) policy::copy_limit(limits, most_, name);
  }
}

Ceilings default_ceilings() {
  Ceilings ceilings;
  for (const auto& [name, value] :
       {std::pair{"wall_seconds", "3600"}, std::pair{"pids", "1024"}, std::pair{"work", "1G"},
        std::pair{"work_inodes", "65536"}, std::pair{"stdout_bytes", "1M"},
        std::pair{"stderr_bytes", "1M"}, std::pair{"files", "1024"}, std::pair{"file_bytes", "64M"},
        std::pair{"files_bytes", "64M"}, std::pair{"network", "none"}}) {
    (void)ceilings.set(name, value);  // a test reads them back
  }
  return ceilings;
}

Result<void> check_least(const policy::Limits& most, std::string_view name) {
  const std::string memory = policy::size_text(plan::kLeastMemory);
  for (const auto& [limit, value] :
       {std::pair{"wall_seconds", std::string_view("1")}, {"memory", memory}, {"nofile", "16"}}) {
    if (limit != name) continue;
    policy::Limits least;
    SBX_TRY(policy::set_limit(least, name, value));
    if (!policy::limit_is_above(least, most, name)) return {};
    return invalid(fmt::format("{} is too little for any run: at least {}",
                               policy::limit_text(most, name), value));
  }
  return {};
}

Ceilings effective_ceilings(Ceilings configured, const policy::RuntimeConfig& config,
                            const policy::HostBounds& host) {
  for (const policy::Bound& bound : policy::bounds_of(config, host)) {
    configured.lower(bound.limit, bound.most);
  }
  return configured;
}

}  // namespace sbx::daemon
