#include "agentd/sandbox/json_members.h"

#include <algorithm>

namespace agentd::sandbox {
namespace {

// Where the string that begins at `at` has its closing quote, or the end of the text.
std::size_t end_of_string(std::string_view json, std::size_t at) {
  for (++at; at < json.size(); ++at) {
    at = std::min(json.find('"', at), json.size());
    // It is a closing one unless an odd number of backslashes is before it.
    std::size_t slash = at;
    while (json[slash - 1] == '\\') --slash;
    if ((at - slash) % 2 == 0) break;
  }
  return std::min(at, json.size());
}

// Where the member that begins at `at` ends: at its comma, its object's brace, or the end of the
// text.
std::size_t end_of_member(std::string_view json, std::size_t at) {
  std::size_t depth = 0;
  for (; at < json.size(); ++at) {
    const char c = json[at];
    if (c == '"') {
      at = end_of_string(json, at);
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == '}')) {
      return at;
    } else if (c == ']' || c == '}') {
      if (depth == 0) break;
      --depth;
    }
  }
  return json.size();
}

}  // namespace

std::string json_members(std::string_view json, std::span<const std::string_view> names) {
  std::string members = "{";
  std::size_t end = json.starts_with('{') ? 0 : json.size();
  while (end < json.size() && json[end] != '}') {
    const std::size_t begin = json.find('"', end + 1);
    if (begin == std::string_view::npos) return std::string(json);
    const std::string_view name = json.substr(begin + 1, end_of_string(json, begin) - begin - 1);
    end = end_of_member(json, begin);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    if (members.size() > 1) members += ',';
    members += json.substr(begin, end - begin);
  }
  if (end + 1 != json.size()) return std::string(json);
  return members + '}';
}

}  // namespace agentd::sandbox
