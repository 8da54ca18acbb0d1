#include "agentd/envelope/string_tracker.h"

namespace agentd::envelope {

bool StringTracker::inside() const {
  return !levels_.empty() && levels_.back().context != Context::kSubstitution;
}

void StringTracker::line(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    i = inside() ? step_inside(text, i) : step_code(text, i);
  }
}

// Behind the string that starts at `i` and, as it has one quote, ends on this line.
std::size_t StringTracker::after_quoted(std::string_view text, std::size_t i) {
  const char quote = text[i];
  for (++i; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      return i + 1;
    }
  }
  return text.size();
}

std::size_t StringTracker::step_code(std::string_view text, std::size_t i) {
  return language_ == Language::kPython ? step_python(text, i) : step_javascript(text, i);
}

std::size_t StringTracker::step_python(std::string_view text, std::size_t i) {
  if (text[i] == '#') return text.size();
  if (text[i] != '\'' && text[i] != '"') return i + 1;
  const std::string_view rest = text.substr(i);
  if (rest.starts_with("'''")) {
    levels_.push_back({Context::kTripleSingle});
    return i + 3;
  }
  if (rest.starts_with("\"\"\"")) {
    levels_.push_back({Context::kTripleDouble});
    return i + 3;
  }
  return after_quoted(text, i);
}

std::size_t StringTracker::step_javascript(std::string_view text, std::size_t i) {
  const std::string_view rest = text.substr(i);
  if (rest.starts_with("//")) return text.size();
  if (rest.starts_with("/*")) {
    levels_.push_back({Context::kComment});
    return i + 2;
  }
  if (text[i] == '\'' || text[i] == '"') return after_quoted(text, i);
  if (text[i] == '`') {
    levels_.push_back({Context::kTemplate});
  } else if (!levels_.empty() && text[i] == '{') {
    ++levels_.back().braces;
  } else if (!levels_.empty() && text[i] == '}') {
    if (levels_.back().braces == 0) {
      levels_.pop_back();  // back in the template
    } else {
      --levels_.back().braces;
    }
  }
  return i + 1;
}

std::size_t StringTracker::step_inside(std::string_view text, std::size_t i) {
  const std::string_view rest = text.substr(i);
  const Context context = levels_.back().context;
  if (context == Context::kComment) {
    if (!rest.starts_with("*/")) return i + 1;
    levels_.pop_back();
    return i + 2;
  }
  if (text[i] == '\\') return i + 2;
  if (context == Context::kTemplate) {
    if (rest.starts_with("${")) {
      levels_.push_back({Context::kSubstitution});
      return i + 2;
    }
    if (text[i] == '`') levels_.pop_back();
    return i + 1;
  }
  if (!rest.starts_with(context == Context::kTripleSingle ? "'''" : "\"\"\"")) return i + 1;
  levels_.pop_back();
  return i + 3;
}

}  // namespace agentd::envelope
