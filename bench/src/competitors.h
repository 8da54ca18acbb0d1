// Who runs against whom: the command of each competitor for each workload, as equal as each allows.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/result.h"

namespace sbx::bench {

struct Workload {
  std::string name;               // as printed
  std::vector<std::string> argv;  // the program's absolute path first; same in image and host
};

enum class Kind {
  kBare,
  kFloor,
  kFloorGroups,
  kReadyFloor,
  kSbx,
  kSbxDefault,
  kSbxOther,
  kBwrap,
  kBwrapHost,
  kBwrapAlike,
  kCrun
};

struct Competitor {
  Kind kind = Kind::kBare;
  std::string name;
  std::vector<std::string> argv;
  std::string skip;  // why it cannot run here, and what would help; empty: it runs
  std::string stdin_file = "/dev/null";  // opened anew for each run
};

// What the commands are made of. `scratch` is a directory of ours for crun's bundles.
struct Setting {
  std::string programs;  // directory of sbx-run and sbx-bench-floor
  std::string rootfs;    // of the image
  std::string scratch;
  std::vector<std::string> compare;  // other sbx-run programs
};

[[nodiscard]] std::vector<Workload> workloads();
// The rootfs of the image `default`; kHost with the fix when none is built.
[[nodiscard]] Result<std::string> find_rootfs();
// In the order of the table. Writes an OCI bundle per workload into the scratch directory.
[[nodiscard]] Result<std::vector<Competitor>> make_competitors(const Setting& setting,
                                                               const Workload& workload);

}  // namespace sbx::bench
