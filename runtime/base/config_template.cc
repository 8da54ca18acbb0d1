#include "runtime/base/config_template.h"

#include <fmt/core.h>

namespace sbx {

ConfigTemplate::ConfigTemplate(std::string_view heading) {
  append_comment(heading);
}

void ConfigTemplate::append_comment(std::string_view comment) {
  if (comment.empty()) return;
  text_ += "# ";
  for (const char c : comment) {
    text_ += c;
    if (c == '\n') text_ += "# ";
  }
  text_ += '\n';
}

// Returns the key's own name.
std::string_view ConfigTemplate::enter_table_of(std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) return path;
  const std::string_view table = path.substr(0, dot);
  if (table != table_) text_ += fmt::format("\n[{}]\n", table);
  table_ = table;
  return path.substr(dot + 1);
}

void ConfigTemplate::add(std::string_view path, std::string_view comment, std::string_view value) {
  const std::string_view name = enter_table_of(path);
  text_ += '\n';
  append_comment(comment);
  text_ += fmt::format("{} = {}\n", name, value);
}

void ConfigTemplate::add_unset(std::string_view path, std::string_view comment) {
  const std::string_view name = enter_table_of(path);
  text_ += '\n';
  append_comment(comment);
  text_ += fmt::format("# {} = (none)\n", name);
}

void ConfigTemplate::begin_table(std::string_view name, std::string_view comment) {
  text_ += '\n';
  append_comment(comment);
  text_ += fmt::format("[{}]\n", name);
  table_ = name;
}

}  // namespace sbx
