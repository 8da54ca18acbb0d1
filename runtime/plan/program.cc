// The process of a plan: its arguments, its environment, where its program is looked for.
#include <algorithm>

#include "runtime/base/escape.h"
#include "runtime/plan/layout.h"

namespace sbx::plan {
namespace {

constexpr const char* kPath = "/usr/local/bin:/usr/bin:/bin";
// What the caller can size: arguments and environment together, as execve counts them.
constexpr std::size_t kMaxStrings = 1024;
constexpr std::size_t kMaxStringBytes = 512 * 1024;
constexpr std::size_t kMaxOneString = 128 * 1024 - 1;  // MAX_ARG_STRLEN

using Variables = std::vector<std::pair<std::string, std::string>>;

void set_variable(Variables& variables, const std::string& name, const std::string& value) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const auto& entry) { return entry.first == name; });
  if (found != variables.end()) {
    found->second = value;
  } else {
    variables.emplace_back(name, value);
  }
}

// Thread pools sized by the machine's CPUs would trip over the pids limit, and fight for half a
// CPU.
Variables fixed_environment(const Plan& plan) {
  const policy::Limits& limits = plan.policy.limits;
  const std::string threads =
      std::to_string(std::max(1U, std::min(plan.visible_cpus, limits.pids / 8)));
  const std::string node_heap =
      std::to_string(std::max<std::uint64_t>(16, limits.memory / policy::kMiB * 3 / 4));
  return {
      {"PATH", kPath},
      {"HOME", "/work"},
      {"TMPDIR", "/tmp"},
      {"LANG", "C.UTF-8"},
      {"XDG_CACHE_HOME", "/tmp/.cache"},
      {"PYTHONDONTWRITEBYTECODE", "1"},
      {"PYTHONNOUSERSITE", "1"},
      {"MPLBACKEND", "Agg"},
      {"MPLCONFIGDIR", plan.image.matplotlib_directory},
      {"OMP_NUM_THREADS", threads},
      {"OPENBLAS_NUM_THREADS", threads},
      {"MKL_NUM_THREADS", threads},
      {"NUMEXPR_NUM_THREADS", threads},
      {"NODE_OPTIONS", "--max-old-space-size=" + node_heap},
  };
}

Result<void> check_strings(const std::vector<std::string>& strings, const char* part,
                           const char* what) {
  if (strings.size() > kMaxStrings) {
    return refused(part, std::string(what) + ": " + std::to_string(strings.size()) +
                             " strings, at most " + std::to_string(kMaxStrings) + " are allowed");
  }
  std::size_t total = 0;
  for (const std::string& string : strings) {
    if (string.find('\0') != std::string::npos)
      return refused(part, std::string(what) + " with a NUL");
    if (string.size() > kMaxOneString) {
      return refused(part, std::string(what) + ": one string over 128K");
    }
    total += string.size() + 1;
  }
  if (total > kMaxStringBytes) return refused(part, std::string(what) + ": over 512K together");
  return {};
}

}  // namespace

Error refused(const char* part, std::string detail, std::string fix) {
  Error error = invalid(std::move(detail), std::move(fix));
  error.operation = part;
  return error;
}

Result<void> plan_environment(Plan& plan, const policy::Language* language,
                              const Request& request) {
  Variables variables = fixed_environment(plan);
  if (language != nullptr) {
    for (const auto& [name, value] : language->env) set_variable(variables, name, value);
  }
  for (const auto& [name, value] : request.env) {
    if (name.empty() || name.find('=') != std::string::npos || has_control_character(name)) {
      return refused("env", "env '" + name + "' is not a variable's name", "use NAME=VALUE");
    }
    set_variable(variables, name, value);
  }
  for (const auto& [name, value] : variables) plan.env.push_back(name + "=" + value);
  return check_strings(plan.env, "env", "env");
}

Result<void> plan_program(Plan& plan, const policy::Language* language, const Request& request) {
  plan.argv = language != nullptr ? language->argv : request.argv;
  plan.argv.insert(plan.argv.end(), request.args.begin(), request.args.end());
  if (plan.argv.empty() || plan.argv.front().empty()) return invalid("no program to run");
  SBX_TRY(check_strings(plan.argv, language != nullptr ? "args" : "argv", "arguments"));
  const std::string& program = plan.argv.front();
  if (program.find('/') != std::string::npos) {
    plan.exec_paths = {program};
    return {};
  }
  std::string_view path = kPath;
  while (!path.empty()) {
    const std::size_t colon = path.find(':');
    plan.exec_paths.push_back(std::string(path.substr(0, colon)) + "/" + program);
    path.remove_prefix(colon == std::string_view::npos ? path.size() : colon + 1);
  }
  return {};
}

}  // namespace sbx::plan
