// Times one process, or one request to a resident one, from its start to its reaping.
//
// The bencher stays small and starts processes with posix_spawn, which shares memory until the
// exec: what is measured is the competitor, not the copy of an address space.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::bench {

// Milliseconds. Blocks until the process has ended. Another exit code than 0 is an error that
// quotes its stderr.
[[nodiscard]] Result<double> time_process(const std::vector<std::string>& argv,
                                          const std::string& stdin_file);

// A process that does one run for each byte it reads, and answers with a byte: 0 is success. Killed
// and reaped by the destructor.
class Resident {
 public:
  [[nodiscard]] static Result<Resident> start(const std::vector<std::string>& argv);
  Resident(Resident&& other) noexcept;
  Resident& operator=(Resident&&) = delete;
  ~Resident();

  [[nodiscard]] Result<double> time_request();  // milliseconds; blocks

 private:
  Resident(pid_t pid, UniqueFd requests, UniqueFd answers);

  pid_t pid_;
  UniqueFd requests_;
  UniqueFd answers_;
};

}  // namespace sbx::bench
