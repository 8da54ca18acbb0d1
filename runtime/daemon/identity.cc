#include "runtime/daemon/identity.h"

#include <fmt/core.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "runtime/base/sys.h"

namespace sbx::daemon {
namespace {

constexpr int kMaxCapability = 63;

// Up to the last one that this kernel knows, which answers EINVAL.
Result<void> empty_bounding_set() {
  for (int capability = 0; capability <= kMaxCapability; ++capability) {
    if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EINVAL) return {};
    return sys_error("prctl(PR_CAPBSET_DROP)");
  }
  return {};
}

Result<void> become(const ServiceUser& user) {
  SBX_TRY(empty_bounding_set());
  if (::setgroups(0, nullptr) != 0) return sys_error("setgroups");
  if (::setresgid(user.gid, user.gid, user.gid) != 0) return sys_error("setresgid", user.name);
  if (::setresuid(user.uid, user.uid, user.uid) != 0) return sys_error("setresuid", user.name);
  return {};
}

Result<void> drop_capabilities() {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return sys_error("prctl(PR_CAP_AMBIENT)");
  }
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) return sys_error("capset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return sys_error("prctl(NO_NEW_PRIVS)");
  return {};
}

// The value behind "Name:\t" in /proc/self/status.
std::string_view field(std::string_view status, std::string_view name) {
  const std::string heading = fmt::format("\n{}:\t", name);
  const std::size_t at = status.find(heading);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = status.substr(at + heading.size());
  return rest.substr(0, rest.find('\n'));
}

Error still_privileged(std::string detail) {
  Error error;
  error.stage = "start";
  error.operation = "give up privileges";
  error.detail = std::move(detail);
  return error;
}

}  // namespace

Result<ServiceUser> find_service_user(const std::string& name) {
  errno = 0;
  const passwd* const entry = ::getpwnam(name.c_str());
  if (entry == nullptr) {
    return host_lacks("getpwnam", errno, fmt::format("there is no user '{}' to become", name),
                      fmt::format("useradd --system --user-group --no-create-home --shell "
                                  "/usr/sbin/nologin {}",
                                  name));
  }
  if (entry->pw_uid == 0 || entry->pw_gid == 0) {
    return invalid(fmt::format("the user '{}' is root, or in root's group", name),
                   "set `user` in sbxd.toml to an ordinary user");
  }
  return ServiceUser{name, entry->pw_uid, entry->pw_gid};
}

Result<void> give_up_privileges(const std::optional<ServiceUser>& user) {
  if (user) SBX_TRY(become(*user));
  SBX_TRY(drop_capabilities());
  const uid_t uid = user ? user->uid : ::getuid();
  const gid_t gid = user ? user->gid : ::getgid();
  SBX_ASSIGN(const std::string status, sys::read_file("/proc/self/status", 64 * 1024));
  SBX_TRY(check_unprivileged(status, uid, gid, user.has_value()));
  // What the text says, tried.
  if (::setresuid(0, 0, 0) == 0) return still_privileged("the way back to root is open");
  return {};
}

Result<void> check_unprivileged(std::string_view status, uid_t uid, gid_t gid, bool was_root) {
  const auto all_four = [](unsigned id) { return fmt::format("{0}\t{0}\t{0}\t{0}", id); };
  const auto expect = [&](std::string_view name, std::string_view value) -> Result<void> {
    if (field(status, name) == value) return {};
    return still_privileged(fmt::format("{} is '{}', not '{}'", name, field(status, name), value));
  };
  if (uid == 0) return still_privileged("the user is root");
  SBX_TRY(expect("Uid", all_four(uid)));
  SBX_TRY(expect("Gid", all_four(gid)));
  constexpr std::string_view kNone = "0000000000000000";
  for (const std::string_view set : {"CapInh", "CapPrm", "CapEff", "CapAmb"}) {
    SBX_TRY(expect(set, kNone));
  }
  SBX_TRY(expect("NoNewPrivs", "1"));
  if (!was_root) return {};
  SBX_TRY(expect("CapBnd", kNone));
  return expect("Groups", " ");
}

}  // namespace sbx::daemon
