// The command line of sbx-bench-latency.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::bench {

inline constexpr unsigned kMinRounds = 50;  // fewer say nothing about a p90

struct Options {
  unsigned rounds = 60;
  std::string json;  // file to write, or empty
  bool check = false;
  std::vector<std::string> compare;
};

[[nodiscard]] Result<Options> parse_options(int argc, char** argv);

}  // namespace sbx::bench
