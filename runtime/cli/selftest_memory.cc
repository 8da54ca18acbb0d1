// Attacks on memory and storage. A table: class, name, layer, act, argument, limits, what shows
// that it held; the control's argument and limits, and what shows that it got through.
#include <cerrno>
#include <csignal>

#include "runtime/cli/selftest_run_tables.h"

namespace sbx::cli {
namespace {

using collect::Status;

constexpr std::string_view kRlimits = "rlimits";
constexpr std::uint64_t kFlood = 512 * 1024;

bool is_oom(const RunSeen& seen) {
  return ended_as(seen, Status::kOom) && hit(seen, "memory");
}
bool is_full_tmp(const RunSeen& seen) {
  return answer_of(seen) == ENOSPC && hit(seen, "tmp");
}
bool is_full_of_files(const RunSeen& seen) {
  return answer_of(seen) == ENOSPC && hit(seen, "tmp_inodes");
}
bool is_full_output(const RunSeen& seen) {
  return answer_of(seen) == ENOSPC && hit(seen, "output");
}
bool is_over_file_size(const RunSeen& seen) {
  return ended_as(seen, Status::kSignal) && seen.outcome->signal == SIGXFSZ;
}
bool has_no_more_handles(const RunSeen& seen) {
  return answer_of(seen) == EMFILE;
}
bool has_no_more_locks(const RunSeen& seen) {
  return answer_of(seen) == ENOLCK;
}
// What was kept and what was counted are together what was written.
bool is_cut(const RunSeen& seen) {
  return ended_as(seen, Status::kOk) && seen.outcome->stdout_bytes.size() <= 4096 &&
         seen.outcome->stdout_bytes.size() + seen.outcome->stdout_dropped == kFlood;
}
bool is_whole(const RunSeen& seen) {
  return ended_as(seen, Status::kOk) && seen.outcome->stdout_bytes.size() == kFlood;
}
bool is_ended_for_output(const RunSeen& seen) {
  return ended_as(seen, Status::kOutput);
}
bool is_timeout(const RunSeen& seen) {
  return ended_as(seen, Status::kTimeout);
}

// More memory than the limit, and the same below one that is higher.
constexpr RunCase beyond(std::string_view name, std::string_view what) {
  return {kMemory, name, kCgroup,
          "take",  what, "memory=24M tmp=64M",
          is_oom,  what, "memory=96M tmp=64M",
          did_all};
}

constexpr RunCase kMemoryCases[] = {
    beyond("memory of a process", "anonymous 48"),
    beyond("memory of several processes", "children 48"),
    beyond("memory in files of /tmp", "/tmp 48"),
    beyond("memory in a memfd", "memfd 48"),
    beyond("memory in a System V segment", "segment 48"),
    {kMemory, "size of /tmp", kNone, "take", "/tmp 8", "tmp=4M", is_full_tmp, "/tmp 8", "tmp=16M",
     did_all},
    {kMemory, "number of files in /tmp", kNone, "many_files", "200", "tmp_inodes=64",
     is_full_of_files, "200", "tmp_inodes=1024", did_all},
    {kMemory, "size of /output", kNone, "take", "/output 8", "output=4M", is_full_output,
     "/output 8", "output=16M", did_all},
    {kMemory, "size of one file", kRlimits, "big_file", "4", "fsize=1M", is_over_file_size, "4",
     "fsize=8M", did_all},
    {kMemory, "number of descriptors", kRlimits, "descriptors_held", "100", "nofile=32",
     has_no_more_handles, "100", "nofile=200", did_all},
    {kMemory, "record locks", "seccomp", "record_locks", "8000", "memory=16M", has_no_more_locks,
     "2000", "memory=16M", did_all},
    {kMemory, "flocks of other processes", "seccomp", "flocks_of_child", "8000", "memory=16M",
     has_no_more_locks, "2000", "memory=16M", did_all},
    {kMemory, "a flood of output in one line", kNone, "flood", "512", "stdout_bytes=4K", is_cut,
     "512", "stdout_bytes=1M", is_whole},
    {kMemory, "output without end", kNone, "flood", "0", "stdout_bytes=4K output_kills=true",
     is_ended_for_output, "0", "stdout_bytes=4K wall_seconds=0.5", is_timeout},
};

}  // namespace

std::span<const RunCase> memory_cases() {
  return kMemoryCases;
}

}  // namespace sbx::cli
