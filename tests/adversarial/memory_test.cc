// Memory and storage: what a program can fill is counted where it has a limit, and gone afterwards.
//
// Lines of the class that are shown elsewhere: numpy, pandas and matplotlib at 256 MiB and 64 pids
// in tests/integration/programs_test.cc; a piped core_pattern and swapping with a swap device there
// is in tests/vm (sbx-run-core-pattern, sbx-run-swap). The daemon's size under floods belongs to
// its tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <sstream>
#include <string>
#include <thread>

#include "tests/adversarial/arena.h"
#include "tests/adversarial/inside.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using std::chrono::seconds;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class Memory : public InsideTest {};
SBX_AS_BOTH_CALLERS(Memory);

constexpr std::uint64_t kMiB = 1024 * 1024;
// A static program without a libc of its own pages, its stack, the kernel's part of a process.
constexpr std::uint64_t kOverhead = 8 * kMiB;

std::uint64_t peak_of(const json& result) {
  return result["usage"]["memory_peak"].get<std::uint64_t>();
}

TEST_P(Memory, WhatIsTakenBeforeMainCounts) {
  const json result = attack({"--memory", "64M", "-t", "20"}, "early_hog");
  EXPECT_EQ(result["status"], "oom") << result.dump();
  EXPECT_EQ(result["stdout"], "");
  EXPECT_EQ(attack({"--memory", "160M", "-t", "20"}, "early_hog")["stdout"], "main\n") << "control";
}

TEST_P(Memory, AHogOfSeveralProcessesDiesAsOneAndTheSupervisorLives) {
  const json result = attack({"--memory", "64M", "-t", "20"}, "memory_hog", {"4"});
  EXPECT_EQ(result["status"], "oom") << result.dump();
  EXPECT_EQ(result["exit_code"], 137);
  EXPECT_EQ(result["stdout"], "");
  // On v1 the kernel alone kills them one by one, and the first one lives to count.
  const ThrownAway control = thrown_away("memory_hog", {"4"});
  const bool is_v1 = fs::exists("/sys/fs/cgroup/memory/cgroup.procs");
  EXPECT_EQ(control.out, is_v1 ? "4 ended\n" : "") << "control";
}

// Groups of ours in which a file says `value`.
bool some_group_says(const std::string& file, const std::string& value) {
  for (const char* const top : {"/sys/fs/cgroup/memory", "/sys/fs/cgroup"}) {
    for (const std::string& subtree : {std::string("sbx"), "sbx-" + std::to_string(kTestUser)}) {
      std::error_code none;
      for (fs::recursive_directory_iterator at(fs::path(top) / subtree, none), end; at != end;
           at.increment(none)) {
        if (read_text(at->path() / file) == value + "\n") return true;
      }
    }
  }
  return false;
}

TEST_P(Memory, ThereIsNoSwap) {
  Process run(command(inside({"--memory", "65M", "-t", "60"}, "parked", {"wait"})), options());
  ASSERT_TRUE(run.wait_for_output("up\n", seconds(20)));
  const std::string bytes = std::to_string(65 * kMiB);
  if (fs::exists("/sys/fs/cgroup/memory/cgroup.procs")) {
    EXPECT_TRUE(some_group_says("memory.limit_in_bytes", bytes)) << "control";
    if (fs::exists("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")) {
      EXPECT_TRUE(some_group_says("memory.memsw.limit_in_bytes", bytes));
    } else {
      EXPECT_THAT(read_text("/proc/meminfo"), HasSubstr("SwapTotal:             0 kB"));
    }
  } else {
    EXPECT_TRUE(some_group_says("memory.max", bytes)) << "control";
    EXPECT_TRUE(some_group_says("memory.swap.max", "0"));
  }
  run.signal(SIGTERM);
  EXPECT_EQ(run.finish().exit_code, 130);
}

// "charge KIND N KiB": N.
std::uint64_t stored_kib(const std::string& out) {
  std::istringstream words(out);
  std::string kind;
  std::uint64_t stored = 0;
  words >> kind >> stored;
  return stored;
}

std::uint64_t shared_memory_of_host() {
  std::istringstream lines(read_text("/proc/meminfo"));
  for (std::string key; lines >> key;) {
    std::uint64_t kib = 0;
    if (key == "Shmem:" && lines >> kib) return kib * 1024;
  }
  return 0;
}

TEST_P(Memory, EveryPlaceToHideItCountsAndIsEmptyAfterwards) {
  const std::uint64_t shared_before = shared_memory_of_host();
  const std::string sysv_before = read_text("/proc/sysvipc/shm");
  for (const char* const kind : {"anonymous", "tmp", "output", "work", "shm", "memfd", "posix",
                                 "sysv", "messages", "pipes", "sockets"}) {
    const json fits = attack({"--cpus", "2"}, "charge", {kind, "24"});
    EXPECT_GE(stored_kib(fits["stdout"]), 24 * 1024U)
        << kind << " (control: there is room): " << fits.dump();
    EXPECT_GE(peak_of(fits), 24 * kMiB) << kind;
    EXPECT_LE(peak_of(fits), 24 * kMiB + 2 * kOverhead) << kind;
    const json over = attack({"--cpus", "2", "--memory", "24M"}, "charge", {kind, "30"});
    EXPECT_EQ(over["status"], "oom") << kind << over.dump();
    EXPECT_LE(peak_of(over), 24 * kMiB) << kind;
  }
  EXPECT_EQ(read_text("/proc/sysvipc/shm"), sysv_before);
  // Others may use some meanwhile; we have stored 200 MiB.
  for (int i = 0; i < 100 && shared_memory_of_host() > shared_before + 64 * kMiB; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // nobody tells of freed pages
  }
  EXPECT_LE(shared_memory_of_host(), shared_before + 64 * kMiB);
}

TEST_P(Memory, DescriptorsInFlightCountWithAllTheyHold) {
  const json in_flight = attack({}, "charge", {"ancillary", "240"});
  EXPECT_EQ(in_flight["status"], "ok") << in_flight.dump();
  EXPECT_GE(peak_of(in_flight), stored_kib(in_flight["stdout"]) * 1024)
      << "what is in flight counts too";
  EXPECT_LT(stored_kib(in_flight["stdout"]), 64 * 1024U);
}

struct Exhausted {
  long taken = -1;
  int error = -1;
};

Exhausted exhausted(const std::string& out) {
  std::istringstream words(out);
  std::string kind;
  Exhausted result;
  words >> kind >> result.taken >> result.error;
  return result;
}

TEST_P(Memory, InodesEndAtTheirLimitWhateverTheyAre) {
  const std::vector<std::tuple<std::string, std::string, long>> places = {
      {"/tmp", "tmp_inodes", 16384},
      {"/output", "output_inodes", 4096},
      {"/work", "work_inodes", 4096},
      {"/dev/shm", "shm_inodes", 1024}};
  for (const auto& [place, limit, inodes] : places) {
    for (const char* const kind : {"files", "symlinks", "directories"}) {
      const json result = attack({"--cpus", "2", "-t", "60"}, "exhaust", {kind, place});
      const Exhausted got = exhausted(result["stdout"]);
      EXPECT_EQ(got.taken, inodes - 1) << kind << " in " << place << ": " << result.dump();
      EXPECT_EQ(got.error, ENOSPC);
      EXPECT_THAT(result["limits_hit"].get<std::vector<std::string>>(), Contains(limit));
      EXPECT_LE(result["refused"].size(), 129U);
    }
  }
  const std::string profile =
      directory().write("more.toml", profile_text("shm_inodes = 2000\nmemory = \"512M\"\n"));
  const json more = attack({"--profile", profile}, "exhaust", {"files", "/dev/shm"});
  EXPECT_EQ(exhausted(more["stdout"]).taken, 1999) << "control: it is the limit that ends it";
}

// What is no file: descriptors, locked memory, timers, sockets to the kernel.
TEST_P(Memory, HandlesEndAtTheirLimits) {
  const Exhausted descriptors = exhausted(attack({}, "exhaust", {"descriptors"})["stdout"]);
  EXPECT_EQ(descriptors.taken, 253);
  EXPECT_EQ(descriptors.error, EMFILE);
  const Exhausted locked = exhausted(attack({}, "exhaust", {"locked"})["stdout"]);
  EXPECT_LE(locked.taken, 16);
  EXPECT_EQ(locked.error, ENOMEM);
  const json netlink = attack({}, "exhaust", {"netlink"});
  EXPECT_EQ(exhausted(netlink["stdout"]).taken, 0);
  EXPECT_EQ(exhausted(netlink["stdout"]).error, EAFNOSUPPORT);
  EXPECT_EQ(netlink["denials"][0]["syscall"], "socket");
  // The kernel counts these for whoever started the run as well; he must have some left.
  const Exhausted timers = exhausted(attack({}, "exhaust", {"timers"})["stdout"]);
  EXPECT_LE(timers.taken, 256);
  EXPECT_EQ(timers.error, EAGAIN);
  const json watches = attack({}, "exhaust", {"watches"});
  EXPECT_EQ(exhausted(watches["stdout"]).taken, 0);
  EXPECT_EQ(exhausted(watches["stdout"]).error, ENOSYS);
  EXPECT_EQ(watches["denials"][0]["syscall"], "inotify_init1");
  // A profile may allow them; then the user namespace's own limit holds.
  const std::string watching = directory().write(
      "watching.toml",
      "name = \"watching\"\ndescription = \"watches\"\n[seccomp]\nallow = [\"@inotify\"]\n");
  const Exhausted allowed =
      exhausted(attack({"--profile", watching}, "exhaust", {"watches"})["stdout"]);
  EXPECT_EQ(allowed.taken, 4);
  EXPECT_EQ(allowed.error, EMFILE);
  EXPECT_GT(exhausted(thrown_away("exhaust", {"netlink"}).out).taken, 100) << "control";
}

// The kernel bounds them nowhere, and looks through all of a file's whenever anybody closes it.
TEST_P(Memory, FileLocksEndAtTheirLimit) {
  constexpr long kHeld = 4096;
  for (const char* const kind : {"record_locks", "thread_without_leader"}) {
    const json result = attack({"--memory", "16M", "-t", "60"}, "exhaust", {kind, "/tmp"});
    const Exhausted got = exhausted(result["stdout"]);
    EXPECT_LE(got.taken, kHeld) << kind << result.dump();
    EXPECT_GE(got.taken, kHeld / 4 * 3) << kind << result.dump();
    EXPECT_EQ(got.error, ENOLCK) << kind;
    EXPECT_EQ(result["denials"][0]["syscall"], "fcntl") << kind;
    EXPECT_THAT(note_codes(result), Contains("record_locks")) << kind;
  }
  const json again = attack({"-t", "60"}, "exhaust", {"lock_after_closing", "/tmp", "1"});
  EXPECT_EQ(again["stdout"], "lock_after_closing 1 0\n");
  const json flocks = attack({"-t", "60"}, "exhaust", {"flocks", "/tmp"});
  EXPECT_EQ(exhausted(flocks["stdout"]).taken, kHeld / 4 * 3) << flocks.dump();
  EXPECT_EQ(exhausted(flocks["stdout"]).error, ENOLCK);
  EXPECT_THAT(note_codes(flocks), Contains("record_locks"));
  // A profile that denies the call decides.
  const std::string without_locks = directory().write(
      "without_locks.toml",
      "name = \"w\"\ndescription = \"w\"\n[seccomp]\ndeny = { fcntl = \"EACCES\" }\n");
  const Exhausted none = exhausted(
      attack({"--profile", without_locks}, "exhaust", {"record_locks", "/tmp"})["stdout"]);
  EXPECT_EQ(none.taken, 0);
  EXPECT_EQ(none.error, EACCES);
  const std::string all_locks =
      directory().write("all_locks.toml", profile_text("", "allow = [\"fcntl\"]\n"));
  const json more = attack({"--profile", all_locks}, "exhaust", {"record_locks", "/tmp", "9000"});
  EXPECT_EQ(exhausted(more["stdout"]).taken, 9000) << "control: it is the limit that ends it";
}

TEST_P(Memory, FileLocksThatAreLetGoOfHaveNoEnd) {
  constexpr long kMany = 50'000;
  for (const char* const kind : {"record_cycles", "flock_cycles"}) {
    const json result =
        attack({"--memory", "16M", "-t", "120"}, "exhaust", {kind, "/tmp", std::to_string(kMany)});
    EXPECT_EQ(exhausted(result["stdout"]).taken, kMany) << kind << result.dump();
    EXPECT_EQ(result["denials"].size(), 0U) << kind;
  }
}

// Init could not see them in /proc/locks.
TEST_P(Memory, NoLockHidesFromItsLimit) {
  const std::string open =
      directory().write("open.toml", profile_text("", "allow = [\"fcntl\", \"clone\"]\n"));
  for (const char* const kind : {"ofd_locks", "table_sharers"}) {
    const std::vector<std::string> words{kind, "/tmp", "10"};
    const Exhausted got = exhausted(attack({}, "exhaust", words)["stdout"]);
    EXPECT_EQ(got.taken, 0) << kind;
    EXPECT_EQ(got.error, EINVAL) << kind;
    const json control = attack({"--profile", open}, "exhaust", words);
    EXPECT_EQ(exhausted(control["stdout"]).taken, 10) << kind << " (control)";
  }
}

class WithoutALayer : public AdversarialTest {};

TEST_F(WithoutALayer, ThereIsMoreOfEachHandle) {  // control of the above
  constexpr long kMost = 300;
  for (const char* const kind : {"descriptors", "locked", "timers"}) {
    const auto more = arena().run(Arena::program("exhaust", {kind, ".", std::to_string(kMost)}),
                                  without(policy::Layer::kRlimits));
    ASSERT_TRUE(more) << to_string(more.error());
    EXPECT_EQ(exhausted(more->stdout_bytes).taken, kMost) << kind << more->stdout_bytes;
  }
  const auto watches = arena().run(Arena::program("exhaust", {"watches", ".", "5"}),
                                   without(policy::layer_bit(policy::Layer::kUserNamespace) |
                                           policy::layer_bit(policy::Layer::kSeccomp)));
  ASSERT_TRUE(watches) << to_string(watches.error());
  EXPECT_EQ(exhausted(watches->stdout_bytes).taken, 5);
}

// A queue has no path, so where Landlock holds none can be opened. Behind it stands
// RLIMIT_MSGQUEUE, and what is queued counts.
TEST_F(WithoutALayer, MessageQueuesHaveALimitAndCount) {
  constexpr auto kLandlock = policy::layer_bit(policy::Layer::kLandlock);
  constexpr auto kRlimits = policy::layer_bit(policy::Layer::kRlimits);
  const auto store = [&](const char* mebibytes, policy::LayerMask layers) {
    auto outcome = arena().run(Arena::program("charge", {"mqueue", mebibytes}), without(layers));
    EXPECT_TRUE(outcome) << to_string(outcome.error());
    return outcome ? *std::move(outcome) : collect::Outcome{};
  };
  EXPECT_LE(stored_kib(store("24", 0).stdout_bytes), 96U);
  EXPECT_EQ(stored_kib(store("24", kLandlock).stdout_bytes), 80U) << "one queue of ten messages";
  const collect::Outcome more = store("24", kLandlock | kRlimits);
  EXPECT_GT(stored_kib(more.stdout_bytes), 400U) << "control: more can be stored";
  const collect::Outcome nothing = store("0", kLandlock | kRlimits);
  ASSERT_TRUE(more.usage && nothing.usage);
  EXPECT_GE(more.usage->memory_peak - nothing.usage->memory_peak,
            stored_kib(more.stdout_bytes) * 1024 / 2);
}

// No group is charged for an option's copy in the kernel, so none that is kept may be set.
TEST_F(WithoutALayer, SocketOptionsKeepNothingThatDoesNotCount) {
  const auto store = [&](policy::LayerMask layers) {
    const auto outcome = arena().run(Arena::program("charge", {"headers", "24"}), without(layers));
    EXPECT_TRUE(outcome) << to_string(outcome.error());
    return outcome ? stored_kib(outcome->stdout_bytes) : 0;
  };
  EXPECT_EQ(store(0), 0U);
  EXPECT_GT(store(policy::layer_bit(policy::Layer::kSeccomp)), 900U)
      << "control: as much as there are descriptors";
}

// Nor is any for the list of rights that is kept with a file.
TEST_F(WithoutALayer, FilesKeepNoAccessListsThatDoNotCount) {
  constexpr std::uint64_t kLists = 12 * 1024;  // KiB
  const auto store = [&](policy::LayerMask layers) {
    auto outcome = arena().run(Arena::program("charge", {"attributes", "12"}), without(layers));
    EXPECT_TRUE(outcome) << to_string(outcome.error());
    return outcome ? *std::move(outcome) : collect::Outcome{};
  };
  EXPECT_EQ(stored_kib(store(0).stdout_bytes), 0U);
  const collect::Outcome kept = store(policy::layer_bit(policy::Layer::kSeccomp));
  EXPECT_GE(stored_kib(kept.stdout_bytes), kLists) << "control: 64 KiB a file";
  ASSERT_TRUE(kept.usage);
  EXPECT_LT(kept.usage->memory_peak, kLists * 1024 / 2) << "control: and nobody is charged";
}

TEST_P(Memory, ReadingMoreThanTheLimitIsNoOffence) {
  // The page cache of what was read counts, and makes room when there is need.
  const json result =
      attack({"--memory", "24M", "--cpus", "2", "-t", "60"}, "exhaust", {"cache", "/usr/bin"});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_GE(exhausted(result["stdout"]).taken, 24) << "control: it was more than the limit";
  EXPECT_LE(peak_of(result), 24 * kMiB);
}

TEST_P(Memory, ACrashLeavesNoCore) {
  const std::string crash = "ulimit -c unlimited; ulimit -c 0; cd /output; kill -SEGV $$";
  const json result = run_json({"-l", "bash", "-c", crash});
  EXPECT_EQ(result["status"], "signal") << result.dump();
  EXPECT_TRUE(result["files"].empty()) << result.dump();
  EXPECT_TRUE(result["refused"].empty()) << result.dump();
  EXPECT_THAT(result["stderr"].get<std::string>(), HasSubstr("cannot modify limit"));
  const std::string pattern = read_text("/proc/sys/kernel/core_pattern");
  // The control of a handler or another place is a guest's (sbx-run-core-pattern).
  if (pattern.starts_with("|") || pattern.starts_with("/")) return;
  const std::string place = directory().path() + "/cores";
  ASSERT_TRUE(fs::create_directory(place));
  ASSERT_EQ(::chmod(place.c_str(), 0777), 0);
  ProcessOptions there = options();
  there.directory = place;
  (void)run_process({"/bin/bash", "-c", "ulimit -c unlimited; kill -SEGV $$"}, there);
  EXPECT_FALSE(fs::is_empty(place)) << "control: outside there is a core";
}

class Floods : public Memory {
 protected:
  // Of sbx-run, when it has nothing to pass on.
  [[nodiscard]] long quiet_size() const {
    return run(inside({}, "flood", {"line", "1"})).max_rss_kib;
  }
  static constexpr long kSlackKib = 1024;
};
SBX_AS_BOTH_CALLERS(Floods);

TEST_P(Floods, OneLineOfAGibibyteIsCountedNotKept) {
  constexpr std::uint64_t kGiB = 1024 * kMiB;
  const Finished finished =
      run(inside({"--json", "--cpus", "2", "-t", "100"}, "flood", {"line", std::to_string(kGiB)}));
  const json result = json::parse(finished.out, nullptr, false);
  ASSERT_TRUE(result.is_object()) << finished.err;
  EXPECT_EQ(result["status"], "ok");
  EXPECT_EQ(result["stdout_dropped"].get<std::uint64_t>(), kGiB - 64 * 1024);
  EXPECT_LE(finished.max_rss_kib, quiet_size() + kSlackKib);
}

TEST_P(Floods, NulsAreBytesLikeOthers) {
  const Finished finished =
      run(inside({"--cpus", "2", "-t", "100"}, "flood", {"nul", std::to_string(256 * kMiB)}));
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, std::string(64 * 1024, '\0'));
  EXPECT_THAT(finished.err, HasSubstr(std::to_string(256 * kMiB - 64 * 1024)));
  EXPECT_LE(finished.max_rss_kib, quiet_size() + kSlackKib);
  const Finished control = outside("flood", {"nul", std::to_string(16 * kMiB)});
  EXPECT_EQ(control.out.size(), 16 * kMiB) << "control: outside all of it arrives";
}

TEST_P(Floods, AReaderThatDoesNotReadCostsNothing) {
  Process process(
      command(inside({"--cpus", "2", "-t", "2"}, "flood", {"line", std::to_string(1ULL << 40)})),
      options());
  // Read only now, long after the pipe was full: the run has to be over by then.
  const Finished finished = process.finish(seconds(30));
  EXPECT_EQ(finished.exit_code, 124);
  EXPECT_LT(finished.seconds, 25);
  EXPECT_LE(finished.max_rss_kib, quiet_size() + kSlackKib);
}

}  // namespace
}  // namespace sbx::test
