// FlatPlan: the plan as sbx-init reads it. Stage: plan (written by flatten.cc), read by child.
//
// One contiguous block in a sealed memfd: this struct, then the blob it points into. Trivially
// destructible, no pointers (init may map it anywhere), every string NUL-terminated, every number
// formatted, every BPF program compiled. The reader decides nothing and allocates nothing.
// Freestanding: no standard library beyond <cstdint> and <type_traits>.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/plan/steps.h"

namespace sbx::plan {

inline constexpr std::uint32_t kPlanMagic = 0x31786273;  // "sbx1"

// Descriptors that sbx-init finds open, by number. Those a run does not need are closed.
inline constexpr int kSlotStdin = 0;
inline constexpr int kSlotStdout = 1;
inline constexpr int kSlotStderr = 2;
inline constexpr int kSlotPlan = 3;          // the sealed memfd
inline constexpr int kSlotReport = 4;        // pipe, write end, non-blocking
inline constexpr int kSlotLifeline = 5;      // pipe, read end: EOF means that the supervisor died
inline constexpr int kSlotNetns = 6;         // the run's empty net namespace
inline constexpr int kSlotFill = 7;          // pipe, read end: contents of /code, /input, /work
inline constexpr int kSlotOutput = 8;        // detached tmpfs for /output
inline constexpr int kSlotWork = 9;          // the same for /work, when it is a workspace
inline constexpr int kSlotPayloadLeaf = 10;  // cgroup v2 directory
inline constexpr int kSlotJoin = 11;         // first of kMaxJoin cgroup v1 tasks files
inline constexpr int kMaxJoin = 8;
inline constexpr int kSlotCount = kSlotJoin + kMaxJoin;

// A range of the block. A string has a NUL behind its last byte.
struct Span {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

struct FlatTmpfs {
  Span target;                   // relative to the new root, no leading '/'
  Span size, inodes, mode, uid;  // decimal text for fsconfig(2); an empty uid keeps the mounter's
  std::uint32_t passed = 0;      // a slot: take that mount; 0: make one
  std::uint32_t noexec = 0;
  std::uint32_t read_only = 0;  // after filling
  Span limit;                   // "tmp", "output", …: reported with statfs at the end, or empty
};

// A file or directory of the host's, bound read-only (rootfs = host; devices).
struct FlatBind {
  Span source;  // absolute, host
  Span target;  // relative to the new root (devices: to /dev)
  std::uint32_t directory = 0;
  std::uint32_t optional = 0;  // a missing source is no failure
};

struct FlatSymlink {
  Span target, link;
};

// A small file made by init, in the root tmpfs (rootfs = host) or as a mask over /proc.
struct FlatFile {
  Span path, content;
};

enum class MaskKind : std::uint32_t { kFile, kDirectory, kContent };
struct FlatMask {
  Span path;  // absolute, inside
  MaskKind kind = MaskKind::kFile;
  Span content;  // kContent: what the file says instead
};

struct FlatRlimit {
  std::uint32_t resource = 0;
  std::uint32_t padding = 0;
  std::uint64_t soft = 0, hard = 0;
};

inline constexpr std::uint32_t kMaxTmpfs = 12;
inline constexpr std::uint32_t kMaxBinds = 32;
inline constexpr std::uint32_t kMaxDevices = 8;
inline constexpr std::uint32_t kMaxSymlinks = 24;
inline constexpr std::uint32_t kMaxFiles = 16;
inline constexpr std::uint32_t kMaxMasks = 40;
inline constexpr std::uint32_t kMaxRlimits = 12;
inline constexpr std::uint32_t kMaxWritable = 12;
inline constexpr std::uint32_t kMaxExecPaths = 16;
inline constexpr std::uint32_t kActionCount = 512;
inline constexpr std::uint16_t kHostileAction = 0xffff;
inline constexpr std::uint16_t kUnknownAction = 0xfffe;  // ENOSYS
// What init decides by an argument, else EINVAL. Of fcntl and of flock, what may take a lock goes
// on while there is room; of clone, a namespace is hostile.
inline constexpr std::uint16_t kRecordLockAction = 0xfffd;
inline constexpr std::uint16_t kFlockAction = 0xfffc;
inline constexpr std::uint16_t kNamespaceAction = 0xfffb;
// F_SETLK, F_SETLKW.
[[nodiscard]] constexpr bool is_record_lock(std::uint32_t command) {
  return command == 6 || command == 7;
}
// LOCK_SH, LOCK_EX, with LOCK_NB or without.
[[nodiscard]] constexpr bool is_flock(std::uint32_t operation) {
  return (operation & ~4U) == 1 || (operation & ~4U) == 2;
}
[[nodiscard]] constexpr bool asks_for_namespace(std::uint32_t flags) {
  return (flags & 0x7e020000U) != 0;
}

struct FlatPlan {
  std::uint32_t magic = kPlanMagic;
  std::uint32_t total_size = 0;
  StepMask skip = 0;      // steps not to walk at all (a layer turned off or not there)
  StepMask may_fail = 0;  // steps whose failure is reported as information, and passed over
  // For the sbx-init of test builds; the product's has no code that looks at them.
  StepMask inject = 0;  // steps that fail with ENOTRECOVERABLE
  StepMask weaken = 0;  // steps that leave out what they protect (tests/support/weakened_steps.cc)

  Span hostname;
  Span rootfs;  // absolute path of the image's tree; empty: a tmpfs built from host binds
  FlatTmpfs tmpfs[kMaxTmpfs];
  std::uint32_t tmpfs_count = 0;
  std::uint32_t padding = 0;
  FlatTmpfs shm;  // mounted at /dev/shm once /dev stands; an empty target: none
  FlatBind binds[kMaxBinds];
  std::uint32_t bind_count = 0;
  FlatBind devices[kMaxDevices];
  std::uint32_t device_count = 0;
  FlatSymlink symlinks[kMaxSymlinks];
  std::uint32_t symlink_count = 0;
  Span directories[kMaxSymlinks];  // made in the root tmpfs
  std::uint32_t directory_count = 0;
  FlatFile files[kMaxFiles];
  std::uint32_t file_count = 0;
  FlatMask masks[kMaxMasks];
  std::uint32_t mask_count = 0;

  std::uint32_t join_count = 0;
  std::uint32_t init_join_count = 0;  // of those, from the first: joined by init, inherited
  std::uint32_t join_padding = 0;
  std::uint32_t has_payload_leaf = 0;
  std::uint32_t has_fill = 0;
  std::uint32_t has_netns = 0;
  std::uint32_t clear_groups = 0;  // setgroups(2) is possible and needed
  std::uint32_t payload_id = 0;    // uid and gid in the outer namespace; 0: the same as pid 1
  Span uid_map, gid_map;           // "65534 <payload_id> 1"
  Span time_offsets;               // for /proc/self/timens_offsets

  std::uint64_t cpu_mask[16] = {};  // sched_setaffinity(2), up to 1024 CPUs
  FlatRlimit rlimits[kMaxRlimits];
  std::uint32_t rlimit_count = 0;
  Span writable[kMaxWritable];  // absolute, inside: where Landlock lets the payload write
  std::uint32_t writable_count = 0;

  std::uint32_t audit_arch = 0;
  Span bpf;  // struct sock_filter[], 8-byte aligned
  std::uint16_t actions[kActionCount] = {};
  // From the payload's start: init ends the run by itself when the supervisor, who does so at the
  // wall limit, has not for a while. It may have been stopped.
  std::uint64_t wall_nanoseconds = 0;
  std::uint64_t lock_limit = 0;  // locks of fcntl(2) and flock(2) that may be held at once

  Span work_directory;
  Span exec_paths[kMaxExecPaths];  // tried in order while the error is "not there"
  std::uint32_t exec_path_count = 0;
  // Arrays of 64-bit slots, each the offset of a string, ended by a zero slot. Init turns the slots
  // into pointers in place (its mapping is private).
  Span argv, envp;
  std::uint32_t argv_count = 0, envp_count = 0;
};

static_assert(std::is_trivially_destructible_v<FlatPlan>);
static_assert(std::is_trivially_copyable_v<FlatPlan>);
static_assert(std::is_standard_layout_v<FlatPlan>);

// Contents for /code, /input and /work, streamed through kSlotFill: a header, the path, what the
// kind has behind it, …, and a last header of kind kEnd. EOF before it is a failure. A directory
// comes before what is in it, a file before further names of it.
enum class FillKind : std::uint32_t {
  kEnd,
  kDirectory,
  kFile,        // `size` bytes follow
  kSparseFile,  // `size` bytes long: FillExtents follow, each with its bytes, the last one empty
  kSymlink,     // `size` bytes of target follow, below kMaxFillPath
  kHardLink,    // `size` bytes follow: the path of the name that is already there
};
// utimensat(2)'s UTIME_OMIT.
inline constexpr std::uint32_t kTimeOfFilling = (1U << 30) - 2;
struct FillHeader {
  FillKind kind = FillKind::kEnd;
  std::uint32_t tmpfs = 0;  // index into FlatPlan::tmpfs
  std::uint32_t mode = 0;
  std::uint32_t path_size = 0;  // without NUL, below kMaxFillPath
  std::uint64_t size = 0;
  std::int64_t mtime_seconds = 0;  // of a file
  std::uint32_t mtime_nanoseconds = kTimeOfFilling;
  std::uint32_t padding = 0;
};
struct FillExtent {
  std::uint64_t offset = 0, size = 0;
};
inline constexpr std::uint32_t kMaxFillPath = 4096;  // as openat2(2) takes, with the NUL

// What init and the payload tell the supervisor: 32 bytes, one write each.
enum class RecordKind : std::uint32_t {
  kStepFailed = 1,
  kAboutToExec = 2,
  kDenied = 3,
  kHostile = 4,
  kEnded = 5,
  kInformation = 6,
  kWallLimit = 7,  // init ended everything at its own deadline, FlatPlan::wall_nanoseconds
};
struct Record {
  RecordKind kind{};
  Step step{};
  std::int32_t error = 0;  // errno; of what ends all: why not all counts could be told
  std::uint32_t nr = 0;
  std::uint32_t arch = 0;
  std::int32_t status = 0;
  std::uint64_t count = 0;
};
static_assert(sizeof(Record) == 32);
// kHostile, kEnded, kWallLimit: count = CLOCK_MONOTONIC of the end, in nanoseconds, as init has it.
// kInformation, Step::kFactStorage: nr = tmpfs index (kMaxTmpfs: shm), count = free bytes, status =
// free inodes (saturated at INT32_MAX). kFactNetwork: count = Ip OutNoRoutes. kFactBackground:
// there were some. kFactRecordLocks: count = the bound on locks held, where one was refused for it.
// kFactUnlisted: count = denied calls that no kDenied tells of, a running total.
// kInformation with any other step: that step failed with `error` and was passed over.

}  // namespace sbx::plan
