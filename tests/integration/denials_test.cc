// What becomes of refused calls: how they are counted and listed, and what a hostile one cannot do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class Denials : public SandboxTest {};
SBX_AS_BOTH_CALLERS(Denials);

std::string calls(int number, int times) {
  return "import ctypes, time\n"
         "libc = ctypes.CDLL(None)\n"
         "for _ in range(" +
         std::to_string(times) + "): libc.syscall(" + std::to_string(number) + ", 0, 0, 0, 0, 0)\n";
}

json denial_of(const json& result, const std::string& syscall) {
  for (const json& denial : result["denials"]) {
    if (denial["syscall"] == syscall) return denial;
  }
  return {};
}

std::string note_of(const json& result, const std::string& code) {
  for (const json& note : result["notes"]) {
    if (note["code"] == code) return note["text"];
  }
  return {};
}

TEST_P(Denials, AreCountedExactlyWhereTheProgramEnds) {
  const json result = run_json({"-c", calls(SYS_kcmp, 1000)});
  EXPECT_EQ(denial_of(result, "kcmp"),
            (json{{"syscall", "kcmp"}, {"tier", "deny"}, {"count", 1000}}));
  EXPECT_THAT(note_of(result, "denied_syscall"), HasSubstr("kcmp (1000x)"));
}

// Init tells its totals after each pause, so that one that is killed has told almost all; that it
// told all is not known.
TEST_P(Denials, AreCountedAtLeastWhereTheRunIsKilled) {
  const std::string waiting = calls(SYS_kcmp, 1000) + "time.sleep(60)\n";
  const json result = run_json({"-t", "3", "-c", waiting});
  EXPECT_EQ(result["status"], "timeout");
  EXPECT_EQ(denial_of(result, "kcmp"),
            (json{{"syscall", "kcmp"}, {"tier", "deny"}, {"count", 1000}, {"at_least", true}}));
  EXPECT_THAT(note_of(result, "denied_syscall"), HasSubstr("kcmp (at least 1000x)"));
  EXPECT_THAT(run({"-t", "3", "--learn", "-c", waiting}).err,
              HasSubstr("denied: kcmp (deny), at least 1000x"));
}

TEST_P(Denials, AreLearnedForTheProfileThatTheRunHadWhateverItsFileSaysMeanwhile) {
  std::filesystem::permissions(directory().path(), std::filesystem::perms::all);
  const std::string head = "name = \"mine\"\ndescription = \"d\"\n";
  const std::string own = directory().write("own.toml", head + "[limits]\npids = 61\n");
  const std::string other = directory().write("other.toml", head + "[limits]\npids = 62\n");
  std::vector<std::string> words{"/bin/bash", "-ec",
                                 "mkfifo \"$0.go\"; exec 3<>\"$0.go\"\n"
                                 "\"${@:2}\" <\"$0.go\" | { read -r up; cp --remove-destination "
                                 "\"$1\" \"$0\"; echo >&3; cat; }",
                                 own, other};
  const std::string program =
      calls(SYS_name_to_handle_at, 1) + "print('up', flush=True)\ninput()\n";
  for (std::string& word : command({"--learn", "--profile", own, "-c", program})) {
    words.push_back(std::move(word));
  }
  const Finished finished = run_process(words, options());
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("denied: name_to_handle_at"), HasSubstr("pids = 61\n")));
  EXPECT_THAT(read_text(own), HasSubstr("pids = 62")) << "control";
}

// A program that calls and pauses fills no pipe while nobody reads: its end and counts are told.
TEST_P(Denials, AreCountedAndTheEndIsToldAlsoByAStalledSupervisor) {
  const std::string calling =
      "import ctypes, time\n"
      "libc = ctypes.CDLL(None)\n"
      "end = time.monotonic() + 6\n"
      "rounds = 0\n"
      "while time.monotonic() < end:\n"
      "  for number in range(600, 616): libc.syscall(number)\n"
      "  rounds += 1\n"
      "  time.sleep(0.015)\n"
      "print(rounds)\n";
  std::vector<std::string> words{"/bin/bash", "-c",
                                 "\"$0\" \"$@\" & run=$!; sleep 1; kill -STOP $run; sleep 7; "
                                 "kill -CONT $run; wait $run"};
  for (std::string& word : command({"-t", "30", "--json", "-c", calling})) {
    words.push_back(std::move(word));
  }
  const Finished finished = run_process(words, options());
  const json result = json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(result.is_object()) << finished.out << finished.err;
  EXPECT_EQ(result["status"], "ok") << finished.out;
  const int rounds = std::stoi(result["stdout"].get<std::string>());
  EXPECT_EQ(denial_of(result, "syscall_600")["count"], rounds);
  EXPECT_FALSE(denial_of(result, "syscall_600").contains("at_least"));
}

TEST_P(Denials, OfNumbersThatNobodyKnowsDoNotCrowdOutThoseThatHaveAName) {
  const std::string attempt =
      "import ctypes\n"
      "libc = ctypes.CDLL(None)\n"
      "for number in range(600, 900): libc.syscall(number)\n"
      "for number in (" +
      std::to_string(SYS_kcmp) + ", " + std::to_string(SYS_io_setup) + ", " +
      std::to_string(SYS_inotify_init1) + ", " + std::to_string(SYS_io_uring_setup) +
      "): libc.syscall(number, 0, 0, 0, 0, 0)\n";
  const json result = run_json({"-c", attempt});
  EXPECT_EQ(result["status"], "ok");
  std::vector<std::string> names;
  for (const json& denial : result["denials"]) names.push_back(denial["syscall"]);
  EXPECT_THAT(names, AllOf(Contains("kcmp"), Contains("io_setup"), Contains("inotify_init1"),
                           Contains("io_uring_setup"), Contains("syscall_600")));
  EXPECT_EQ(names.size(), 4U + 12U);
  EXPECT_THAT(note_of(result, "denied_syscall"),
              HasSubstr("288 calls of numbers that are not listed"));
  EXPECT_THAT(
      run({"--learn", "-c", attempt}).err,
      AllOf(HasSubstr("denied: 288 calls more, of numbers that are not listed"),
            HasSubstr("# inotify_init1 is not offered, because a watch of the image's files "
                      "tells what other runs open")));
}

// The parent kills a child that is inside a hostile call. Where init had not taken the call yet,
// the kernel takes it back, and there is no verdict; but what the call would have done (writing
// into memory that both share) is not done, whoever is first.
TEST_P(Denials, AHostileCallHasNoEffectAlsoWhenItsCallerIsKilledInIt) {
  const std::string number = std::to_string(SYS_process_vm_writev);
  const std::string race =
      "import ctypes, mmap, os\n"
      "libc = ctypes.CDLL(None)\n"
      "shared = mmap.mmap(-1, 4096)\n"
      "target = ctypes.addressof(ctypes.c_char.from_buffer(shared))\n"
      "word = ctypes.create_string_buffer(b'written')\n"
      "source = (ctypes.c_uint64 * 2)(ctypes.addressof(word), 7)\n"
      "target = (ctypes.c_uint64 * 2)(target, 7)\n"
      "child = os.fork()\n"
      "if child == 0:\n"
      "    libc.syscall(" +
      number +
      ", os.getpid(), source, ctypes.c_long(1), target, ctypes.c_long(1), ctypes.c_long(0))\n"
      "    os._exit(0)\n"
      "for _ in range(2000):\n"
      "    try:\n"
      "        if open(f'/proc/{child}/syscall').read().startswith('" +
      number +
      " '): break\n"
      "    except OSError: break\n"
      "os.kill(child, 9)\n"
      "os.waitpid(child, 0)\n"
      "print(shared[:7])\n";
  const std::string profile = directory().path() + "/opened.toml";
  std::ofstream(profile) << "name = \"opened\"\ndescription = \"x\"\n[seccomp]\n"
                            "allow = [\"process_vm_writev\"]\n";
  std::filesystem::permissions(profile, std::filesystem::perms{0644});
  EXPECT_EQ(run({"--profile", profile, "-c", race}).out, "b'written'\n") << "the control";
  const std::string untouched = R"(b'\x00\x00\x00\x00\x00\x00\x00')";
  for (int i = 0; i < 15; ++i) {
    const json result = run_json({"-c", race});
    if (result["status"] == "security") {
      EXPECT_EQ(denial_of(result, "process_vm_writev")["tier"], "hostile");
      EXPECT_EQ(result["stdout"], "");
    } else {
      EXPECT_EQ(result["stdout"], untouched + "\n") << result;
    }
  }
}

}  // namespace
}  // namespace sbx::test
