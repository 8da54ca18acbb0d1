// Who sbxd is: the user that root's start becomes, and having no privilege left. Stage: daemon,
// start-up.
//
// SECURITY: no byte of a client is read before give_up_privileges() has succeeded. It fails closed:
// a process that still could change its uid, or holds a capability, ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace sbx::daemon {

struct ServiceUser {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};

// kHost, with the command that makes it, when there is no such user; kInvalid for uid or gid 0.
[[nodiscard]] Result<ServiceUser> find_service_user(const std::string& name);

// `user` set (root only): becomes that user with his own group alone, and an empty bounding set.
// In every case: no capability, no_new_privs; checked afterwards. To be called with one thread.
[[nodiscard]] Result<void> give_up_privileges(const std::optional<ServiceUser>& user);

// The check itself, over the text of /proc/self/status. kInternal naming what is left.
[[nodiscard]] Result<void> check_unprivileged(std::string_view status, uid_t uid, gid_t gid,
                                              bool was_root);

}  // namespace sbx::daemon
