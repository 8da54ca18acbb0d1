#include "runtime/cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/policy/policy.h"
#include "runtime/policy/profile.h"

namespace sbx::cli {
namespace {

using collect::Outcome;
using collect::Status;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Outcome ended(Status status) {
  Outcome outcome;
  outcome.status = status;
  return outcome;
}

TEST(Report, AGoodRunIsQuiet) {
  Outcome outcome = ended(Status::kOk);
  outcome.notes = {{"no_output", "It printed nothing.", "kernel"}};
  EXPECT_THAT(outcome_lines(outcome, false), IsEmpty());
}

TEST(Report, AGoodRunSaysWhatWasKilledAtItsEnd) {
  Outcome outcome = ended(Status::kOk);
  outcome.notes = {{"background_killed", "Processes were left.", "kernel"}};
  EXPECT_THAT(outcome_lines(outcome, false), ElementsAre("Processes were left."));
}

TEST(Report, AKillIsExplainedByItsNote) {
  Outcome outcome = ended(Status::kOom);
  outcome.notes = {{"output_cut", "Cut.", "kernel"}, {"memory", "Over 256M.", "kernel"}};
  EXPECT_THAT(outcome_lines(outcome, false), ElementsAre("Over 256M."));
}

TEST(Report, AnEndingWithoutANoteIsNamed) {
  Outcome outcome = ended(Status::kSignal);
  outcome.signal = 11;
  EXPECT_THAT(outcome_lines(outcome, false), Contains(HasSubstr("SIGSEGV")));
  EXPECT_THAT(outcome_lines(ended(Status::kCancelled), false), Contains(HasSubstr("cancelled")));
  EXPECT_THAT(outcome_lines(ended(Status::kExit), false), IsEmpty());
}

TEST(Report, AFailureOfOursShowsStepErrnoAndFix) {
  Outcome outcome = ended(Status::kSandboxError);
  outcome.error = collect::ErrorInfo{"internal", "pivot_root", 22, "the old root", "try this"};
  const Lines lines = outcome_lines(outcome, false);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("pivot_root"));
  EXPECT_THAT(lines[0], HasSubstr("Invalid argument"));
  EXPECT_EQ(lines[1], "fix: try this");
}

TEST(Report, WhatWasNotSavedIsNamed) {
  Outcome outcome = ended(Status::kOk);
  collect::CollectedFile file;
  file.path = "chart.png";
  file.size = 12;
  outcome.files = {file};
  outcome.refused = {{"link", "symbolic link"}};
  const Lines lines = outcome_lines(outcome, false);
  EXPECT_THAT(lines, Contains(HasSubstr("not saved: /output/chart.png (12 bytes)")));
  EXPECT_THAT(lines, Contains(HasSubstr("--output-dir")));
  EXPECT_THAT(lines, Contains(HasSubstr("link: symbolic link")));
}

TEST(Report, WhatWasSavedIsNamed) {
  Outcome outcome = ended(Status::kOk);
  collect::CollectedFile file;
  file.path = "chart.png";
  file.saved_as = "out/chart.png";
  outcome.files = {file};
  EXPECT_THAT(outcome_lines(outcome, true), ElementsAre("saved out/chart.png (0 bytes)"));
}

TEST(Report, NamesFromInsideCannotControlTheTerminal) {
  Outcome outcome = ended(Status::kExit);
  outcome.refused = {{"\x1b]0;title\x07", "x\ny"}};
  outcome.notes = {{"missing_module",
                    "\x9b"
                    "31m",
                    "program"}};
  for (const std::string& line : outcome_lines(outcome, false)) {
    EXPECT_THAT(line, Not(HasSubstr("\x1b")));
    EXPECT_THAT(line, Not(HasSubstr("\n")));
    EXPECT_THAT(line, Not(HasSubstr("\x07")));
  }
}

TEST(Report, AWeakenedRequiredLayerIsAlwaysSaid) {
  Outcome outcome = ended(Status::kOk);
  outcome.layers = {{"net_namespace", policy::LayerState::kOff, "--net host"},
                    {"cgroup", policy::LayerState::kMissing, ""},
                    {"landlock", policy::LayerState::kMissing, ""},
                    {"proc", policy::LayerState::kHeld, ""}};
  EXPECT_THAT(outcome_lines(outcome, false),
              ElementsAre("layer net_namespace was off: --net host", "layer cgroup was missing"));
}

TEST(Report, LimitsThatWereLoweredAreNamedWithBothFigures) {
  policy::Limits wanted;
  policy::Limits applied;
  EXPECT_THAT(lowered_lines(wanted, applied), IsEmpty());
  applied.memory = 64 * policy::kMiB;
  applied.wall_seconds = std::chrono::seconds(5);
  EXPECT_THAT(lowered_lines(wanted, applied),
              ElementsAre("wall_seconds was lowered from 30 to 5, the ceiling of this host or of "
                          "runtime.toml",
                          "memory was lowered from 256M to 64M, the ceiling of this host or of "
                          "runtime.toml"));
}

TEST(Report, WhatAProfileLoosenedIsAlwaysSaid) {
  policy::Policy policy;
  policy.profile = "mine";
  EXPECT_THAT(loosened_lines(policy), IsEmpty());
  policy.seccomp.loosened = {"ptrace", "unshare"};
  EXPECT_THAT(loosened_lines(policy),
              ElementsAre("layer seccomp was loosened by the profile mine: no longer hostile: "
                          "ptrace, unshare"));
  policy.seccomp.opened = {"io_uring_setup"};
  EXPECT_THAT(loosened_lines(policy),
              ElementsAre("layer seccomp was loosened by the profile mine: no longer hostile: "
                          "ptrace, unshare; opened: io_uring_setup"));
  policy.seccomp.loosened.clear();
  EXPECT_THAT(loosened_lines(policy),
              ElementsAre("layer seccomp was loosened by the profile mine: opened: "
                          "io_uring_setup"));
}

TEST(Report, ManyFilesOfAKindAreCountedBeyondTheFirstTen) {
  Outcome outcome = ended(Status::kOk);
  for (int i = 0; i < 11; ++i) {
    collect::CollectedFile file;
    file.path = "f" + std::to_string(i);
    outcome.files.push_back(file);
    outcome.refused.push_back({"l" + std::to_string(i), "symbolic link"});
    outcome.refused.push_back({"b" + std::to_string(i), std::to_string(i) + " bytes, over 5"});
  }
  const Lines lines = outcome_lines(outcome, false);
  EXPECT_EQ(lines.size(), 10 + 1 + 1 + 20 + 2U);
  EXPECT_THAT(lines, Contains("not saved: 1 more"));
  EXPECT_THAT(lines, Contains("not saved: 1 more: symbolic link"));
  EXPECT_THAT(lines, Contains("not saved: 1 more: over 5")) << "whatever their sizes";
  outcome.files.pop_back();
  EXPECT_THAT(outcome_lines(outcome, false), Not(Contains("not saved: 1 more"))) << "at the limit";
}

std::string text_of(std::string_view profile) {
  return *policy::profile_source(profile);
}

Lines learned_lines(const Outcome& outcome) {
  return learn_lines(outcome, learn_profile(outcome, text_of("default")));
}

TEST(Report, LearnGivesTheProfileThatAllowsTheDenied) {
  Outcome outcome = ended(Status::kOk);
  outcome.denials = {
      {"name_to_handle_at", "deny", 2}, {"mount", "hostile", 1}, {"syscall_600", "deny", 1}};
  EXPECT_THAT(learned_lines(outcome), Contains("denied: name_to_handle_at (deny), 2x"));
  EXPECT_THAT(learn_profile(outcome, text_of("default")),
              HasSubstr("[seccomp]\nallow = [\"name_to_handle_at\"]\n"));
}

TEST(Report, CallsThatAreNotSafeToAllowAreNotOfferedButTheReasonIs) {
  for (const char* const call : {"ioctl",
                                 "socket",
                                 "socketpair",
                                 "clone",
                                 "prctl",
                                 "arch_prctl",
                                 "personality",
                                 "setrlimit",
                                 "prlimit64",
                                 "sched_setaffinity",
                                 "sched_setscheduler",
                                 "sched_setparam",
                                 "sched_setattr",
                                 "setpriority",
                                 "ioprio_set",
                                 "io_uring_setup",
                                 "io_uring_enter",
                                 "io_uring_register",
                                 "inotify_init1",
                                 "inotify_add_watch",
                                 "fanotify_init",
                                 "fanotify_mark",
                                 "syslog",
                                 "kcmp",
                                 "modify_ldt",
                                 "io_setup",
                                 "uselib",
                                 "vmsplice",
                                 "memfd_secret",
                                 "chroot",
                                 "sethostname",
                                 "vhangup",
                                 "mount",
                                 "no_such_call"}) {
    Outcome outcome = ended(Status::kOk);
    outcome.denials = {{call, "deny", 1}};
    const std::string comment = "# " + std::string(call) + " is not offered, because ";
    EXPECT_THAT(learn_profile(outcome, text_of("default")), ::testing::StartsWith(comment));
    EXPECT_THAT(learn_profile(outcome, text_of("default")), Not(HasSubstr("allow = ")));
    EXPECT_EQ(learned_lines(outcome).size(), 1U) << "no profile is announced";
    outcome.denials.push_back({"name_to_handle_at", "deny", 1});
    EXPECT_THAT(learn_profile(outcome, text_of("default")), HasSubstr(comment));
    EXPECT_THAT(learn_profile(outcome, text_of("default")),
                HasSubstr("\nallow = [\"name_to_handle_at\"]\n"));
    EXPECT_TRUE(policy::parse_policy(learn_profile(outcome, text_of("default")), "learned"));
  }
}

TEST(Report, WhatWasLearnedWithAProfileKeepsWhatThatSays) {
  Outcome outcome = ended(Status::kOk);
  outcome.denials = {{"name_to_handle_at", "deny", 1}, {"socket", "deny", 1}};
  const std::string text = learn_profile(outcome, text_of("judge"));
  EXPECT_THAT(text, HasSubstr("\"The judge profile, and what one program was denied\""));
  EXPECT_THAT(text, HasSubstr("# socket is not offered, because the profile judge denies it\n"));
  const auto learned = policy::parse_policy(text, "learned");
  ASSERT_TRUE(learned) << text;
  const auto judge = policy::load_policy("judge");
  EXPECT_EQ(learned->profile, "learned");
  EXPECT_EQ(learned->limits, judge->limits);
  EXPECT_THAT(text, HasSubstr("deny = { socket = \"EACCES\" }\n"));
  EXPECT_THAT(learned->seccomp.opened, ElementsAre("name_to_handle_at"));
  EXPECT_THAT(learn_profile(outcome, "no TOML"), ::testing::StartsWith("# no profile is made: "));
}

TEST(Report, HostileCallsAreNeverLearned) {
  Outcome outcome = ended(Status::kSecurity);
  outcome.denials = {{"mount", "hostile", 1}};
  EXPECT_THAT(learned_lines(outcome), ElementsAre("denied: mount (hostile), 1x"));
  EXPECT_EQ(learn_profile(outcome, text_of("default")), "");
}

TEST(Report, LearnSaysWhatIsNotKnownOfTheDenied) {
  Outcome outcome = ended(Status::kTimeout);
  outcome.denials = {{"chroot", "deny", 512, true}};
  outcome.denials_unlisted = 7;
  EXPECT_THAT(learned_lines(outcome),
              AllOf(Contains("denied: chroot (deny), at least 512x"),
                    Contains("denied: 7 calls more, of numbers that are not listed")));
}

TEST(Report, LearnSaysWhenNothingWasDenied) {
  EXPECT_THAT(learned_lines(ended(Status::kOk)), ElementsAre("no system call was denied"));
}

}  // namespace
}  // namespace sbx::cli
