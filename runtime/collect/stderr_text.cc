#include "runtime/collect/stderr_text.h"

#include <regex.h>

#include <algorithm>

#include "runtime/base/scope_exit.h"

namespace sbx::collect {
namespace {

constexpr std::size_t kSearchedBytes = 16 * 1024;  // where a traceback ends
constexpr int kMaxMatches = 64;

}  // namespace

std::string searched_text(const supervise::Captured& captured) {
  const std::string& last = captured.tail.empty() ? captured.head : captured.tail;
  std::string text = last.substr(last.size() - std::min(last.size(), kSearchedBytes));
  if (&last == &captured.tail && captured.dropped == 0 && text.size() < kSearchedBytes) {
    const std::size_t missing = std::min(captured.head.size(), kSearchedBytes - text.size());
    text.insert(0, captured.head, captured.head.size() - missing, missing);
  }
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

std::optional<std::string> last_match(const std::string& pattern, const std::string& text) {
  regex_t compiled;
  // A pattern that does not compile is caught by the test that loads every language file.
  if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NEWLINE) != 0) return std::nullopt;
  const ScopeExit free_it([&compiled] { ::regfree(&compiled); });
  std::optional<std::string> found;
  const char* from = text.c_str();
  for (int i = 0; i < kMaxMatches; ++i) {
    regmatch_t groups[2];
    if (::regexec(&compiled, from, 2, groups, from == text.c_str() ? 0 : REG_NOTBOL) != 0) break;
    if (groups[1].rm_so >= 0) found = std::string(from + groups[1].rm_so, from + groups[1].rm_eo);
    if (groups[0].rm_eo == 0) break;
    from += groups[0].rm_eo;
  }
  return found;
}

}  // namespace sbx::collect
