// ResultBody: a run's result as JSON, with its files read from their descriptors while it is sent.
// Stage: daemon, the loop's thread.
//
// Collected files are held as descriptors (of the run's tmpfs), never in our memory: a daemon with
// many runs stays small however much they give out.
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
};

class ResultBody {
 public:
  // `outcome` is rendered at once.
  ResultBody(const collect::Outcome& outcome, KeptFiles files);

  // The next piece, at most 64 KiB of a file at a time; nullopt at the end. An error: a file cannot
  // be read any more, and the answer must be cut.
  [[nodiscard]] Result<std::optional<std::string>> next();

 private:
  struct Part {
    std::string text;  // before the file
    UniqueFd file;     // none for the last part
    std::uint64_t size = 0;
  };
  [[nodiscard]] Result<std::string> read_file(Part& part);

  std::vector<Part> parts_;
  std::size_t at_ = 0;
  std::uint64_t offset_ = 0;
};

}  // namespace sbx::daemon
