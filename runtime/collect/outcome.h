// Outcome: what a run came to, in the names of the JSON result. Stage: collect. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/policy/layers.h"
#include "runtime/policy/limits.h"

namespace sbx::collect {

// In order of precedence where several hold, the strongest first.
enum class Status {
  kSandboxError,
  kCancelled,
  kSecurity,
  kOom,
  kTimeout,
  kCpuTime,
  kOutput,
  kSignal,
  kExit,
  kOk,
};
[[nodiscard]] std::string_view status_name(Status status);

struct CollectedFile {
  std::string path{};      // relative to /output; bytes that are not UTF-8 as \xNN (names.h)
  std::string raw_path{};  // the same as the kernel gave it; for saving, never for showing
  std::uint64_t size = 0;
  std::string sha256{};  // lower-case hex
  std::string media_type{};
  std::optional<std::string> content{};  // with collect = content
  std::string saved_as{};                // where --output-dir put it, else empty
  std::string note{};  // set on the second of two names that are equal after NFC; in JSON only then
};

struct RefusedEntry {
  std::string path;
  std::string reason;
};

// What became of a session's workspace.
struct SavedWorkspace {
  bool saved = false;                   // it is now what the run left
  std::string reason{};                 // why it is not
  std::uint64_t size = 0;               // bytes, in whole pages, as it is now
  std::uint64_t inodes = 0;             // the top directory is one
  std::vector<RefusedEntry> refused{};  // entries of /work that are not kept
};

struct Denial {
  std::string syscall;
  std::string tier;  // "deny" or "hostile"
  std::uint64_t count = 0;
  bool at_least = false;  // the run was killed before the last of them were told
};

struct Note {
  std::string code;    // memory cpu_time wall pids disk_full inodes_full output_cut …
  std::string text;    // one sentence
  std::string source;  // "kernel" or "program"
};

struct ErrorInfo {
  std::string code{};  // "invalid_request", "host", "internal"
  std::string step{};
  int sys_errno = 0;
  std::string detail{};
  std::string fix{};
};

struct ResourceUsage {
  double cpu_seconds = 0;
  std::uint64_t memory_peak = 0;
  std::uint64_t pids_peak = 0;
  std::uint64_t oom_kills = 0;
  double throttled_seconds = 0;
  std::uint64_t pids_refused = 0;
};

struct Timings {  // seconds
  double setup = 0;
  double run = 0;
  double collect = 0;
};

struct Outcome {
  std::string id;
  Status status = Status::kSandboxError;  // never success by default
  int exit_code = -1;
  std::optional<int> signal;
  double duration_seconds = 0;

  std::string stdout_bytes;  // head and tail as kept, raw
  std::uint64_t stdout_dropped = 0;
  std::size_t stdout_head = 0;  // where the cut is: the tail starts here when dropped > 0
  std::string stderr_bytes;
  std::uint64_t stderr_dropped = 0;
  std::size_t stderr_head = 0;

  std::vector<CollectedFile> files;
  std::vector<RefusedEntry> refused;
  std::optional<SavedWorkspace> workspace;  // of a session's runs alone
  std::vector<Denial> denials;
  std::uint64_t denials_unlisted = 0;  // calls of further numbers; a note tells of them
  std::vector<std::string> limits_hit;
  std::optional<ErrorInfo> error;
  std::optional<ResourceUsage> usage;  // none where no cgroup measured it
  policy::Limits limits;
  std::vector<Note> notes;
  std::vector<policy::LayerReport> layers;
  std::string start = "cold";
  std::string image_name, image_digest;
  std::string profile;
  std::string language;
  Timings timings;

  [[nodiscard]] bool ok() const { return status == Status::kOk; }
  [[nodiscard]] bool timed_out() const { return status == Status::kTimeout; }
};

// What sbx-run exits with for this outcome (sbx-run --help lists the codes).
[[nodiscard]] int process_exit_code(const Outcome& outcome);
// The result as one JSON document.
[[nodiscard]] std::string to_json(const Outcome& outcome);

}  // namespace sbx::collect
