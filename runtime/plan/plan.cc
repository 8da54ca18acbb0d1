#include "runtime/plan/plan.h"

#include <sys/resource.h>

#include <algorithm>
#include <set>

#include "runtime/base/escape.h"
#include "runtime/plan/layout.h"

namespace sbx::plan {
namespace {

// What a file of a tmpfs costs the kernel beside its pages: an inode, a name.
constexpr std::uint64_t kInodeCost = 1024;

std::string amount(std::uint64_t bytes) {
  std::string text = policy::size_text(bytes);
  if (text.find_first_not_of("0123456789") != std::string::npos) return text;
  return text + (bytes == 1 ? " byte" : " bytes");
}

// The least limit that lets so much in, in whole M.
std::string least_memory(std::uint64_t needed) {
  return policy::size_text((needed + policy::kMiB - 1) / policy::kMiB * policy::kMiB);
}

Result<const policy::Language*> language_of(const Request& request) {
  const bool has_language = !request.language.empty();
  if (has_language == !request.argv.empty()) {
    return invalid("give either a language with code, or a command to run");
  }
  if (!has_language) return static_cast<const policy::Language*>(nullptr);
  if (const policy::Language* language = policy::find_language(request.language)) return language;
  std::string known;
  for (const policy::Language& language : policy::languages()) {
    known += (known.empty() ? "" : ", ") + language.name;
  }
  return invalid("unknown language '" + request.language + "'", "known languages: " + known);
}

Result<void> check_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.size() > 255 ||
      name.find('/') != std::string::npos || name.find('\0') != std::string::npos) {
    return refused("files", "input name '" + name + "' is not one path component",
                   "give a name without '/': --input PATH:NAME");
  }
  if (has_control_character(name)) {
    return refused("files", "input name '" + name + "' has a control character",
                   "give it another name: --input PATH:NAME");
  }
  return {};
}

// Everything given to a run counts in its memory. `given`: bytes of inputs and code, in whole
// pages.
std::uint64_t needed_memory(const Request& request, std::uint64_t given) {
  const std::uint64_t needed = given + kLeastMemory;
  if (!request.workspace) return needed;
  return needed + request.workspace->bytes + request.workspace->inodes * kInodeCost;
}

Result<void> check_workspace(const policy::Limits& limits, const WorkspaceSize& size,
                             std::uint64_t needed) {
  if (size.bytes > limits.work) {
    return refused("limits.work", "a workspace of " + amount(size.bytes) +
                                      " is over its quota (work) of " +
                                      policy::size_text(limits.work));
  }
  if (size.inodes > limits.work_inodes) {
    return refused("limits.work_inodes", "a workspace of " + std::to_string(size.inodes) +
                                             " inodes is over its quota (work_inodes) of " +
                                             std::to_string(limits.work_inodes));
  }
  if (needed <= limits.memory) return {};
  return refused("limits.memory",
                 "a workspace of " + amount(size.bytes) + " in " + std::to_string(size.inodes) +
                     " inodes needs " + amount(needed) +
                     " with what else the run is given, and the memory limit is " +
                     policy::size_text(limits.memory),
                 "raise memory to " + least_memory(needed) +
                     " or more, or remove files from the workspace: it counts in memory");
}

Result<void> check_room(const policy::Limits& limits, const Request& request,
                        std::uint64_t input_bytes, std::uint64_t input_pages) {
  if (input_pages * kPage > limits.input) {
    return refused("files", "inputs of " + amount(input_bytes) + " are over the input limit of " +
                                policy::size_text(limits.input));
  }
  if (request.files.size() + 1 > limits.input_inodes) {
    return refused("files", std::to_string(request.files.size()) +
                                " inputs are over input_inodes (" +
                                std::to_string(limits.input_inodes) + ")");
  }
  const std::uint64_t given = (pages_of(request.code.size()) + input_pages) * kPage;
  const std::uint64_t needed = needed_memory(request, given);
  const std::string raise = "raise --memory to " + least_memory(needed) + " or more";
  if (kLeastMemory > limits.memory) {
    return refused("limits.memory",
                   "the memory limit of " + policy::size_text(limits.memory) +
                       " is less than any program needs to start",
                   raise);
  }
  if (given + kLeastMemory > limits.memory) {
    return refused("limits.memory",
                   "inputs and code of " + amount(input_bytes + request.code.size()) +
                       " leave no room in the memory limit of " + policy::size_text(limits.memory),
                   raise + ": files given to a run count in it");
  }
  if (!request.workspace) return {};
  return check_workspace(limits, *request.workspace, needed);
}

Result<void> plan_inputs(Plan& plan, const Request& request) {
  std::uint64_t bytes = 0;
  std::uint64_t pages = 0;
  std::set<std::string> names;
  // /code is there only for a language; /input stands behind it.
  const std::uint32_t mount = plan.language.empty() ? kCodeMount : kCodeMount + 1;
  for (const InputFile& file : request.files) {
    SBX_TRY(check_name(file.name));
    if (!names.insert(file.name).second)
      return refused("files", "two inputs are named '" + file.name + "'");
    bytes += file.content.size();
    pages += pages_of(file.content.size());
    plan.fill.push_back({.tmpfs = mount, .mode = 0555, .path = file.name, .content = file.content});
  }
  return check_room(plan.policy.limits, request, bytes, pages);
}

// A process of this much address space or data is what interpreters reserve beside what they use:
// arenas, stacks of threads, guard regions.
constexpr std::uint64_t kReservedAddresses = 64 * 1024 * policy::kMiB;
constexpr std::uint64_t kReservedData = 1024 * policy::kMiB;
constexpr std::uint64_t kUsualStack = 8 * policy::kMiB;

// What whoever started us is allowed holds inside too, where no plan sets it. RLIMIT_CPU and the
// sizes count per process, RLIMIT_NPROC for the caller as well.
void find_caller_limits(Plan& plan, const HostFacts& host) {
  const policy::Limits& limits = plan.policy.limits;
  const auto add_if = [&plan](bool felt, policy::CallerLimit limit) {
    if (felt) plan.caller_limits.push_back(std::move(limit));
  };
  const auto most = limits.wall_seconds * plan.visible_cpus;  // that a run can use at all
  const auto cpu = std::min(limits.cpu_seconds.value_or(most), most);
  add_if(host.hard_cpu < static_cast<std::uint64_t>((cpu.count() + 999) / 1000),
         {"cpu", "-t", cpu < most ? "cpu_seconds" : "wall_seconds", host.hard_cpu, false});
  add_if(host.hard_as < limits.memory + kReservedAddresses,
         {"as", "-v", "memory", host.hard_as, true});
  add_if(host.hard_data < limits.memory + kReservedData,
         {"data", "-d", "memory", host.hard_data, true});
  add_if(host.hard_nproc < limits.pids, {"nproc", "-u", "pids", host.hard_nproc, false});
  add_if(host.hard_stack < kUsualStack, {"stack", "-s", "", host.hard_stack, true});
}

// The kernel keeps file locks without a limit, counts them in no cgroup (filelock_cache is not
// accounted; Linux 6.18; about 200 bytes each), and looks through all of an inode's whenever
// anybody closes it, some 45 ns each: the host's device nodes and the image are everybody's.
constexpr std::uint64_t kLocksHeld = 4096;

Result<void> plan_rlimits(Plan& plan, const HostFacts& host) {
  const policy::Limits& limits = plan.policy.limits;
  if (limits.nofile > host.hard_nofile) {
    return refused("limits.nofile",
                   "nofile " + std::to_string(limits.nofile) + " is above this host's hard limit " +
                       std::to_string(host.hard_nofile),
                   "raise it where this is started from (ulimit -n), or lower nofile in a profile");
  }
  if (limits.fsize > host.hard_fsize) {
    return refused("limits.fsize",
                   "fsize " + policy::size_text(limits.fsize) +
                       " is above this host's hard limit " + policy::size_text(host.hard_fsize),
                   "raise it where this is started from (ulimit -f), or lower fsize in a profile");
  }
  find_caller_limits(plan, host);
  plan.rlimits = {
      // 1, not 0: a piped core_pattern ignores 0 and would run the host's handler on our payload.
      // Where the caller may have no more than 0, plan_layers looks whether that is enough.
      {RLIMIT_CORE, "core", std::min<std::uint64_t>(1, host.hard_core)},
      {RLIMIT_NOFILE, "nofile", limits.nofile},
      {RLIMIT_FSIZE, "fsize", limits.fsize},
      {RLIMIT_MEMLOCK, "memlock", std::min<std::uint64_t>(64 * policy::kKiB, host.hard_memlock)},
      // These two count for whoever started us as well, with the same limits for all that he runs:
      // a part of them only. One queue of the kernel's default size; four timers a process.
      {RLIMIT_MSGQUEUE, "msgqueue", std::min<std::uint64_t>(96 * policy::kKiB, host.hard_msgqueue)},
      {RLIMIT_SIGPENDING, "sigpending", std::min<std::uint64_t>(256, host.hard_sigpending)},
      // No cgroup bounds a real-time policy.
      {RLIMIT_RTPRIO, "rtprio", 0},
      {RLIMIT_NICE, "nice", 0},
  };
  const auto& actions = plan.policy.seccomp.actions;
  if (std::any_of(actions.begin(), actions.end(), [](std::uint16_t action) {
        return action == policy::kActionRecordLocks || action == policy::kActionFlocks;
      })) {
    plan.lock_limit = kLocksHeld;
  }
  return {};
}

}  // namespace

Result<Plan> make_plan(const policy::Policy& policy, const Request& request,
                       const HostFacts& host) {
  SBX_ASSIGN(const policy::Language* language, language_of(request));
  if (request.code.size() > policy::kMaxCodeBytes) {
    return refused("code", "code of " + policy::size_text(request.code.size()) +
                               " is over the limit of " + policy::size_text(policy::kMaxCodeBytes));
  }
  Plan plan;
  plan.policy = policy;
  plan.language = language != nullptr ? language->name : "";
  plan.image = host.image;
  plan.ids = host.ids;
  plan.id_count = host.id_count;
  plan.host_uid = host.host_uid;
  plan.host_cpus = host.cpus;
  plan.visible_cpus = std::clamp((policy.limits.cpus_milli + 999) / 1000, 1U, host.cpus);
  plan.net_namespace = policy.limits.network == policy::NetworkMode::kNone;
  if (language != nullptr) {
    plan.fill.push_back({.tmpfs = kCodeMount, .path = language->file, .content = request.code});
  }
  plan.workspace = request.workspace.has_value();
  SBX_TRY(plan_inputs(plan, request));
  plan_filesystem(plan, language != nullptr, !request.files.empty());
  SBX_TRY(plan_program(plan, language, request));
  SBX_TRY(plan_environment(plan, language, request));
  SBX_TRY(plan_rlimits(plan, host));
  SBX_TRY(plan_layers(plan, host));
  return plan;
}

}  // namespace sbx::plan
