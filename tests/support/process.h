// Programs run by tests, with everything they say captured.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace sbx::test {

struct ProcessOptions {
  std::optional<std::string> input;      // standard input; none: /dev/null
  std::vector<std::string> environment;  // "K=V", added to or replacing ours
  std::string directory;                 // "" for ours
  std::optional<uid_t> uid;              // run as this user and group, without other groups
};

struct Finished {
  int exit_code = -1;  // -1 when ended by a signal
  int signal = 0;
  std::string out;
  std::string err;
  double seconds = 0;
  long max_rss_kib = 0;  // of it, or of the largest child that it waited for
};

// In a forked child whose descriptors 0 to 2 stand: becomes the program as the options say (but for
// `input`), and dies with its parent.
[[noreturn]] void become_program(const std::vector<std::string>& argv,
                                 const ProcessOptions& options);

// A running program. SIGKILLed and reaped by the destructor.
class Process {
 public:
  explicit Process(const std::vector<std::string>& argv, const ProcessOptions& options = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  // Reads until stdout holds `text` or ends; false in the latter case, or after `patience`.
  bool wait_for_output(const std::string& text, std::chrono::seconds patience);
  // Reads both streams to their ends and reaps. SIGKILLed when it takes longer than `patience`.
  Finished finish(std::chrono::seconds patience = std::chrono::seconds(60));
  // Closes our end of its stdout, as a reader that leaves does.
  void close_output();

 private:
  bool read_some(std::chrono::milliseconds patience);

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd out_;
  UniqueFd err_;
  std::chrono::steady_clock::time_point started_;
  Finished finished_;
};

Finished run_process(const std::vector<std::string>& argv, const ProcessOptions& options = {});

// A directory below /tmp that everyone may enter, removed with what is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  [[nodiscard]] const std::string& path() const { return path_; }
  // Makes the file and returns its path.
  std::string write(const std::string& name, std::string_view content) const;

 private:
  std::string path_;
};

[[nodiscard]] std::string read_text(const std::string& path);

}  // namespace sbx::test
