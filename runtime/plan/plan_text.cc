// The plan in words: what `sbx-run explain` prints and the golden tests keep.
#include <cstdio>

#include "runtime/plan/plan.h"

namespace sbx::plan {
namespace {

std::string mount_line(const TmpfsMount& mount) {
  std::string line = "  " + mount.target + ": tmpfs, " + policy::size_text(mount.size) + ", " +
                     std::to_string(mount.inodes) + " inodes, mode " + mount.mode;
  line += mount.read_only ? ", read-only once filled" : ", writable by the payload";
  if (mount.noexec) line += ", noexec";
  if (mount.collected) line += ", collected afterwards";
  if (mount.saved) line += ", filled from the session's workspace, saved to it afterwards";
  return line + "\n";
}

std::string identity_lines(const Plan& plan) {
  switch (plan.ids) {
    case IdMode::kRange:
      return "  outer user namespace: " + std::to_string(plan.id_count) +
             " host ids of a reserved range; init is none of the host's users\n"
             "  payload: an id of its own there, 65534 inside its nested namespace\n";
    case IdMode::kSubordinate:
      return "  outer user namespace: the caller and " + std::to_string(plan.id_count - 1) +
             " subordinate ids\n"
             "  payload: an id of its own there, 65534 inside its nested namespace\n";
    case IdMode::kSingle:
      return "  outer user namespace: the caller's id alone\n"
             "  payload: the same id as init (uid_separation is degraded), 65534 inside\n";
  }
  return {};
}

std::string file_lines(const Plan& plan) {
  std::string text = "files\n  /: ";
  text += plan.image.is_host() ? "tmpfs with the host's /usr, read-only, nosuid, nodev\n"
                               : "image " + plan.image.name + ", read-only, nosuid, nodev\n";
  for (const TmpfsMount& mount : plan.tmpfs) text += mount_line(mount);
  text += mount_line(plan.shm);
  text += "  /dev: read-only:";
  for (const std::string& device : plan.devices) text += " " + device;
  text += "\n  /proc: own pid namespace, hidepid, read-only; masked:";
  for (const Mask& mask : plan.masks) text += " " + mask.path.substr(sizeof "/proc/" - 1);
  return text + "\n";
}

std::string limit_lines(const Plan& plan) {
  std::string text = "limits\n";
  for (const policy::LimitField& field : policy::limit_fields()) {
    text += "  " + std::string(field.name) + " = " +
            policy::limit_text(plan.policy.limits, field.name) + "\n";
  }
  for (const Rlimit& limit : plan.rlimits) {
    text += "  rlimit " + limit.name + " = " + std::to_string(limit.value) + "\n";
  }
  if (plan.lock_limit > 0 && (plan.skip & step_bit(Step::kSeccomp)) == 0) {
    text += "  file locks held = " + std::to_string(plan.lock_limit) + ", then ENOLCK\n";
  }
  return text;
}

std::string seccomp_lines(const Plan& plan) {
  std::size_t hostile = 0;
  for (const std::uint16_t action : plan.policy.seccomp.actions) {
    if (action == policy::kActionHostile || action == policy::kActionNamespaces) ++hostile;
  }
  std::string loosened = policy::loosening_text(plan.policy.seccomp);
  if (!loosened.empty()) loosened = "  by the profile " + loosened + "\n";
  return "system calls\n  profile " + plan.policy.profile + ": " +
         std::to_string(plan.policy.seccomp.bpf.size() / 8) + " instructions, " +
         std::to_string(hostile) +
         " hostile numbers end the run; unknown ones get ENOSYS\n  policy digest: " +
         plan.policy.seccomp.digest + "\n" + loosened;
}

std::string step_lines(const Plan& plan) {
  std::string text = "steps, in order\n ";
  for (std::uint32_t i = 0; i <= static_cast<std::uint32_t>(Step::kExec); ++i) {
    const Step step = static_cast<Step>(i);
    if ((plan.skip & step_bit(step)) != 0) continue;
    text += std::string(" ") + step_name(step);
    if ((plan.may_fail & step_bit(step)) != 0) text += "(may fail)";
    if (step == Step::kDropInit) text += "\n  payload:";
  }
  return text + "\n";
}

}  // namespace

std::string plan_text(const Plan& plan) {
  std::string text = "profile " + plan.policy.profile;
  if (!plan.language.empty()) text += ", language " + plan.language;
  text += "\nprogram\n ";
  for (const std::string& argument : plan.argv) text += " " + argument;
  text += "\n  in " + plan.work_directory + "\nenvironment\n";
  for (const std::string& variable : plan.env) text += "  " + variable + "\n";
  text += "identity\n" + identity_lines(plan);
  text += file_lines(plan);
  text += std::string("network\n  ") + (plan.net_namespace
                                            ? "none: an empty net namespace, no loopback\n"
                                            : "HOST: the machine's own network, not isolated\n");
  text += limit_lines(plan);
  text += seccomp_lines(plan);
  text += "layers\n";
  for (const policy::LayerReport& layer : plan.layers) {
    text += "  " + layer.name + ": " + std::string(policy::layer_state_name(layer.state));
    if (!layer.detail.empty()) text += " (" + layer.detail + ")";
    text += "\n";
  }
  return text + step_lines(plan);
}

}  // namespace sbx::plan
