// Plan: everything that will be done for one run, before any process exists. Stage: plan.
//
// A value, printable in words (`sbx-run explain`; golden tests keep the text of every shipped
// profile). flatten.cc turns it into the block that sbx-init reads. What is known only at launch
// (the run's own id, its descriptors, the clock) is in LaunchFacts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/plan/flat_plan.h"
#include "runtime/plan/host_facts.h"
#include "runtime/plan/request.h"
#include "runtime/policy/language.h"
#include "runtime/policy/policy.h"

namespace sbx::plan {

struct TmpfsMount {
  std::string target;  // "/tmp"
  std::uint64_t size = 0, inodes = 0;
  std::string mode;  // octal
  bool payload_owns = false;
  bool noexec = false;
  bool read_only = false;  // after filling
  // Made by the spawner, which keeps it for what is done with its contents at the end: /output is
  // collected, the /work of a session is saved.
  bool collected = false;
  bool saved = false;
  std::string limit;  // the limit whose exhaustion is reported, or ""
};

struct HostBind {
  std::string source;
  std::string target;  // relative to the new root
  bool directory = false;
  bool optional = false;
};

struct Mask {
  std::string path;
  MaskKind kind = MaskKind::kFile;
  std::string content;
};

struct Rlimit {
  std::uint32_t resource = 0;
  std::string name;
  std::uint64_t value = 0;  // soft and hard
};

// One file for /code, /input or /work. The bytes stay with the request, which outlives the run.
struct FillEntry {
  std::uint32_t tmpfs = 0;
  FillKind kind = FillKind::kFile;
  std::uint32_t mode = 0444;
  std::string path;
  std::string_view content;
};

// What an interpreter needs to start, beside what the run is given: no limit may be less.
inline constexpr std::uint64_t kLeastMemory = 4 * policy::kMiB;

// Index of /work in Plan::tmpfs.
inline constexpr std::uint32_t kWorkMount = 2;

struct Plan {
  policy::Policy policy;
  std::string language;  // contract name, or "" for argv runs
  Image image;
  IdMode ids = IdMode::kSingle;
  std::uint32_t id_count = 1;
  std::uint32_t host_uid = 0;

  std::string hostname = "sandbox";
  std::vector<TmpfsMount> tmpfs;
  TmpfsMount shm;
  std::vector<std::string> directories;  // rootfs = host: made in the root tmpfs
  std::vector<std::pair<std::string, std::string>> symlinks;  // {link, target}
  std::vector<std::pair<std::string, std::string>> files;     // {path, content}
  std::vector<HostBind> binds;
  std::vector<std::string> devices;
  std::vector<Mask> masks;
  std::vector<FillEntry> fill;
  bool workspace = false;  // /work is filled from one and saved to it; its stream follows `fill`
  std::vector<Rlimit> rlimits;
  std::uint64_t lock_limit = 0;  // file locks held at once, then ENOLCK; 0: no bound
  std::vector<policy::CallerLimit> caller_limits;  // of those left alone, the ones that are felt
  std::vector<std::string> writable;
  std::uint32_t visible_cpus = 1;  // affinity, /proc/stat, thread counts
  std::uint32_t host_cpus = 1;

  std::vector<std::string> argv;
  std::vector<std::string> env;  // "NAME=value"
  std::vector<std::string> exec_paths;
  std::string work_directory = "/work";

  StepMask skip = 0;
  StepMask may_fail = 0;
  bool net_namespace = true;
  std::vector<policy::LayerReport> layers;  // as planned; failures are applied afterwards
};

// kInvalid for what the request got wrong, kHost when a required layer cannot be had and
// `policy.allow_missing` does not name it.
[[nodiscard]] Result<Plan> make_plan(const policy::Policy& policy, const Request& request,
                                     const HostFacts& host);

// The plan in words.
[[nodiscard]] std::string plan_text(const Plan& plan);

struct LaunchFacts {
  std::uint32_t payload_id = 0;  // in the outer namespace; 0 with IdMode::kSingle
  std::uint32_t join_count = 0;
  std::uint32_t init_join_count = 0;
  bool payload_leaf = false;
  StepMask inject = 0, weaken = 0;  // tests only
};

// The block for sbx-init. kInvalid when a table or the block would overflow.
[[nodiscard]] Result<std::vector<std::uint8_t>> flatten(const Plan& plan, const LaunchFacts& facts);

// The options of a tmpfs that the spawner makes, as text; none when `size` is empty.
struct PassedTmpfs {
  std::string size, inodes, mode, uid;
};
// The one that takes this slot (kSlotOutput, kSlotWork).
[[nodiscard]] PassedTmpfs passed_tmpfs(const Plan& plan, const LaunchFacts& facts, int slot);

}  // namespace sbx::plan
