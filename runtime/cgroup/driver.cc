#include "runtime/cgroup/driver.h"

#include "runtime/cgroup/group_dir.h"
#include "runtime/cgroup/hierarchy.h"
#include "runtime/cgroup/v1.h"
#include "runtime/cgroup/v2.h"
#include "runtime/cgroup/v2_base.h"

namespace sbx::cgroup {

// v2 wherever it has the controllers; on a hybrid host it is mounted too, but empty.
Result<std::unique_ptr<Driver>> choose_driver(const DriverOptions& options) {
  SBX_ASSIGN(const Hierarchies hierarchies, in_stage(discover()));
  if (const Mount* mount = find_usable_v2(hierarchies)) {
    SBX_ASSIGN(V2Base base, in_stage(find_v2_base(*mount, options)));
    return make_v2_driver(std::move(base), options);
  }
  return make_v1_driver(hierarchies, options);
}

}  // namespace sbx::cgroup
