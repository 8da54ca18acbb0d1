// ConfigTemplate: a configuration file that names every key with its default and what it is for, as
// --print-config prints it. Stage: base.
#pragma once

#include <string>
#include <string_view>

namespace sbx {

// Lines of a comment are separated by '\n'; an empty comment leaves none. Values are as TOML writes
// them.
class ConfigTemplate {
 public:
  // What stands above all keys.
  explicit ConfigTemplate(std::string_view heading);

  // A key by its path. One with a dot, "sessions.idle_seconds", belongs to the table before the
  // dot, which begins with the first of its keys; keys of no table come before all tables.
  void add(std::string_view path, std::string_view comment, std::string_view value);
  // Begins a table that has a comment of its own; its keys are added by their paths.
  void begin_table(std::string_view name, std::string_view comment);
  // A key that has no default: a comment too.
  void add_unset(std::string_view path, std::string_view comment);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string_view enter_table_of(std::string_view path);
  void append_comment(std::string_view comment);

  std::string text_;
  std::string table_;
};

}  // namespace sbx
