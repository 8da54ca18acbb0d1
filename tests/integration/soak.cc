#include "tests/integration/soak.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

namespace sbx::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxComplaints = 20;
constexpr int kLatestKill = 40;  // milliseconds after the start: most runs are over by then
constexpr std::chrono::seconds kPatience{90};

enum class FilesOut { kNo, kYes };

// What is typed, and how it must end.
struct Kind {
  std::string name;
  std::vector<std::string> words;
  std::string status;
  int exit_code;
  FilesOut files = FilesOut::kNo;
};

std::vector<std::string> shell(const std::string& script, std::vector<std::string> flags = {}) {
  flags.insert(flags.end(), {"--", "/bin/sh", "-c", script});
  return flags;
}

std::vector<std::string> program(const std::string& name, std::vector<std::string> flags) {
  flags.insert(flags.end(),
               {"--input", std::string(SBX_TEST_PROGRAMS) + "/" + name, "--", "/input/" + name});
  return flags;
}

// Cheap ones: an interpreter costs more than everything else in a run.
std::vector<Kind> all_kinds() {
  return {
      {"ok", {"--", "/bin/true"}, "ok", 0},
      {"exit", shell("exit 3"), "exit", 3},
      {"signal", shell("kill -TERM $$"), "signal", 143},
      {"not_found", {"--", "/nowhere"}, "exit", 127},
      {"language", {"-l", "bash", "-c", "echo $((6 * 7))"}, "ok", 0},
      {"input",
       {"--input", std::string(SBX_TEST_PROGRAMS) + "/daemons:x", "--", "/bin/cat", "/input/x"},
       "ok",
       0},
      {"files_out", shell("cd /output && mkdir d && echo x > d/x && ln -s / l && mkfifo p"), "ok",
       0, FilesOut::kYes},
      {"files_refused", shell("cd /output && for i in 1 2 3 4 5 6 7 8 9; do ln -s / $i; done"),
       "ok", 0},
      {"output_flood", shell("head -c 3000000 /dev/zero"), "ok", 0},
      {"output_kill", shell("exec cat /dev/zero", {"--profile", "judge"}), "output", 123},
      {"background", shell("sleep 600 & setsid sleep 600 & exit 0"), "ok", 0},
      {"daemons", program("daemons", {"-t", "20"}), "ok", 0},
      {"timeout", {"-t", "0.2", "--", "/bin/sleep", "600"}, "timeout", 124},
      {"cpu_time", shell("while :; do :; done", {"--cpu-time", "0.1"}), "cpu_time", 124},
      {"unkillable", program("unkillable", {"-t", "0.3"}), "timeout", 124},
      {"fork_bomb", program("fork_bomb", {"-t", "0.3"}), "timeout", 124},
      {"pids", shell("for i in 1 2 3 4 5; do sleep 9 & done", {"--pids", "4"}), "exit", 2},
      {"oom", program("memory_hog", {"--memory", "16M", "-t", "20"}), "oom", 137},
      {"disk_full", shell("head -c 70000000 /dev/zero > /tmp/x"), "exit", 153},
      {"denied", shell("/usr/sbin/chroot / true"), "exit", 125},
      {"security", {"--", "/usr/bin/unshare", "--mount", "/bin/true"}, "security", 159},
  };
}

bool ends_within(pid_t pid, std::chrono::milliseconds time) {
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  pollfd end{pidfd.get(), POLLIN, 0};
  return ::poll(&end, 1, static_cast<int>(time.count())) == 1;
}

// One run that is under way.
struct Running {
  std::unique_ptr<Process> process;
  std::size_t kind = 0;
  std::string output;  // the directory of --output-dir, or empty
};

class Soak {
 public:
  Soak(const StartRun& start, const SoakOptions& options)
      : start_(start), options_(options), random_(options.seed), kinds_(all_kinds()) {
    for (const Kind& kind : kinds_) result_.kinds.push_back({.name = kind.name});
  }

  SoakResult run(const Progress& progress) {
    const Clock::time_point started = Clock::now();
    while (result_.finished + result_.killed + static_cast<int>(running_.size()) < options_.runs) {
      if (is_turn_of_a_kill()) {
        kill_one();
      } else {
        if (running_.size() == options_.at_once) settle();
        running_.push_back(begin());
      }
      if (progress) progress(result_.finished + result_.killed);
    }
    while (!running_.empty()) settle();
    result_.seconds = std::chrono::duration<double>(Clock::now() - started).count();
    return std::move(result_);
  }

 private:
  // Spread evenly over what is done.
  [[nodiscard]] bool is_turn_of_a_kill() const {
    const std::int64_t begun =
        result_.finished + result_.killed + static_cast<std::int64_t>(running_.size());
    return begun * options_.killed >= std::int64_t{result_.killed} * options_.runs &&
           result_.killed < options_.killed;
  }

  Running begin() {
    std::uniform_int_distribution<std::size_t> any(0, kinds_.size() - 1);
    Running run{nullptr, any(random_), {}};
    const Kind& kind = kinds_[run.kind];
    std::vector<std::string> words{"--json"};
    if (kind.files == FilesOut::kYes) {
      run.output = options_.directory + "/" + std::to_string(++directories_);
      words.insert(words.end(), {"--output-dir", run.output});
    }
    words.insert(words.end(), kind.words.begin(), kind.words.end());
    run.process = start_(words);
    return run;
  }

  // At any moment: each hits another step of the run. One that was over already is judged instead.
  void kill_one() {
    std::uniform_int_distribution<int> moment(0, kLatestKill);
    Running run = begin();
    if (ends_within(run.process->pid(), std::chrono::milliseconds(moment(random_)))) {
      judge(std::move(run));
      return;
    }
    run.process->signal(SIGKILL);
    const Finished finished = run.process->finish(kPatience);
    if (finished.signal == SIGKILL) {
      ++result_.killed;
      remove(run);
    } else {
      judge(run, finished);
    }
  }

  void settle() {
    Running run = std::move(running_.front());
    running_.pop_front();
    judge(std::move(run));
  }

  void judge(Running run) {
    const Finished finished = run.process->finish(kPatience);
    judge(run, finished);
  }

  void judge(const Running& run, const Finished& finished) {
    const Kind& kind = kinds_[run.kind];
    SoakKind& tally = result_.kinds[run.kind];
    ++result_.finished;
    ++tally.runs;
    tally.seconds += finished.seconds;
    if (const std::string why = complaint(kind, run, finished); !why.empty()) {
      ++tally.unexpected;
      if (result_.complaints.size() < kMaxComplaints) {
        result_.complaints.push_back(kind.name + ": " + why);
      }
    }
    remove(run);
  }

  static std::string complaint(const Kind& kind, const Running& run, const Finished& finished) {
    const nlohmann::json json = nlohmann::json::parse(finished.out, nullptr, false);
    if (!json.is_object()) return "no result: " + finished.err;
    const bool as_expected =
        json.value("status", "") == kind.status && finished.exit_code == kind.exit_code;
    if (!as_expected) return json.dump();
    const bool saved = run.output.empty() || read_text(run.output + "/d/x") == "x\n";
    return saved ? std::string() : "its file did not come out: " + json.dump();
  }

  static void remove(const Running& run) {
    std::error_code ignored;  // what is left fails the count of files
    if (!run.output.empty()) std::filesystem::remove_all(run.output, ignored);
  }

  const StartRun& start_;
  const SoakOptions& options_;
  std::mt19937 random_;
  std::vector<Kind> kinds_;
  std::deque<Running> running_;
  int directories_ = 0;
  SoakResult result_;
};

}  // namespace

int SoakResult::unexpected() const {
  int all = 0;
  for (const SoakKind& kind : kinds) all += kind.unexpected;
  return all;
}

SoakResult soak(const StartRun& start, const SoakOptions& options, const Progress& progress) {
  return Soak(start, options).run(progress);
}

}  // namespace sbx::test
