#include "runtime/cgroup/hierarchy.h"

#include <algorithm>

#include "runtime/base/sys.h"

namespace sbx::cgroup {
namespace {

constexpr std::size_t kMaxProcFile = 16U << 20;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t length = std::min(text.find(separator), text.size());
    if (length != 0) parts.push_back(text.substr(0, length));
    text.remove_prefix(std::min(text.size(), length + 1));
  }
  return parts;
}

// mountinfo writes space, tab, newline and backslash as \ooo.
std::string decode_octal(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      int value = 0;
      for (std::size_t digit = 1; digit <= 3; ++digit) value = value * 8 + (text[i + digit] - '0');
      decoded += static_cast<char>(value);
      i += 3;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// The super options of a v1 mount name its controllers among generic words ("rw,cpu,cpuacct").
std::vector<std::string> v1_controllers(std::string_view options) {
  std::vector<std::string> names;
  for (const std::string_view option : split(options, ',')) {
    if (option != "rw" && option != "ro" && option.find('=') == std::string_view::npos) {
      names.emplace_back(option);
    }
  }
  return names;
}

}  // namespace

Hierarchies parse_mountinfo(std::string_view text) {
  Hierarchies found;
  for (const std::string_view line : split(text, '\n')) {
    // "31 23 0:28 ROOT PATH OPTIONS [optional fields] - TYPE SOURCE SUPER_OPTIONS"
    const auto fields = split(line, ' ');
    const auto dash = std::find(fields.begin(), fields.end(), "-");
    if (dash - fields.begin() < 6 || fields.end() - dash < 4) continue;
    Mount mount{decode_octal(fields[4]), decode_octal(fields[3]), {}};
    if (dash[1] == "cgroup2") {
      found.v2.push_back(std::move(mount));
    } else if (dash[1] == "cgroup") {
      mount.controllers = v1_controllers(dash[3]);
      found.v1.push_back(std::move(mount));
    }
  }
  return found;
}

std::string parse_self_cgroup(std::string_view text) {
  for (const std::string_view line : split(text, '\n')) {
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return {};
}

std::string group_directory(const Mount& mount, const std::string& group) {
  const auto outside = [](const std::string& path) { return path.starts_with("/.."); };
  if (!group.starts_with("/") || outside(group) || outside(mount.root)) return {};
  const std::string root = mount.root == "/" ? "" : mount.root;
  if (!group.starts_with(root)) return {};
  const std::string rest = group.substr(root.size());
  if (!rest.empty() && rest[0] != '/') return {};
  return rest == "/" ? mount.path : mount.path + rest;
}

const Mount* find_v1(const Hierarchies& hierarchies, std::string_view controller) {
  for (const Mount& mount : hierarchies.v1) {
    const auto& names = mount.controllers;
    if (std::find(names.begin(), names.end(), controller) != names.end()) return &mount;
  }
  return nullptr;
}

Result<Hierarchies> discover() {
  SBX_ASSIGN(const std::string text, sys::read_file("/proc/self/mountinfo", kMaxProcFile));
  return parse_mountinfo(text);
}

Result<std::string> own_v2_group() {
  SBX_ASSIGN(const std::string text, sys::read_file("/proc/self/cgroup", kMaxProcFile));
  return parse_self_cgroup(text);
}

bool host_has_no_swap() {
  const auto text = sys::read_file("/proc/swaps", kMaxProcFile);
  return text && std::count(text->begin(), text->end(), '\n') <= 1;
}

}  // namespace sbx::cgroup
