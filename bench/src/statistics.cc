#include "bench/src/statistics.h"

#include <algorithm>

namespace sbx::bench {

Summary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  const double median = (samples[(n - 1) / 2] + samples[n / 2]) / 2;
  return {n, samples.front(), median, samples[(n * 9) / 10 < n ? (n * 9) / 10 : n - 1]};
}

}  // namespace sbx::bench
