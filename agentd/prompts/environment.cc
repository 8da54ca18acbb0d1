#include "agentd/prompts/environment.h"

#include <fmt/core.h>

#include <vector>

namespace agentd::prompts {
namespace {

using sandbox::LanguageInfo;
using sandbox::SandboxInfo;

std::string size_text(std::uint64_t bytes) {
  constexpr std::uint64_t kKiB = 1U << 10;
  constexpr std::uint64_t kMiB = 1U << 20;
  return bytes < kMiB ? fmt::format("{} KiB", bytes / kKiB) : fmt::format("{} MiB", bytes / kMiB);
}

// "numpy 1.24.2, pandas 1.5.3 and 12 more", within `limit` bytes.
std::string packages_text(const LanguageInfo& language, std::size_t limit) {
  std::string text;
  text.reserve(limit);
  std::size_t named = 0;
  for (const auto& [name, version] : language.packages) {
    const std::size_t size = name.size() + (version.empty() ? 0 : version.size() + 1);
    if (text.size() + size + 2 > limit) break;
    if (!text.empty()) text += ", ";
    text += name;
    if (!version.empty()) (text += ' ') += version;
    ++named;
  }
  if (named < language.packages.size()) {
    text += fmt::format(" and {} more", language.packages.size() - named);
  }
  return text.empty() ? "nothing beyond its standard library" : text;
}

std::string shown_name(const std::string& name) {
  if (name == "python") return "Python 3";
  if (name == "javascript") return "Node.js";
  return name;
}

// That it has neither arguments nor standard input is agentd's own doing (sandbox/run_wire.cc).
std::string language_text(const LanguageInfo& language, std::size_t limit) {
  return fmt::format(
      "- {} with {}. The program is run as {}, without arguments or standard input.\n",
      shown_name(language.name), packages_text(language, limit), language.file);
}

std::string places_text(const SandboxInfo& info) {
  return fmt::format(
      "- Places: /input (attached files, {}), /output ({}, what is left there is given to the "
      "person), /work ({}), /tmp ({}).\n",
      size_text(info.input), size_text(info.output), size_text(info.work), size_text(info.tmp));
}

std::string limits_text(const SandboxInfo& info) {
  return fmt::format("- Limits: {:g} seconds, {} of memory, {:g} CPU, {} processes and threads.\n",
                     info.wall_seconds, size_text(info.memory), info.cpus, info.pids);
}

std::string network_text(const SandboxInfo& info) {
  if (info.network) return "- Network: that of the host.";
  return "- No network: no download, no installation, no API, no database server.";
}

}  // namespace

std::string describe_environment(const SandboxInfo& info, std::string_view language) {
  const LanguageInfo* found = info.language(language);
  std::string text = found == nullptr ? "" : language_text(*found, kMaxEnvironmentBytes / 2);
  return text + places_text(info) + limits_text(info) + network_text(info);
}

std::string describe_environment(const SandboxInfo& info) {
  std::string text;
  for (const LanguageInfo& language : info.languages) {
    text += language_text(language, kMaxEnvironmentBytes / 2 / info.languages.size());
  }
  return text + places_text(info) + limits_text(info) + network_text(info);
}

}  // namespace agentd::prompts
