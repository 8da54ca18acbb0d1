#include "runtime/policy/limits.h"

#include <gtest/gtest.h>

#include <optional>
#include <set>

#include "tests/unit/policy/policy_files.h"

namespace sbx::policy {
namespace {

using std::chrono::milliseconds;
using test::error_of;

TEST(Limits, DefaultsAreTheContracts) {
  const Limits limits;
  EXPECT_EQ(limit_text(limits, "wall_seconds"), "30");
  EXPECT_EQ(limit_text(limits, "cpu_seconds"), "none");
  EXPECT_EQ(limit_text(limits, "memory"), "256M");
  EXPECT_EQ(limit_text(limits, "cpus"), "0.5");
  EXPECT_EQ(limit_text(limits, "pids"), "64");
  EXPECT_EQ(limit_text(limits, "tmp"), "64M");
  EXPECT_EQ(limit_text(limits, "tmp_inodes"), "16384");
  EXPECT_EQ(limit_text(limits, "shm"), "32M");
  EXPECT_EQ(limit_text(limits, "shm_inodes"), "1024");
  EXPECT_EQ(limit_text(limits, "stdout_bytes"), "64K");
  EXPECT_EQ(limit_text(limits, "files_bytes"), "32M");
  EXPECT_EQ(limit_text(limits, "output_kills"), "false");
  EXPECT_EQ(limit_text(limits, "network"), "none");
}

TEST(Limits, EveryNameOfTheContractIsThereOnce) {
  const std::set<std::string_view> contract = {
      "wall_seconds",  "cpu_seconds",  "memory",      "cpus",         "pids",
      "tmp",           "tmp_inodes",   "input",       "input_inodes", "output",
      "output_inodes", "work",         "work_inodes", "shm",          "shm_inodes",
      "stdout_bytes",  "stderr_bytes", "files",       "file_bytes",   "files_bytes",
      "file_depth",    "nofile",       "fsize",       "output_kills", "network"};
  std::set<std::string_view> names;
  for (const LimitField& field : limit_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
  }
  EXPECT_EQ(names, contract);
}

TEST(Limits, WhatIsPrintedCanBeTypedAgain) {
  Limits odd;
  odd.wall_seconds = milliseconds{1'234};
  odd.cpu_seconds = milliseconds{500};
  odd.memory = 256 * kMiB + 1;
  odd.cpus_milli = 1'250;
  odd.stdout_bytes = 3 * kKiB;
  odd.files = 0;
  odd.output_kills = true;
  odd.network = NetworkMode::kHost;
  for (const Limits& limits : {Limits{}, odd}) {
    Limits copy;
    copy.cpu_seconds = milliseconds{1};
    for (const LimitField& field : limit_fields()) {
      const auto set = set_limit(copy, field.name, limit_text(limits, field.name));
      EXPECT_TRUE(set) << error_of(set);
    }
    EXPECT_EQ(copy, limits);
  }
}

TEST(Limits, SizesTakeKMGInEitherCase) {
  EXPECT_EQ(*parse_size("0"), 0U);
  EXPECT_EQ(*parse_size("4096"), 4096U);
  EXPECT_EQ(*parse_size("1k"), 1024U);
  EXPECT_EQ(*parse_size("256M"), 256 * kMiB);
  EXPECT_EQ(*parse_size("1g"), 1024 * kMiB);
  EXPECT_EQ(*parse_size("18446744073709551615"), 18446744073709551615U);
}

TEST(Limits, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "M", "-1", "+1", " 1", "1 ", "0x10", "1e6", "1.5M", "1MM", "1MB",
                           "1T", "256 M", "18446744073709551616", "99999999999999G", "nan"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(Limits, SecondsAreDecimalAndRoundedToMilliseconds) {
  const auto seconds = [](const char* text) -> std::optional<milliseconds> {
    Limits limits;
    if (!set_limit(limits, "wall_seconds", text)) return std::nullopt;
    return limits.wall_seconds;
  };
  EXPECT_EQ(seconds("30"), milliseconds{30'000});
  EXPECT_EQ(seconds("0.5"), milliseconds{500});
  EXPECT_EQ(seconds("0.3333333333"), milliseconds{333});
  EXPECT_EQ(seconds("1.9996"), milliseconds{2'000});
  for (const char* text : {"", ".", ".5", "5.", "-1", "1e3", "nan", "inf", "1s", "1.2.3", "0x1",
                           "99999999999999999999", "18446744073709551"}) {
    EXPECT_FALSE(seconds(text)) << text;
  }
}

TEST(Limits, AnErrorNamesTheLimitTheValueAndWhatIsAllowed) {
  Limits limits;
  EXPECT_EQ(error_of(set_limit(limits, "pids", "0")), "pids: 0 is out of range: 1 to 4194304");
  EXPECT_EQ(error_of(set_limit(limits, "memory", "12X")),
            "memory: '12X' is not a size: bytes, or a number with K, M or G");
  EXPECT_EQ(error_of(set_limit(limits, "memory", "0")), "memory: 0 is out of range: 1M to 16384G");
  EXPECT_EQ(error_of(set_limit(limits, "cpus", "-1")), "cpus: -1 is out of range: 0.01 to 1024");
  for (const char* text : {"1e-5", "1e-05", "1e300", "1e+300", "1e999", "-1", "-0.0", "-1.5"}) {
    EXPECT_EQ(error_of(set_limit(limits, "wall_seconds", text)),
              std::string("wall_seconds: ") + text + " is out of range: 0.01 to 604800");
  }
  EXPECT_EQ(error_of(set_limit(limits, "pids", "-1")), "pids: -1 is out of range: 1 to 4194304");
  EXPECT_EQ(error_of(set_limit(limits, "pids", "99999999999999999999999")),
            "pids: 99999999999999999999999 is out of range: 1 to 4194304");
  EXPECT_EQ(error_of(set_limit(limits, "memory", "-1")),
            "memory: -1 is out of range: 1M to 16384G");
  EXPECT_EQ(error_of(set_limit(limits, "wall_seconds", "1e1")),
            "wall_seconds: '1e1' is not a number of seconds")
      << "it would be in range";
  EXPECT_EQ(error_of(set_limit(limits, "pids", "1e9")), "pids: '1e9' is not a whole number");
  EXPECT_EQ(error_of(set_limit(limits, "cpus", "0.001")),
            "cpus: 0.001 is out of range: 0.01 to 1024");
  EXPECT_EQ(error_of(set_limit(limits, "wall_seconds", "none")),
            "wall_seconds: 'none' is not a number of seconds");
  EXPECT_EQ(error_of(set_limit(limits, "cpu_seconds", "soon")),
            "cpu_seconds: 'soon' is not a number of seconds, or none");
  EXPECT_EQ(error_of(set_limit(limits, "pids", "64K")), "pids: '64K' is not a whole number");
  EXPECT_EQ(error_of(set_limit(limits, "output_kills", "yes")),
            "output_kills: 'yes' is not true or false");
  EXPECT_EQ(error_of(set_limit(limits, "network", "proxy")),
            "network: 'proxy' is not none or host");
  EXPECT_EQ(error_of(set_limit(limits, "pidz", "1")), "'pidz' is not a limit");
  EXPECT_EQ(set_limit(limits, "pids", "x").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(limits, Limits{}) << "an error changes nothing";
}

// A tmpfs of size or inode count 0 has no limit at all.
TEST(Limits, ZeroIsRefusedWhereTheKernelTakesItForUnlimited) {
  Limits limits;
  for (const char* name : {"tmp", "input", "output", "work", "shm", "tmp_inodes", "input_inodes",
                           "output_inodes", "work_inodes", "shm_inodes", "nofile", "fsize",
                           "wall_seconds", "cpu_seconds", "cpus", "stdout_bytes"}) {
    EXPECT_FALSE(set_limit(limits, name, "0")) << name;
  }
  for (const char* name : {"files", "file_bytes", "files_bytes", "file_depth"}) {
    EXPECT_TRUE(set_limit(limits, name, "0")) << name;
  }
}

TEST(Limits, ALimitHoldsAtItsEndAndNotOnePastIt) {
  Limits limits;
  EXPECT_TRUE(set_limit(limits, "pids", "4194304"));
  EXPECT_FALSE(set_limit(limits, "pids", "4194305"));
  EXPECT_FALSE(set_limit(limits, "pids", "4294967297")) << "must not wrap to 1";
  EXPECT_TRUE(set_limit(limits, "cpus", "1024"));
  EXPECT_FALSE(set_limit(limits, "cpus", "1024.001"));
  EXPECT_TRUE(set_limit(limits, "wall_seconds", "604800"));
  EXPECT_FALSE(set_limit(limits, "wall_seconds", "604800.001"));
}

TEST(Limits, JsonHasBytesSecondsAndNull) {
  Limits limits;
  EXPECT_EQ(limit_json(limits, "memory"), "268435456");
  EXPECT_EQ(limit_json(limits, "wall_seconds"), "30");
  EXPECT_EQ(limit_json(limits, "cpus"), "0.5");
  EXPECT_EQ(limit_json(limits, "cpu_seconds"), "null");
  EXPECT_EQ(limit_json(limits, "output_kills"), "false");
  EXPECT_EQ(limit_json(limits, "network"), "\"none\"");
  EXPECT_EQ(limit_json(limits, "no such"), "null");
}

TEST(Limits, CpuSecondsCanBeTakenBack) {
  Limits limits;
  ASSERT_TRUE(set_limit(limits, "cpu_seconds", "2.5"));
  EXPECT_EQ(limits.cpu_seconds, milliseconds{2'500});
  ASSERT_TRUE(set_limit(limits, "cpu_seconds", "none"));
  EXPECT_FALSE(limits.cpu_seconds.has_value());
}

TEST(Limits, NoLimitIsMoreThanAnyCeiling) {
  Limits most;
  most.cpu_seconds = milliseconds{5'000};
  Limits limits;
  EXPECT_TRUE(limit_is_above(limits, most, "cpu_seconds"));
  limits.cpu_seconds = milliseconds{5'000};
  EXPECT_FALSE(limit_is_above(limits, most, "cpu_seconds"));
  limits.cpu_seconds = milliseconds{5'001};
  EXPECT_TRUE(limit_is_above(limits, most, "cpu_seconds"));
  EXPECT_FALSE(limit_is_above(limits, Limits{}, "cpu_seconds")) << "no ceiling";
}

TEST(Limits, EveryLimitCanBeComparedAndCopied) {
  Limits other;
  ASSERT_TRUE(set_limit(other, "memory", "1G"));
  ASSERT_TRUE(set_limit(other, "network", "host"));
  ASSERT_TRUE(set_limit(other, "output_kills", "true"));
  ASSERT_TRUE(set_limit(other, "cpu_seconds", "3"));
  for (const char* name : {"memory", "network", "output_kills"}) {
    EXPECT_TRUE(limit_is_above(other, Limits{}, name)) << name;
    EXPECT_FALSE(limit_is_above(Limits{}, other, name)) << name;
  }
  Limits copy;
  for (const LimitField& field : limit_fields()) copy_limit(copy, other, field.name);
  EXPECT_EQ(copy, other);
  for (const LimitField& field : limit_fields()) copy_limit(copy, Limits{}, field.name);
  EXPECT_EQ(copy, Limits{});
}

}  // namespace
}  // namespace sbx::policy
