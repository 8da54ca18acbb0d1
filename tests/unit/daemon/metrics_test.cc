#include "runtime/daemon/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace sbx::daemon {
namespace {

using ::testing::HasSubstr;

collect::Outcome outcome(collect::Status status, const std::string& language) {
  collect::Outcome made;
  made.status = status;
  made.language = language;
  made.timings = {.setup = 0.002, .run = 0.3, .collect = 0.0001};
  return made;
}

TEST(Metrics, CountRunsByStatusAndLanguage) {
  Metrics metrics;
  metrics.count_run(outcome(collect::Status::kOk, "python"), 0);
  metrics.count_run(outcome(collect::Status::kOk, "python"), 0);
  metrics.count_run(outcome(collect::Status::kTimeout, ""), 0);
  const std::string text = metrics.text({});
  EXPECT_THAT(text, HasSubstr("sbxd_runs_total{status=\"ok\",language=\"python\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("sbxd_runs_total{status=\"timeout\",language=\"none\"} 1\n"));
}

TEST(Metrics, BucketsAreCumulativeAndEndWithTheCount) {
  Metrics metrics;
  metrics.count_run(outcome(collect::Status::kOk, "python"), 0);
  metrics.count_run(outcome(collect::Status::kOk, "python"), 100);
  const std::string text = metrics.text({});
  EXPECT_THAT(text, HasSubstr("stage=\"queue\",le=\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stage=\"queue\",le=\"30\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("stage=\"queue\",le=\"+Inf\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("sbxd_stage_seconds_sum{stage=\"queue\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("sbxd_stage_seconds_count{stage=\"queue\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("stage=\"setup\",le=\"0.001\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("stage=\"setup\",le=\"0.0025\"} 2\n"));
}

TEST(Metrics, SystemCallsAreABoundedSetOfLabels) {
  Metrics metrics;
  for (int i = 0; i < 1000; ++i) {
    collect::Outcome run = outcome(collect::Status::kOk, "python");
    run.denials = {{"syscall_" + std::to_string(i), "deny", 2}};
    metrics.count_run(run, 0);
  }
  const std::string text = metrics.text({});
  std::size_t labels = 0;
  for (std::size_t at = 0; (at = text.find("sbxd_denials_total{", at)) != std::string::npos; ++at) {
    ++labels;
  }
  EXPECT_EQ(labels, Metrics::kMaxSyscalls + 1);
  EXPECT_THAT(text, HasSubstr("sbxd_denials_total{syscall=\"syscall_0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("sbxd_denials_total{syscall=\"other\"} 1872\n"));
}

// Each line is a comment or "name{labels} number", each family has one HELP and one TYPE before it.
TEST(Metrics, TheTextIsPrometheusFormat) {
  Metrics metrics;
  metrics.count_run(outcome(collect::Status::kOk, "python"), 0);
  metrics.count_refused("max_running");
  metrics.count_request("/v1/run", 200);
  metrics.count_request("", 404);
  metrics.count_reaped(2, 3);
  const std::string text =
      metrics.text({.running = 1, .memory_budget = 1U << 30, .peer_is_full = 4, .all_is_full = 5});
  EXPECT_EQ(text.back(), '\n');
  std::set<std::string> families;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# TYPE ")) {
      EXPECT_TRUE(families.insert(line.substr(7, line.rfind(' ') - 7)).second) << line;
      continue;
    }
    if (line.starts_with("# HELP ")) continue;
    const std::string name = line.substr(0, line.find_first_of("{ "));
    const bool known =
        families.count(name) != 0 || families.count(name.substr(0, name.rfind('_'))) != 0;
    EXPECT_TRUE(known) << line;
    char* end = nullptr;
    (void)std::strtod(line.c_str() + line.rfind(' ') + 1, &end);
    EXPECT_EQ(*end, '\0') << line;
  }
  EXPECT_THAT(text, HasSubstr("sbxd_memory_budget_bytes 1073741824\n"));
  EXPECT_THAT(text, HasSubstr("sbxd_requests_total{route=\"none\",code=\"404\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("sbxd_connections_refused_total{key=\"max_connections\"} 5\n"));
  EXPECT_THAT(text,
              HasSubstr("sbxd_connections_refused_total{key=\"max_connections_per_peer\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("sbxd_reaped_total{kind=\"record\"} 3\n"));
}

}  // namespace
}  // namespace sbx::daemon
