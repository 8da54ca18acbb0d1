// Soak: many runs of every kind, some with sbx-run killed in the middle, and what was unexpected.
// Shared by the short form (soak_test, in CI) and the long one (bench/soak).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace sbx::test {

struct SoakOptions {
  int runs = 1000;   // all of them, the killed among them
  int killed = 100;  // of those: sbx-run gets SIGKILL at a random moment
  std::size_t at_once = 4;
  std::uint32_t seed = 20240607;
  // Where files out go, one directory below it for each run that asks; removed again.
  std::string directory{};
};

struct SoakKind {
  std::string name{};
  int runs = 0;
  int unexpected = 0;
  double seconds = 0;  // summed; several run at once
};

struct SoakResult {
  std::vector<SoakKind> kinds;
  int finished = 0;
  int killed = 0;
  double seconds = 0;
  std::vector<std::string> complaints;  // the first few, with what was said
  [[nodiscard]] int unexpected() const;
};

// Starts sbx-run with these words behind it.
using StartRun = std::function<std::unique_ptr<Process>(const std::vector<std::string>& words)>;
using Progress = std::function<void(int done)>;

// Blocking. `progress` is called after each run, with how many are done.
[[nodiscard]] SoakResult soak(const StartRun& start, const SoakOptions& options,
                              const Progress& progress = {});

}  // namespace sbx::test
