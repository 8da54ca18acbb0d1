// Random system calls inside the box for some seconds: the supervisor's account stays exact, and
// the host is as it was. SBX_TEST_SEED=N takes other calls; a failure names its seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "runtime/policy/policy.h"
#include "tests/integration/fixture.h"
#include "tests/support/host_state.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::IsEmpty;

constexpr unsigned kDefaultSeed = 20240607;
constexpr std::chrono::seconds kClockPatience{5};  // a clock that is disciplined drifts

unsigned first_seed() {
  const char* const text = std::getenv("SBX_TEST_SEED");
  return text == nullptr ? kDefaultSeed : static_cast<unsigned>(std::strtoul(text, nullptr, 10));
}

class RandomSyscalls : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    before_ = host_state();
    clock_ = clock_offset();
  }
  void TearDown() override {
    if (!before_.empty()) {
      const Things changed = difference(before_, host_state());
      EXPECT_TRUE(changed.empty()) << "changed on the host:\n" << to_text(changed);
      EXPECT_LT(std::chrono::abs(clock_offset() - clock_), kClockPatience);
    }
    SandboxTest::TearDown();
  }

  // One run of tests/programs/random_syscalls, judged as far as any ending can be.
  json run_with(unsigned seed, const std::string& seconds, std::vector<std::string> flags,
                const std::string& mode = "");

 private:
  Things before_;
  std::chrono::milliseconds clock_{};
};
SBX_AS_BOTH_CALLERS(RandomSyscalls);

int exit_code_of(const json& result) {
  const std::string status = result["status"];
  if (status == "security") return 159;
  if (status == "timeout") return 124;
  return result["exit_code"];
}

// What holds for a whole result, however the run ended.
void expect_exact(const json& result, int exit_code) {
  for (const char* const key :
       {"id",       "status", "ok",    "exit_code", "signal",  "timed_out",  "duration_seconds",
        "stdout",   "stderr", "files", "refused",   "denials", "limits_hit", "error",
        "usage",    "limits", "notes", "layers",    "start",   "image",      "profile",
        "language", "timings"}) {
    EXPECT_TRUE(result.contains(key)) << key;
  }
  EXPECT_THAT(result["status"], AnyOf("ok", "security", "oom", "timeout", "signal")) << result;
  EXPECT_EQ(result["ok"], result["status"] == "ok");
  EXPECT_EQ(exit_code, exit_code_of(result));
  EXPECT_TRUE(result["error"].is_null()) << result["error"];
  EXPECT_LT(result["duration_seconds"].get<double>(), 40.0);
  EXPECT_LE(result["usage"]["pids_peak"].get<int>(), result["limits"]["pids"].get<int>());
  EXPECT_LE(result["usage"]["memory_peak"].get<long>(), result["limits"]["memory"].get<long>());
  int hostile = 0;
  for (const json& denial : result["denials"]) hostile += denial["tier"] == "hostile" ? 1 : 0;
  EXPECT_EQ(hostile, result["status"] == "security" ? 1 : 0) << result["denials"];
}

// The program's last line, its account; null when it did not live to print it.
json account_of(const json& result) {
  std::string text = result["stdout"];
  while (!text.empty() && text.back() == '\n') text.pop_back();
  json account = json::parse(text.substr(text.rfind('\n') + 1), nullptr, false);
  return account.is_object() ? account : json();
}

json RandomSyscalls::run_with(unsigned seed, const std::string& seconds,
                              std::vector<std::string> flags, const std::string& mode) {
  flags.insert(flags.begin(), "--json");
  const std::string program = std::string(SBX_TEST_PROGRAMS) + "/random_syscalls";
  flags.insert(flags.end(), {"-t", "20", "--cpus", "1", "--input", program, "--",
                             "/input/random_syscalls", std::to_string(seed), seconds, mode});
  const Finished finished = run(flags);
  json result = json::parse(finished.out, nullptr, false);
  EXPECT_TRUE(result.is_object()) << finished.out << finished.err;
  if (!result.is_object()) return json::object();
  expect_exact(result, finished.exit_code);
  return result;
}

// A profile in which a hostile call is refused and the run goes on. clone(2), which is hostile by
// its arguments alone, stays: the program keeps from those.
std::string enduring_profile() {
  const policy::SeccompPolicy seccomp = policy::load_policy("default")->seccomp;
  std::string denied;
  for (std::uint32_t nr = 0; nr < policy::kSyscallTableSize; ++nr) {
    const std::string name = policy::syscall_name(seccomp.audit_arch, nr);
    if (seccomp.actions[nr] != policy::kActionHostile || name == "clone") continue;
    denied += (denied.empty() ? "" : ", ") + name + " = \"EPERM\"";
  }
  return "name = \"enduring\"\ndescription = \"Hostile calls are refused\"\n[seccomp]\ndeny = { " +
         denied + " }\n";
}

TEST_P(RandomSyscalls, ForSecondsLeaveSupervisorExactAndHostUnchanged) {
  const std::string profile = directory().write("enduring.toml", enduring_profile());
  json total = {{"batches", 0}, {"calls", 0}, {"succeeded", 0}, {"refused", 0}, {"unknown", 0}};
  int distinct = 0;
  for (unsigned seed = first_seed(); seed < first_seed() + 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const json account = account_of(run_with(seed, "4", {"--profile", profile}));
    if (account.is_null()) continue;  // it was killed, by a limit: judged already
    for (auto& [name, count] : total.items()) count = count.get<long>() + account[name].get<long>();
    distinct = std::max(distinct, account["distinct"].get<int>());
  }
  std::printf("random system calls from seed %u: %s, %d different\n", first_seed(),
              total.dump().c_str(), distinct);
  // The control: calls were made, of nearly all numbers, and answered in each way.
  EXPECT_GT(total["calls"], 10'000);
  EXPECT_GT(distinct, 300);
  for (const auto& [name, count] : total.items()) EXPECT_GT(count, 0) << name;
}

TEST_P(RandomSyscalls, EndTheRunAtTheFirstHostileOneAndNameIt) {
  constexpr unsigned kRuns = 20;
  unsigned hostile = 0;
  for (unsigned seed = first_seed(); seed < first_seed() + kRuns; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const json result = run_with(seed, "3", {}, "all");
    if (result["status"] == "security") ++hostile;
  }
  // One call in ten is hostile: a run without any in its thousands would be a wonder.
  EXPECT_GE(hostile, kRuns - 2);
}

TEST(RandomSyscallsBare, AreNeverMade) {
  const Finished finished =
      run_process({std::string(SBX_TEST_PROGRAMS) + "/random_syscalls", "1", "1"});
  EXPECT_EQ(finished.exit_code, 3);
}

}  // namespace
}  // namespace sbx::test
