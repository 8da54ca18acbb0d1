// A terminal of a test's own, and a program whose controlling terminal it is.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "tests/support/process.h"

namespace sbx::test {

class PtyProcess {
 public:
  // Standard input, output and error are the terminal. `input` of the options is not used.
  explicit PtyProcess(const std::vector<std::string>& argv, const ProcessOptions& options = {});
  PtyProcess(const PtyProcess&) = delete;
  PtyProcess& operator=(const PtyProcess&) = delete;
  ~PtyProcess();

  // Reads what is shown until the program has ended. SIGKILLed after `patience`. Finished::out is
  // what the terminal showed, with "\n" as "\r\n".
  Finished finish(std::chrono::seconds patience = std::chrono::seconds(60));
  // What somebody has typed and nobody has read: the terminal's input queue, in bytes.
  [[nodiscard]] int typed() const;

 private:
  UniqueFd master_;
  UniqueFd slave_;  // so that the terminal outlives the program
  UniqueFd pidfd_;
  pid_t pid_ = -1;
};

}  // namespace sbx::test
