// Order statistics of one competitor's samples.
#pragma once

#include <cstddef>
#include <vector>

namespace sbx::bench {

struct Summary {
  std::size_t n = 0;
  double min = 0;
  double median = 0;
  double p90 = 0;
};

// All zero when there are no samples.
[[nodiscard]] Summary summarize(std::vector<double> samples);

}  // namespace sbx::bench
