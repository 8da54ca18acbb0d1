// Recordings: replies of models, kept in files (bench/README.md has the format). Values and a
// parser; blocking where it reads files.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agentd/providers/provider.h"
#include "runtime/base/result.h"

namespace agentd::providers {

inline constexpr std::size_t kMaxRecordingFileBytes = 64U << 20;

struct Recording {
  RecordingKey key{};
  Completion completion{};
};

// One line of a file. kInvalid says what is wrong with it.
[[nodiscard]] sbx::Result<Recording> parse_recording(std::string_view line);
// The same the other way, without the line end.
[[nodiscard]] std::string to_line(const Recording& recording);

class Recordings {
 public:
  // Every *.jsonl of the directories, in the order of their names. kInvalid "file:line: …" for a
  // line that is none, or the same key twice.
  [[nodiscard]] static sbx::Result<Recordings> load(std::span<const std::string> directories);
  // The lines of one file; `origin` is its name for errors.
  [[nodiscard]] sbx::Result<void> add_text(std::string_view text, const std::string& origin);
  [[nodiscard]] sbx::Result<void> add(Recording recording);

  // By the request's hash; by the label only when nothing has that hash. Null: none.
  [[nodiscard]] const Recording* find(const RecordingKey& key) const;
  [[nodiscard]] std::size_t size() const { return by_hash_.size(); }

 private:
  using Key = std::pair<std::string, int>;
  std::map<Key, Recording> by_hash_;
  std::map<Key, Key> by_label_;
};

struct RequestFile {
  std::string name;
  std::string sha256;
};
// What identifies a request in recordings. `language` is "agent" for the tool-calling mode.
[[nodiscard]] std::string request_sha256(std::string_view language, std::string_view text,
                                         std::vector<RequestFile> files);

}  // namespace agentd::providers
