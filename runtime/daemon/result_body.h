// ResultBody: a run's result as JSON, made piece by piece while it is sent. Stage: daemon, the
// loop's thread.
//
// Collected files are held as descriptors (of the run's tmpfs), never in our memory; stdout and
// stderr as the bytes that were kept, and not as JSON, in which each may become six. A daemon with
// many runs stays small however much they give out, and however slowly that is read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/collect/collection.h"
#include "runtime/collect/outcome.h"

namespace sbx::daemon {

// The files of one run. Its sink keeps a descriptor of each, and leaves a mark as content.
class KeptFiles {
 public:
  KeptFiles();
  KeptFiles(KeptFiles&&) noexcept = default;
  KeptFiles& operator=(KeptFiles&&) = delete;
  // For RunHooks; this object must stay where it is until the run is over.
  [[nodiscard]] collect::FileSink sink();
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  [[nodiscard]] std::size_t count() const { return files_.size(); }
  // Why a file could not be kept, where that was for want of our own descriptors or memory: then
  // the result is not the run's.
  [[nodiscard]] const std::optional<Error>& shortage() const { return shortage_; }

 private:
  friend class ResultBody;
  struct Kept {
    std::string mark;  // base64, as it will stand in the JSON
    UniqueFd fd;
    std::uint64_t size;
  };
  // What the marks of all files begin with; empty without a file.
  [[nodiscard]] std::string_view common_mark() const;

  std::string secret_;  // SECURITY: random, so that no program can write a mark itself
  std::vector<Kept> files_;
  std::uint64_t bytes_ = 0;
  std::optional<Error> shortage_;
};

// stdout or stderr within a result: the inside of the JSON string and, where the bytes are not
// UTF-8, the member `<name>_base64` behind it, up to the inside of its own string.
class OutputText {
 public:
  // `cut`: where the tail begins, which is decoded apart from the head.
  OutputText(std::string_view name, std::string bytes, std::size_t cut)
      : name_(name), bytes_(std::move(bytes)), cut_(cut) {}

  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  // The next piece; empty at the end.
  [[nodiscard]] std::string next();

 private:
  [[nodiscard]] std::string next_text();

  std::string_view name_;  // a literal
  std::string bytes_;
  std::size_t cut_;
  std::size_t offset_ = 0;
  bool is_clean_ = true;    // UTF-8, as far as it was read
  bool is_base64_ = false;  // read once, and now again
};

class ResultBody {
 public:
  // All but files and output is rendered at once.
  ResultBody(collect::Outcome outcome, KeptFiles files);

  // What is held in memory.
  [[nodiscard]] std::uint64_t bytes() const;
  // The next piece, at most 64 KiB of a file and what 8 KiB of output become; nullopt at the end.
  // An error: a file cannot be read any more, and the answer must be cut.
  [[nodiscard]] Result<std::optional<std::string>> next();

 private:
  // JSON as it is, and then one of the others, or neither at the end.
  struct Part {
    std::string text;
    std::optional<OutputText> output{};
    UniqueFd file{};
    std::uint64_t size = 0;  // of the file
  };
  // Cuts `json` at the mark that stands for an output. What is behind it.
  [[nodiscard]] std::string_view put_output(std::string_view json, std::string_view mark,
                                            OutputText output);
  [[nodiscard]] Result<std::string> read_file(Part& part);

  std::vector<Part> parts_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;  // in the file
};

}  // namespace sbx::daemon
