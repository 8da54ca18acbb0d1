#include "agentd/sandbox/info.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace agentd::sandbox {
namespace {

using Json = nlohmann::ordered_json;

// The contract's required layers.
constexpr std::string_view kRequired[] = {
    "user_namespace", "pid_namespace", "mount_namespace",  "net_namespace", "ipc_namespace",
    "uts_namespace",  "rootfs",        "cgroup_namespace", "proc",          "cgroup",
    "seccomp",        "capabilities",  "no_new_privs",     "rlimits"};

LanguageInfo language_of(const Json& json) {
  LanguageInfo language{.name = json.at("name").get<std::string>(),
                        .aliases = json.at("aliases").get<std::vector<std::string>>(),
                        .file = json.at("file").get<std::string>()};
  for (const auto& [name, version] : json.at("packages").items()) {
    language.packages.emplace_back(name, version.is_string() ? version.get<std::string>() : "");
  }
  language.syntax_error_pattern = json.value("syntax_error_pattern", "");
  return language;
}

void read_limits(const Json& limits, SandboxInfo& info) {
  info.wall_seconds = limits.at("wall_seconds").get<double>();
  info.cpus = limits.at("cpus").get<double>();
  info.memory = limits.at("memory").get<std::uint64_t>();
  info.pids = limits.at("pids").get<std::uint64_t>();
  info.input = limits.at("input").get<std::uint64_t>();
  info.output = limits.at("output").get<std::uint64_t>();
  info.work = limits.at("work").get<std::uint64_t>();
  info.tmp = limits.at("tmp").get<std::uint64_t>();
  info.network = limits.at("network").get<std::string>() != "none";
  info.stdout_bytes = limits.at("stdout_bytes").get<std::uint64_t>();
}

std::vector<std::string> missing_layers(const Json& layers) {
  std::vector<std::string> missing;
  for (const std::string_view name : kRequired) {
    const bool held = std::any_of(layers.begin(), layers.end(), [name](const Json& layer) {
      return layer.at("name") == name && layer.at("state") == "held";
    });
    if (!held) missing.emplace_back(name);
  }
  return missing;
}

}  // namespace

const LanguageInfo* SandboxInfo::language(std::string_view name) const {
  const auto found = std::find_if(languages.begin(), languages.end(), [name](const auto& each) {
    return each.name == name ||
           std::find(each.aliases.begin(), each.aliases.end(), name) != each.aliases.end();
  });
  return found == languages.end() ? nullptr : &*found;
}

sbx::Result<SandboxInfo> parse_info(std::string_view json) {
  try {
    const Json parsed = Json::parse(json);
    SandboxInfo info{.version = parsed.at("version").get<std::string>()};
    for (const Json& language : parsed.at("languages")) {
      info.languages.push_back(language_of(language));
    }
    read_limits(parsed.at("limits"), info);
    // What has no ceiling is not listed.
    info.stdout_most =
        parsed.at("ceilings").value("stdout_bytes", std::numeric_limits<std::uint64_t>::max());
    info.missing_layers = missing_layers(parsed.at("layers"));
    return info;
  } catch (const Json::exception& error) {
    return sbx::Error{.code = sbx::ErrorCode::kInternal,
                      .stage = "sandbox",
                      .operation = "GET /v1/info",
                      .sys_errno = 0,
                      .detail = error.what(),
                      .fix = "use an sbxd of the same version"};
  }
}

}  // namespace agentd::sandbox
