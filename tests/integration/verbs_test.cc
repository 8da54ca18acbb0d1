// doctor, selftest, explain, and the questions that run nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class Verbs : public SandboxTest {};
SBX_AS_BOTH_CALLERS(Verbs);

TEST_P(Verbs, DoctorNamesEachCheckAndItsState) {
  const Finished finished = run({"doctor", "--json"});
  const json report = json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << finished.out << finished.err;
  EXPECT_EQ(finished.exit_code, report["ok"] == true ? 0 : 1);
  for (const json& check : report["checks"]) {
    EXPECT_THAT(check["state"].get<std::string>(), AnyOf("ok", "degraded", "missing", "untried"));
    EXPECT_EQ(check["state"] == "ok", check["fix"] == "") << check.dump();
  }
  EXPECT_THAT(run({"doctor"}).out, HasSubstr("kernel"));
}

TEST_P(Verbs, DoctorSaysWhatARunFinds) {
  const bool good = run({"doctor"}).exit_code == 0;
  EXPECT_EQ(run({"-c", "pass"}).exit_code == 0, good);
}

// Each shipped profile has answers of its own, and all of them hold; whose runs they are makes no
// difference to them.
TEST_P(Verbs, SelftestPassesAndScoresInEveryShippedProfile) {
  std::vector<std::string> profiles = {"default"};
  if (GetParam() == Caller::kUser || ::geteuid() != 0)
    profiles.insert(profiles.end(), {"judge", "large"});
  for (const std::string& profile : profiles) {
    const Finished finished = run({"selftest", "--json", "--profile", profile});
    const json report = json::parse(finished.out, nullptr, false);
    ASSERT_TRUE(report.is_object()) << profile << finished.out << finished.err;
    std::set<std::string> passed;
    for (const json& attack : report["cases"]) {
      EXPECT_THAT(attack["state"].get<std::string>(), AnyOf("pass", "n.a."))
          << profile << attack.dump();
      if (attack["state"] == "pass") passed.insert(attack["class"]);
    }
    EXPECT_EQ(passed, (std::set<std::string>{"system calls", "views", "network", "setting up",
                                             "files out", "killing", "memory"}))
        << profile;
    EXPECT_EQ(report["ok"], true) << profile;
    EXPECT_EQ(finished.exit_code, 0) << profile;
  }
}

// What of selftest is outside of any sandbox, of this user: directories, and queues by their key.
std::set<std::string> grounds(uid_t uid) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
    struct stat status{};
    const std::string name = entry.path().filename();
    if (!name.starts_with("sbx-selftest-") || ::lstat(entry.path().c_str(), &status) != 0) continue;
    if (status.st_uid == uid) found.insert(entry.path());
  }
  std::istringstream queues(read_text("/proc/sysvipc/msg"));
  std::string line;
  while (std::getline(queues, line)) {
    std::istringstream words(line);
    std::uint32_t key = 0, id = 0, mode = 0, bytes = 0, count = 0, sent = 0, received = 0;
    uid_t owner = 0;
    words >> key >> id >> mode >> bytes >> count >> sent >> received >> owner;
    if (words && key >> 24 == 'S' && owner == uid) found.insert("queue " + std::to_string(key));
  }
  return found;
}

// Nobody tells of a file: look again until `count` more are there than before.
bool wait_for_ground(uid_t uid, std::size_t count) {
  for (int look = 0; look < 1000; ++look) {
    if (grounds(uid).size() >= count) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

TEST_P(Verbs, AnInterruptedSelftestLeavesNothing) {
  const uid_t uid = is_user() ? kTestUser : ::geteuid();
  const std::set<std::string> before = grounds(uid);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    Process selftest(command({"selftest", "--json"}), options());
    ASSERT_TRUE(wait_for_ground(uid, before.size() + 2)) << signal;
    selftest.signal(signal);
    const Finished finished = selftest.finish();
    EXPECT_EQ(finished.exit_code, 130) << signal << finished.err;
    EXPECT_EQ(finished.err, "sbx-run: cancelled\n");
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(grounds(uid), before) << signal;
  }
}

// The processes of its runs have a word in their command lines.
bool is_whole_run_up() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string words = read_text(entry.path() / "cmdline");
    if (words.find("sbx-selftest-run-") != std::string::npos) return true;
  }
  return false;
}

TEST_P(Verbs, AnInterruptedSelftestCancelsTheRunsUnderWay) {
  const uid_t uid = is_user() ? kTestUser : ::geteuid();
  const std::set<std::string> before = grounds(uid);
  Process selftest(command({"selftest"}), options());
  bool seen = false;  // it may be over at the next look
  for (int look = 0; look < 3000 && !seen; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    seen = is_whole_run_up();
  }
  ASSERT_TRUE(seen);
  selftest.signal(SIGTERM);
  const Finished finished = selftest.finish();
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
  EXPECT_EQ(finished.err, "sbx-run: cancelled\n");
  EXPECT_EQ(grounds(uid), before);
}

TEST_P(Verbs, WhatAKilledSelftestLeavesIsRemovedByTheNext) {
  const uid_t uid = is_user() ? kTestUser : ::geteuid();
  const std::set<std::string> before = grounds(uid);
  {
    Process selftest(command({"selftest"}), options());
    ASSERT_TRUE(wait_for_ground(uid, before.size() + 2));
    selftest.signal(SIGKILL);
    (void)selftest.finish();
  }
  const std::set<std::string> left = grounds(uid);
  EXPECT_EQ(left.size(), before.size() + 2) << "control";
  Process next(command({"selftest"}), options());
  const auto next_stands = [&] {
    const std::set<std::string> now = grounds(uid);
    return now.size() == before.size() + 2 && now != left;
  };
  for (int look = 0; look < 1000 && !next_stands(); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  next.signal(SIGTERM);
  EXPECT_EQ(next.finish().exit_code, 130);
  EXPECT_EQ(grounds(uid), before);
}

// Who has a subtree given to him and looks for another has no cgroup; root would make it.
class VerbsWithoutGroups : public Verbs {};
INSTANTIATE_TEST_SUITE_P(Callers, VerbsWithoutGroups, ::testing::Values(Caller::kUser),
                         caller_name);

// What no limit stops is not tried, and not passed.
TEST_P(VerbsWithoutGroups, SelftestFailsForEachLimitThatDoesNotHold) {
  std::filesystem::create_directories(directory().path() + "/config/sbx");
  (void)directory().write("config/sbx/runtime.toml", "cgroup_parent = \"sbx-of-nobody\"\n");
  ProcessOptions without = options();
  without.environment.push_back("XDG_CONFIG_HOME=" + directory().path() + "/config");
  const Finished finished =
      run_process(command({"selftest", "--json", "--allow-missing", "cgroup"}), without);
  const json report = json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << finished.out << finished.err;
  int limits = 0;
  for (const json& attack : report["cases"]) {
    const bool is_limit = attack["layer"] == "cgroup";
    EXPECT_EQ(attack["state"] == "FAIL", is_limit) << attack.dump();
    if (!is_limit) continue;
    ++limits;
    EXPECT_EQ(attack["inside"], "no cgroup: this limit does not hold");
  }
  EXPECT_EQ(limits, 10);
  EXPECT_EQ(report["applicable"].get<int>() - report["passed"].get<int>(), limits);
  EXPECT_EQ(finished.exit_code, 1);
}

// Ceilings below the profile's and the cases' own limits leave every class something to test.
TEST_P(VerbsWithoutGroups, SelftestTestsEveryClassUnderLowCeilings) {
  std::filesystem::create_directories(directory().path() + "/config/sbx");
  (void)directory().write("config/sbx/runtime.toml", "max_cpus = 0.9\nmax_wall_seconds = 12\n");
  ProcessOptions low = options();
  low.environment.push_back("XDG_CONFIG_HOME=" + directory().path() + "/config");
  const Finished finished = run_process(command({"selftest", "--json"}), low);
  const json report = json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(report.is_object()) << finished.out << finished.err;
  std::set<std::string> passed;
  for (const json& attack : report["cases"]) {
    EXPECT_THAT(attack["state"].get<std::string>(), AnyOf("pass", "n.a.")) << attack.dump();
    if (attack["state"] == "pass") passed.insert(attack["class"]);
  }
  EXPECT_EQ(passed.size(), 7U);
  EXPECT_EQ(finished.exit_code, 0);
}

#if defined(__x86_64__)
// Without that call the C library of no program starts.
TEST_P(Verbs, SelftestSaysOnceThatNothingRuns) {
  const std::string profile = directory().write(
      "none.toml",
      "name = \"none\"\ndescription = \"x\"\n[seccomp]\ndeny = { arch_prctl = \"EPERM\" }\n");
  const Finished finished = run({"selftest", "--profile", profile});
  EXPECT_EQ(finished.exit_code, 125) << finished.out << finished.err;
  EXPECT_EQ(finished.out, "");
  EXPECT_THAT(finished.err, StartsWith("sbx-run: there is no sandbox to attack: "));
  EXPECT_THAT(finished.err, HasSubstr("arch_prctl"));
}
#endif

TEST_P(Verbs, ExplainTellsThePlanAndRunsNothing) {
  const Finished finished = run({"explain", "-t", "7", "-c", "open('/output/x', 'w')"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("7"));
  EXPECT_EQ(finished.err, "");
  EXPECT_EQ(run({"explain"}).exit_code, 0);
}

TEST_P(Verbs, WhatAProfileLoosensIsSaidByExplainAndByARun) {
  const std::string head = "name = \"mine\"\ndescription = \"x\"\n[seccomp]\n";
  const std::string loose = directory().write("loose.toml", head + "allow = [\"ptrace\"]\n");
  const std::string tight = directory().write("tight.toml", head + "deny = { pipe = \"EPERM\" }\n");
  const std::string said = "no longer hostile";
  EXPECT_THAT(run({"explain", "--profile", loose}).out, HasSubstr(said));
  EXPECT_THAT(run({"explain", "--profile", tight}).out, Not(HasSubstr(said)));
  EXPECT_EQ(run({"--profile", loose, "--", "/bin/true"}).err,
            "sbx-run: layer seccomp was loosened by the profile mine: no longer hostile: ptrace\n");
  EXPECT_EQ(run({"--profile", tight, "--", "/bin/true"}).err, "");
  const json result = run_json({"--profile", loose, "--", "/bin/true"});
  EXPECT_THAT(result["layers"].dump(), HasSubstr("profile mine; no longer hostile: ptrace"));
  const std::string past = directory().write("past.toml", head + "allow = [\"@io_uring\"]\n");
  EXPECT_THAT(run({"--profile", past, "--", "/bin/true"}).err, HasSubstr("opened: io_uring_enter"));
}

TEST_P(Verbs, ExplainRefusesWhatARunRefuses) {
  const std::string made = directory().path() + "/made";
  EXPECT_EQ(run({"explain", "--stdin", "/no/such", "-c", "1"}).exit_code, 2);
  EXPECT_EQ(run({"explain", "--output-dir", "/no/such/x", "-c", "1"}).exit_code, 2);
  EXPECT_EQ(run({"explain", "--output-dir", made, "-c", "1"}).exit_code, 0);
  EXPECT_NE(::access(made.c_str(), F_OK), 0) << "explain makes nothing";
  EXPECT_EQ(run({"explain", "--json", "-c", "1"}).exit_code, 2);
  EXPECT_EQ(run({"explain", "--learn", "-c", "1"}).exit_code, 2);
  std::filesystem::create_directories(directory().path() + "/config/sbx");
  (void)directory().write("config/sbx/runtime.toml", "runtime_dir = \"/proc/self/nowhere\"\n");
  ProcessOptions elsewhere = options();
  elsewhere.environment.push_back("XDG_CONFIG_HOME=" + directory().path() + "/config");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-c", "1"}, {"explain", "-c", "1"}}) {
    EXPECT_EQ(run_process(command(words), elsewhere).exit_code, 125) << words.front();
  }
}

TEST_P(Verbs, OutputThatCannotBeWrittenIsSaid) {
  std::vector<std::string> verbs = {"doctor", "explain", "--print-config", "--help", "--version"};
  if (GetParam() == Caller::kSelf) verbs.push_back("selftest");  // takes a while
  for (const std::string& verb : verbs) {
    std::vector<std::string> words{"/bin/sh", "-c", "exec \"$0\" \"$@\" > /dev/full"};
    for (std::string& word : command({verb})) words.push_back(std::move(word));
    const Finished finished = run_process(words, options());
    EXPECT_EQ(finished.exit_code, 125) << verb;
    EXPECT_THAT(finished.err, HasSubstr("No space left on device")) << verb;
  }
}

TEST_P(Verbs, AFifoThatNobodyWritesToEndsWithTheRunsTime) {
  const std::string fifo = directory().path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(fifo.c_str(), 0666), 0);
  EXPECT_EQ(run({"-t", "1", "--stdin", fifo, "-c", "input()"}).exit_code, 124);
  EXPECT_EQ(run({"-t", "1", "-l", "python", fifo}).exit_code, 2);
  std::vector<std::string> words{"/bin/bash", "-c", R"(exec "$0" "$@" <(echo 'print(7)'))"};
  for (std::string& word : command({"-l", "python"})) words.push_back(std::move(word));
  EXPECT_EQ(run_process(words, options()).out, "7\n");
}

TEST_P(Verbs, WhatEverybodyHasOpenIsNotCountedInside) {
  const Finished finished = run({"-c",
                                 "import os; print(os.listdir('/proc/sys/fs'), "
                                 "open('/proc/sys/kernel/pty/nr').read())"});
  EXPECT_EQ(finished.out, "[] \n") << finished.err;
}

TEST_P(Verbs, PrintConfigIsTheTemplate) {
  const Finished finished = run({"--print-config"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.out, HasSubstr("uid_base"));
}

TEST_P(Verbs, HelpAndVersionAnswer) {
  EXPECT_THAT(run({"--help"}).out, HasSubstr("sbx-run [OPTIONS] FILE"));
  for (const std::string verb : {"doctor", "selftest", "explain"}) {
    const Finished page = run({verb, "--help"});
    EXPECT_EQ(page.exit_code, 0) << page.err;
    EXPECT_THAT(page.out, StartsWith("sbx-run " + verb + ": "));
  }
  EXPECT_THAT(run({"--version"}).out, HasSubstr("sbx-run "));
}

}  // namespace
}  // namespace sbx::test
