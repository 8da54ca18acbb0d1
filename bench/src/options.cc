#include "bench/src/options.h"

#include <charconv>
#include <string_view>

namespace sbx::bench {
namespace {

constexpr const char* kUsage =
    "usage: sbx-bench-latency [-n ROUNDS] [--json FILE] [--check] [--compare SBX-RUN]...";

}  // namespace

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view option = argv[i];
    if (option == "--check") {
      options.check = true;
      continue;
    }
    if (i + 1 == argc)
      return invalid("'" + std::string(option) + "' is unknown or lacks a value", kUsage);
    const std::string_view value = argv[++i];
    if (option == "--json") {
      options.json = value;
    } else if (option == "--compare") {
      options.compare.emplace_back(value);
    } else if (option == "-n") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), options.rounds);
      if (error != std::errc{} || end != value.data() + value.size() || options.rounds == 0) {
        return invalid("-n wants a number of rounds", kUsage);
      }
    } else {
      return invalid("unknown option '" + std::string(option) + "'", kUsage);
    }
  }
  return options;
}

}  // namespace sbx::bench
