// Each note: that it appears with its evidence, with its figures, and not without.
#include "runtime/collect/notes.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace sbx::collect {
namespace {

using supervise::Ending;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kPythonPattern = "ModuleNotFoundError: No module named '([^']+)'";

std::vector<std::string> codes(const std::vector<Note>& notes) {
  std::vector<std::string> list;
  for (const Note& note : notes) list.push_back(note.code);
  return list;
}

// The only note of this ending.
Note only_note(const Ending& ending, const NoteContext& context) {
  const auto notes = make_notes(ending, context);
  EXPECT_EQ(notes.size(), 1U) << ::testing::PrintToString(codes(notes));
  return notes.empty() ? Note{} : notes.front();
}

Ending with_stderr(std::string text) {
  Ending ending;
  ending.err.total = text.size();
  ending.err.head = std::move(text);
  return ending;
}

TEST(Notes, AQuietFailureHasNone) {
  EXPECT_THAT(make_notes(Ending{}, {.status = Status::kExit}), IsEmpty());
}

TEST(Notes, MemorySaysTheSignalTheLimitAndThatTmpfsCounts) {
  Ending ending;
  ending.usage.emplace().oom_kills = 1;
  const Note note = only_note(ending, {.status = Status::kOom});
  EXPECT_EQ(note.code, "memory");
  EXPECT_EQ(note.source, "kernel");
  EXPECT_THAT(note.text, HasSubstr("killed (SIGKILL) because it exceeded the 256M memory limit"));
  EXPECT_THAT(note.text, HasSubstr("/tmp"));
}

TEST(Notes, AHeapThatMetItsEndIsToldByTheProgramsWords) {
  Ending ending = with_stderr(
      "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n");
  ending.payload_wait_status = SIGABRT;
  Note note = only_note(ending, {.status = Status::kSignal});
  EXPECT_EQ(note.code, "memory");
  EXPECT_EQ(note.source, "program");
  EXPECT_THAT(note.text, AllOf(HasSubstr("256M memory limit;"), Not(HasSubstr("used"))));
  ending.usage.emplace().memory_peak = 250 * policy::kMiB;
  note = only_note(ending, {.status = Status::kSignal});
  EXPECT_EQ(note.source, "program");
  EXPECT_THAT(note.text, HasSubstr("256M memory limit, of which it had used 250M"));
  ending.payload_wait_status = (128 + SIGABRT) << 8;  // its parent, a shell, ended with that
  EXPECT_EQ(only_note(ending, {.status = Status::kExit}).source, "program");
  ending.payload_wait_status = 1 << 8;
  EXPECT_THAT(make_notes(ending, {.status = Status::kExit}), IsEmpty()) << "it may quote another";
  ending.payload_wait_status = SIGSEGV;
  EXPECT_THAT(make_notes(ending, {.status = Status::kSignal}), IsEmpty());
}

TEST(Notes, AnAbortCloseToTheMemoryLimitIsToldByItsPeak) {
  const auto notes_at = [](std::uint64_t peak, std::uint64_t oom_kills = 0) {
    Ending ending;
    ending.payload_wait_status = SIGABRT;
    ending.usage.emplace().memory_peak = peak;
    ending.usage->oom_kills = oom_kills;
    NoteContext context{.status = Status::kSignal};
    context.limits.memory = 1000;
    return make_notes(ending, context);
  };
  ASSERT_EQ(codes(notes_at(900)), std::vector<std::string>{"memory"});
  EXPECT_EQ(notes_at(900).front().source, "kernel");
  EXPECT_THAT(notes_at(900).front().text,
              AllOf(HasSubstr("counts the files that it read"), Not(HasSubstr("likely"))))
      << "the peak has no cause";
  EXPECT_THAT(notes_at(899), IsEmpty());
  EXPECT_EQ(notes_at(1000, 1).size(), 1U) << "the kill is told already";
}

TEST(Notes, ALimitOfTheCallersSaysWhatItUndercuts) {
  const policy::CallerLimit memory{"as", "-v", "memory", 100 * policy::kMiB, true};
  const Note note = only_note(Ending{}, {.status = Status::kExit, .caller_limits = {memory}});
  EXPECT_EQ(note.code, "caller_limit") << "nobody knows whether it was met";
  EXPECT_THAT(note.text, HasSubstr("had to keep to the hard limit as 100M (ulimit -v)"));
  EXPECT_THAT(note.text, HasSubstr("tighter than the run's memory of 256M"));
  const policy::CallerLimit cpu{"cpu", "-t", "wall_seconds", 1, false};
  const Note killed = only_note(Ending{}, {.status = Status::kCpuTime, .caller_limits = {cpu}});
  EXPECT_EQ(killed.code, "cpu_time");
  EXPECT_THAT(killed.text, HasSubstr("killed because it met the hard limit cpu 1 s (ulimit -t)"));
  Ending uncounted;
  uncounted.payload_wait_status = SIGKILL;
  const Note may = only_note(uncounted, {.status = Status::kSignal, .caller_limits = {cpu}});
  EXPECT_EQ(may.code, "caller_limit");
  EXPECT_THAT(may.text, HasSubstr("may have been killed because it met the hard limit cpu 1 s"));
}

TEST(Notes, WallAndCpuTimeSayTheirLimits) {
  Ending ending;
  ending.wall_expired = true;
  ending.usage.emplace().cpu_usec = 14'900'000;
  const Note wall = only_note(ending, {.status = Status::kTimeout});
  EXPECT_EQ(wall.code, "wall");
  EXPECT_THAT(wall.text, HasSubstr("limit of 30 s (it had used 14.9 s of CPU, at most 0.5 CPUs)"));
  Ending cpu;
  cpu.cpu_expired = true;
  NoteContext context{.status = Status::kCpuTime};
  context.limits.cpu_seconds = std::chrono::milliseconds(2500);
  const Note note = only_note(cpu, context);
  EXPECT_EQ(note.code, "cpu_time");
  EXPECT_THAT(note.text, HasSubstr("2.5 s"));
}

TEST(Notes, WhoEndedAboveALimitBeforeItWasKilledIsNotToldThatItWas) {
  Ending ending;
  ending.payload_wait_status = 0;
  ending.cpu_expired = true;
  ending.usage.emplace().cpu_usec = 3'100'000;
  NoteContext context{.status = Status::kCpuTime};
  context.limits.cpu_seconds = std::chrono::milliseconds(2500);
  EXPECT_THAT(only_note(ending, context).text,
              AllOf(HasSubstr("ended by itself, but had used more than its CPU time limit of 2.5 s "
                              "(it had used 3.1 s"),
                    Not(HasSubstr("killed"))));
  Ending loud;
  loud.payload_wait_status = 0;
  loud.output_exceeded = true;
  loud.out.total = 1 << 20;
  EXPECT_THAT(only_note(loud, {.status = Status::kOutput}).text,
              AllOf(HasSubstr("ended by itself, but had written more"), Not(HasSubstr("killed"))));
}

TEST(Notes, PidsSaysHowManyWereRefused) {
  Ending ending;
  ending.usage.emplace().pids_refused = 17;
  const Note note = only_note(ending, {.status = Status::kExit});
  EXPECT_EQ(note.code, "pids");
  EXPECT_THAT(note.text, HasSubstr("17 new processes or threads were refused"));
  EXPECT_THAT(note.text, HasSubstr("64"));
}

TEST(Notes, StorageNamesTheDirectoryAndItsLimit) {
  Ending ending;
  ending.storage = {{"tmp", 0, 1}, {"shm", 1, 0}, {"work", 1, 1}};
  const auto notes = make_notes(ending, {.status = Status::kExit});
  ASSERT_THAT(codes(notes), ElementsAre("disk_full", "inodes_full"));
  EXPECT_THAT(notes[0].text, HasSubstr("/tmp was full when the program ended (limit 64M)"));
  EXPECT_THAT(notes[1].text, HasSubstr("/dev/shm"));
  EXPECT_THAT(notes[1].text, HasSubstr("1024"));
}

TEST(Notes, OutputCutCountsTheDroppedBytes) {
  Ending ending;
  ending.out.dropped = 5;
  ending.out.total = 65541;
  const Note note = only_note(ending, {.status = Status::kOk});
  EXPECT_EQ(note.code, "output_cut");
  EXPECT_THAT(note.text, HasSubstr("stdout was cut: 5 of 65541 bytes"));
  EXPECT_THAT(note.text, HasSubstr("stdout_bytes is 64K"));
}

TEST(Notes, OutputKillsSaysWhichStreamEndedTheRun) {
  Ending ending;
  ending.output_exceeded = true;
  ending.err.total = 1 << 20;
  EXPECT_THAT(only_note(ending, {.status = Status::kOutput}).text, HasSubstr("64K to stderr"));
}

TEST(Notes, DeniedSyscallsAreNamed) {
  Ending ending;
  ending.denied = {{0xC000003E, 165, 3}};
  const Note denied = only_note(ending, {.status = Status::kExit});
  EXPECT_EQ(denied.code, "denied_syscall");
  EXPECT_THAT(denied.text, HasSubstr("mount (at least 3x);")) << "init did not tell its totals";
  ending.denied_counts_are_final = true;
  EXPECT_THAT(only_note(ending, {.status = Status::kExit}).text, HasSubstr("mount (3x);"));
  ending.denied_unlisted = 7;
  EXPECT_THAT(only_note(ending, {.status = Status::kExit}).text,
              HasSubstr("mount (3x), 7 calls of numbers that are not listed;"));
  Ending hostile;
  hostile.hostile = supervise::SeenCall{0xC000003E, 272, 1};
  EXPECT_THAT(only_note(hostile, {.status = Status::kSecurity}).text, HasSubstr("unshare"));
}

TEST(Notes, NetworkAttemptSaysThatThereIsNoLoopbackEither) {
  Ending ending;
  ending.packets_without_route = 1;
  const Note note = only_note(ending, {.status = Status::kExit});
  EXPECT_EQ(note.code, "network_attempt");
  EXPECT_THAT(note.text, HasSubstr("1 packet found no route"));
  EXPECT_THAT(note.text, HasSubstr("no loopback"));
  NoteContext host{.status = Status::kExit};
  host.limits.network = policy::NetworkMode::kHost;
  EXPECT_THAT(make_notes(ending, host), IsEmpty());
}

TEST(Notes, BackgroundProcessesThatWereKilledAreMentioned) {
  Ending ending;
  ending.background_killed = true;
  EXPECT_EQ(only_note(ending, {.status = Status::kExit}).code, "background_killed");
}

TEST(Notes, FileLocksThatWereRefusedAreExplained) {
  Ending ending;
  ending.lock_limit = 4096;
  const Note note = only_note(ending, {.status = Status::kExit});
  EXPECT_EQ(note.code, "record_locks");
  EXPECT_THAT(note.text, HasSubstr("may hold 4096 at once"));
}

TEST(Notes, NoOutputNeedsASuccessWithoutAnyOutputOrFile) {
  EXPECT_EQ(only_note(Ending{}, {.status = Status::kOk}).code, "no_output");
  EXPECT_THAT(make_notes(Ending{}, {.status = Status::kOk, .has_files = true}), IsEmpty());
  EXPECT_THAT(make_notes(with_stderr("x"), {.status = Status::kOk}), IsEmpty());
  EXPECT_THAT(make_notes(Ending{}, {.status = Status::kExit}), IsEmpty());
}

TEST(Notes, MissingModuleSaysWhatIsAvailableAndThatTheProgramSaidSo) {
  const NoteContext context{.status = Status::kExit,
                            .missing_module_pattern = kPythonPattern,
                            .packages = {"numpy", "pandas"}};
  const Note note = only_note(
      with_stderr("Traceback\nModuleNotFoundError: No module named 'first'\nDuring handling …\n"
                  "ModuleNotFoundError: No module named 'requests'\n"),
      context);
  EXPECT_EQ(note.code, "missing_module");
  EXPECT_EQ(note.source, "program");
  EXPECT_THAT(note.text, HasSubstr("module requests is not installed"));
  EXPECT_THAT(note.text, HasSubstr("numpy, pandas"));
}

TEST(Notes, MissingModuleIsFoundInTheTailAndAfterNulBytes) {
  Ending ending;
  ending.err.head = std::string(40000, 'x');
  ending.err.tail = std::string("\0\0", 2) + "ModuleNotFoundError: No module named 'torch'\n";
  EXPECT_EQ(
      only_note(ending, {.status = Status::kExit, .missing_module_pattern = kPythonPattern}).code,
      "missing_module");
}

TEST(Notes, AModuleNameCannotCarryTerminalSequencesOrBeLong) {
  const Note note = only_note(
      with_stderr("ModuleNotFoundError: No module named '\x1b[2J" + std::string(500, 'a') + "'"),
      {.status = Status::kExit, .missing_module_pattern = kPythonPattern});
  EXPECT_THAT(note.text, HasSubstr("\\x1b[2J"));
  EXPECT_LT(note.text.size(), 300U);
}

TEST(Notes, WhatTheProgramSaysIsNotQuotedAfterASuccess) {
  EXPECT_THAT(make_notes(with_stderr("ModuleNotFoundError: No module named 'x'"),
                         {.status = Status::kOk, .missing_module_pattern = kPythonPattern}),
              IsEmpty());
}

TEST(Notes, AnInterpreterThatLacksItsOwnModulesMissesNoPackage) {
  EXPECT_THAT(
      make_notes(with_stderr("Fatal Python error: init_fs_encoding: failed to get the Python codec "
                             "of the filesystem encoding\nPython runtime state: core initialized\n"
                             "ModuleNotFoundError: No module named 'encodings'\n"),
                 {.status = Status::kExit, .missing_module_pattern = kPythonPattern}),
      IsEmpty());
}

TEST(Notes, AHostileStderrDoesNotSlowTheMatcher) {
  std::string text;
  while (text.size() < 65536) text += "ModuleNotFoundError: No module named 'a'";
  const auto start = std::chrono::steady_clock::now();
  (void)make_notes(with_stderr(text),
                   {.status = Status::kExit, .missing_module_pattern = kPythonPattern});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(Notes, ADiskThatWasFullEarlierIsTheProgramsWord) {
  const Note note = only_note(with_stderr("OSError: [Errno 28] No space left on device"),
                              {.status = Status::kExit});
  EXPECT_EQ(note.code, "disk_full");
  EXPECT_EQ(note.source, "program");
}

TEST(Notes, EachIsOneSentence) {
  Ending ending = with_stderr("No space left on device Too many open files");
  ending.usage.emplace().oom_kills = 1;
  ending.usage->pids_refused = 1;
  ending.wall_expired = ending.cpu_expired = ending.output_exceeded = true;
  ending.background_killed = true;
  ending.out.dropped = ending.err.dropped = 1;
  ending.packets_without_route = 2;
  ending.hostile = supervise::SeenCall{};
  ending.denied = {{}};
  const auto notes = make_notes(ending, {.status = Status::kExit});
  EXPECT_GE(notes.size(), 11U);
  for (const Note& note : notes) {
    EXPECT_TRUE(note.text.ends_with('.')) << note.text;
    EXPECT_THAT(note.text, Not(HasSubstr(". ")));
  }
}

}  // namespace
}  // namespace sbx::collect
