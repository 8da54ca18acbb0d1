#include "runtime/collect/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "runtime/base/escape.h"
#include "runtime/collect/stderr_text.h"
#include "runtime/policy/seccomp.h"

namespace sbx::collect {
namespace {

using supervise::Ending;

constexpr std::string_view kKernel = "kernel";
constexpr std::string_view kProgram = "program";
constexpr std::size_t kMaxModuleName = 100;
// Before the program began: what is missing then is Python's own, and no package would mend it.
constexpr std::string_view kPythonNotUp = "Fatal Python error: init";
constexpr std::size_t kMaxNamesShown = 40;
// Of the memory limit, in percent: a program that aborts with a peak above it most likely had no
// more.
constexpr std::uint64_t kNearLimit = 90;

class Notes {
 public:
  Notes(const Ending& ending, const NoteContext& context) : ending_(ending), context_(context) {}

  std::vector<Note> take() {
    add_endings();
    add_abort();
    add_caller_limits();
    add_pids();
    add_storage();
    add_output();
    add_denials();
    add_network();
    add_record_locks();
    add_background();
    add_program_text();
    add_silence();
    return std::move(notes_);
  }

 private:
  void add(std::string_view code, std::string text, std::string_view source = kKernel) {
    notes_.push_back({std::string(code), std::move(text), std::string(source)});
  }

  void add_endings();
  void add_abort();
  void add_caller_limits();
  void add_pids();
  void add_storage();
  void add_output();
  void add_cut(std::string_view stream, const supervise::Captured& captured, std::uint64_t limit);
  void add_denials();
  void add_network();
  void add_record_locks();
  void add_background();
  void add_program_text();
  void add_missing_module(const std::string& text);
  void add_silence();
  // Init lives to tell of the payload's end only where we did not kill it; others may have.
  [[nodiscard]] bool ended_before_us() const { return ending_.payload_wait_status.has_value(); }
  [[nodiscard]] std::string_view own_end() const {
    const int status = ending_.payload_wait_status.value_or(0);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    return killed ? "was killed by another, but had" : "ended by itself, but had";
  }
  // What is known of the CPU time: nothing without a cgroup.
  [[nodiscard]] std::string cpu_text() const {
    if (!ending_.usage) return {};
    return fmt::format(" (it had used {:.1f} s of CPU, at most {:g} CPUs)",
                       static_cast<double>(ending_.usage->cpu_usec) / 1e6,
                       static_cast<double>(context_.limits.cpus_milli) / 1000);
  }

  const Ending& ending_;
  const NoteContext& context_;
  std::vector<Note> notes_;
};

std::string seconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

std::string plural(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::uint64_t storage_size(const policy::Limits& limits, std::string_view name) {
  if (name == "tmp") return limits.tmp;
  if (name == "output") return limits.output;
  if (name == "work") return limits.work;
  return limits.shm;
}

std::uint64_t storage_inodes(const policy::Limits& limits, std::string_view name) {
  if (name == "tmp") return limits.tmp_inodes;
  if (name == "output") return limits.output_inodes;
  if (name == "work") return limits.work_inodes;
  return limits.shm_inodes;
}

std::string storage_path(const std::string& name) {
  return name == "shm" ? "/dev/shm" : "/" + name;
}

void Notes::add_endings() {
  const policy::Limits& limits = context_.limits;
  if (ending_.usage && ending_.usage->oom_kills >= 1) {
    add("memory",
        fmt::format("The program was killed (SIGKILL) because it exceeded the {} memory limit, in "
                    "which files in /tmp, /work, /input, /output and /dev/shm count too; process "
                    "less at a time or stream it.",
                    policy::size_text(limits.memory)));
  }
  if (ending_.wall_expired) {
    add("wall",
        fmt::format("The program was killed because it was still running after the wall time limit "
                    "of {}{}; do less in one run or allow more time.",
                    seconds_text(limits.wall_seconds), cpu_text()));
  }
  if (ending_.cpu_expired) {
    const auto limit = limits.cpu_seconds.value_or(std::chrono::milliseconds{0});
    add("cpu_time",
        fmt::format("The program {} its CPU time limit of {}{}; use a cheaper algorithm, less "
                    "data, or allow more CPU time.",
                    ended_before_us() ? fmt::format("{} used more than", own_end())
                                      : "was killed because it used up",
                    seconds_text(limit), ended_before_us() ? cpu_text() : std::string()));
  }
}

bool has_note(const std::vector<Note>& notes, std::string_view code) {
  return std::any_of(notes.begin(), notes.end(), [&](const Note& n) { return n.code == code; });
}

// A program that keeps to a heap of its own size (Node: --max-old-space-size, a part of the memory
// limit) ends itself before the kernel would: the abort is by abort(3), or a shell's word for it.
void Notes::add_abort() {
  const int status = ending_.payload_wait_status.value_or(0);
  const bool aborted =
      (context_.status == Status::kSignal && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) ||
      (context_.status == Status::kExit && WIFEXITED(status) &&
       WEXITSTATUS(status) == 128 + SIGABRT);
  if (!aborted || has_note(notes_, "memory")) return;
  const std::uint64_t limit = context_.limits.memory;
  const std::uint64_t peak = ending_.usage ? ending_.usage->memory_peak : 0;
  const std::string used =
      peak == 0 ? std::string() : fmt::format(", of which it had used {}M", peak / policy::kMiB);
  const char* const advice = "process less at a time, stream it, or allow more memory";
  if (searched_text(ending_.err).find("heap out of memory") != std::string::npos) {
    add("memory",
        fmt::format("The program reported that its heap was out of memory and aborted; its heap is "
                    "a part of the {} memory limit{}; {}.",
                    policy::size_text(limit), used, advice),
        kProgram);
  } else if (peak >= limit / 100 * kNearLimit) {
    add("memory",
        fmt::format("The program aborted; the run had used up to {}M of the {} memory limit, which "
                    "counts the files that it read too. Where its own memory ran out: {}.",
                    peak / policy::kMiB, policy::size_text(limit), advice));
  }
}

// What a run was not promised but has all the same: nothing counts how often it is met, so it is
// told each time, by a code that does not say that it was.
void Notes::add_caller_limits() {
  const int status = ending_.payload_wait_status.value_or(0);
  const bool cpu_may_have_ended = context_.status == Status::kSignal && !ending_.usage &&
                                  WIFSIGNALED(status) &&
                                  (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGXCPU);
  for (const policy::CallerLimit& limit : context_.caller_limits) {
    const bool is_cpu = limit.name == "cpu";
    const std::string held =
        fmt::format("the hard limit {} (ulimit {}) of whoever started the sandbox",
                    policy::caller_limit_text(limit), limit.ulimit);
    if (is_cpu && context_.status == Status::kCpuTime && !ending_.cpu_expired) {
      add("cpu_time",
          fmt::format("The program was killed because it met {}; allow more there.", held));
      continue;
    }
    const std::string undercut =
        limit.promised.empty() ? std::string("less than usual")
                               : fmt::format("tighter than the run's {} of {}", limit.promised,
                                             policy::limit_text(context_.limits, limit.promised));
    add("caller_limit",
        fmt::format(
            "The program {} {}, which is {}; allow more there.",
            is_cpu && cpu_may_have_ended ? "may have been killed because it met" : "had to keep to",
            held, undercut));
  }
}

void Notes::add_pids() {
  if (!ending_.usage || ending_.usage->pids_refused == 0) return;
  add("pids",
      fmt::format("{} refused because of the limit of {} processes and threads; start fewer "
                  "workers.",
                  ending_.usage->pids_refused == 1 ? std::string("One new process or thread was")
                                                   : fmt::format("{} new processes or threads were",
                                                                 ending_.usage->pids_refused),
                  context_.limits.pids));
}

void Notes::add_storage() {
  // The kernel sends SIGXFSZ, but so can a program to itself: said as what the program shows.
  const int status = ending_.payload_wait_status.value_or(0);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) {
    add("disk_full",
        fmt::format(
            "The program was ended by SIGXFSZ: a file grew over the fsize limit of {}; write "
            "smaller files or raise fsize in a profile.",
            policy::size_text(context_.limits.fsize)),
        kProgram);
  }
  for (const supervise::StorageState& storage : ending_.storage) {
    const std::string path = storage_path(storage.limit);
    if (storage.free_bytes == 0) {
      add("disk_full",
          fmt::format("{} was full when the program ended (limit {}); write less there "
                      "or delete what is no longer needed.",
                      path, policy::size_text(storage_size(context_.limits, storage.limit))));
    }
    if (storage.free_inodes == 0) {
      add("inodes_full",
          fmt::format("{} had no room for another file or directory when the program ended (limit "
                      "{}_inodes is {}); make fewer, larger files.",
                      path, storage.limit, storage_inodes(context_.limits, storage.limit)));
    }
  }
}

void Notes::add_cut(std::string_view stream, const supervise::Captured& captured,
                    std::uint64_t limit) {
  if (captured.dropped == 0) return;
  add("output_cut",
      fmt::format("{} was cut: {} of {} bytes were dropped from its middle ({}_bytes is {}); print "
                  "less, or write it to a file in /output.",
                  stream, captured.dropped, captured.total, stream, policy::size_text(limit)));
}

void Notes::add_output() {
  const policy::Limits& limits = context_.limits;
  if (ending_.output_exceeded) {
    const bool is_stderr = ending_.out.total <= limits.stdout_bytes;
    add("output_cut",
        fmt::format("The program {} more than {} to {} (output_kills is on); print less, or write "
                    "it to a file in /output.",
                    ended_before_us() ? fmt::format("{} written", own_end())
                                      : "was killed because it wrote",
                    policy::size_text(is_stderr ? limits.stderr_bytes : limits.stdout_bytes),
                    is_stderr ? "stderr" : "stdout"));
  }
  add_cut("stdout", ending_.out, limits.stdout_bytes);
  add_cut("stderr", ending_.err, limits.stderr_bytes);
}

void Notes::add_denials() {
  if (ending_.hostile) {
    add("denied_syscall",
        fmt::format("The run was ended because the program called {}, which no program needs here "
                    "and which could attack the sandbox; remove that call.",
                    policy::syscall_name(ending_.hostile->arch, ending_.hostile->nr)));
  }
  if (ending_.denied.empty()) return;
  std::vector<std::string> names;
  for (const supervise::SeenCall& call : ending_.denied) {
    if (names.size() == kMaxNamesShown) break;
    names.push_back(fmt::format("{} ({}{}x)", policy::syscall_name(call.arch, call.nr),
                                ending_.denied_counts_are_final ? "" : "at least ", call.count));
  }
  if (names.size() < ending_.denied.size()) {
    names.push_back(fmt::format("{} more", ending_.denied.size() - names.size()));
  }
  if (ending_.denied_unlisted > 0) {
    names.push_back(
        fmt::format("{} of numbers that are not listed", plural(ending_.denied_unlisted, "call")));
  }
  add("denied_syscall",
      fmt::format("The sandbox refused system calls and the program was told so by an errno: {}; "
                  "if it failed because of that, do it another way or allow them in a profile.",
                  fmt::join(names, ", ")));
}

void Notes::add_record_locks() {
  if (!ending_.lock_limit) return;
  add("record_locks",
      fmt::format(
          "The program was refused file locks (fcntl or flock): a run may hold {} at once, "
          "and the processes that its first one started may not call flock without end; "
          "close some of those files (at the limit, letting go by fcntl is refused too), or "
          "lock fewer or larger parts.",
          *ending_.lock_limit));
}

void Notes::add_network() {
  if (ending_.packets_without_route == 0 || context_.limits.network != policy::NetworkMode::kNone) {
    return;
  }
  add("network_attempt",
      fmt::format("The program tried to reach the network ({} found no route), but the sandbox has "
                  "none: no internet, no DNS and no loopback; pass what it needs as input files.",
                  plural(ending_.packets_without_route, "packet")));
}

void Notes::add_background() {
  if (!ending_.background_killed) return;
  add("background_killed",
      "Processes that the program had started were still running when it ended and were killed; "
      "wait for them before it exits.");
}

void Notes::add_missing_module(const std::string& text) {
  if (context_.missing_module_pattern.empty()) return;
  if (text.find(kPythonNotUp) != std::string::npos) return;
  auto module = last_match(context_.missing_module_pattern, text);
  if (!module || module->empty()) return;
  if (module->size() > kMaxModuleName) module->resize(kMaxModuleName);
  const std::vector<std::string>& packages = context_.packages;
  const std::size_t shown = std::min(packages.size(), kMaxNamesShown);
  std::string available = "beyond the standard library nothing is installed";
  if (shown > 0) {
    available = fmt::format(
        "available are the standard library and {}{}",
        fmt::join(packages.begin(), packages.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        shown < packages.size() ? fmt::format(" and {} more", packages.size() - shown) : "");
  }
  add("missing_module",
      fmt::format("The module {} is not installed and cannot be, as there is no network; {}.",
                  escape_for_terminal(*module), available),
      kProgram);
}

// What the program itself said. A disk that was full earlier and the limit on open files leave no
// counter behind, so its own words are all there is.
void Notes::add_program_text() {
  if (context_.status != Status::kExit && context_.status != Status::kSignal) return;
  const std::string text = searched_text(ending_.err);
  add_missing_module(text);
  if (text.find("No space left on device") != std::string::npos && !has_note(notes_, "disk_full") &&
      !has_note(notes_, "inodes_full")) {
    add("disk_full",
        fmt::format(
            "The program reported that no space was left on a device; the limits are tmp {}, "
            "work {}, output {} and shm {}.",
            policy::size_text(context_.limits.tmp), policy::size_text(context_.limits.work),
            policy::size_text(context_.limits.output), policy::size_text(context_.limits.shm)),
        kProgram);
  }
  if (text.find("Too many open files") != std::string::npos) {
    add("nofile",
        fmt::format("The program reported too many open files; the limit (nofile) is {}, so close "
                    "files as soon as they are done.",
                    context_.limits.nofile),
        kProgram);
  }
}

void Notes::add_silence() {
  if (context_.status != Status::kOk || context_.has_files || ending_.out.total > 0 ||
      ending_.err.total > 0) {
    return;
  }
  add("no_output",
      "The program ran and exited with 0 but printed nothing and left no file in /output; print "
      "the result or write it there.");
}

}  // namespace

std::vector<Note> make_notes(const Ending& ending, const NoteContext& context) {
  return Notes(ending, context).take();
}

}  // namespace sbx::collect
