#include "runtime/base/as_user.h"

#include <grp.h>
#include <sys/fsuid.h>
#include <unistd.h>

#include <algorithm>

namespace sbx {

// None of the calls is looked at: setfsuid(2) and setfsgid(2) tell no failure, and who cannot drop
// his groups may pass more than the other could, never less.
AsUser::AsUser(uid_t uid, gid_t gid)
    : groups_(static_cast<std::size_t>(std::max(::getgroups(0, nullptr), 0))) {
  const int known = ::getgroups(static_cast<int>(groups_.size()), groups_.data());
  groups_.resize(static_cast<std::size_t>(std::max(known, 0)));
  (void)::setgroups(0, nullptr);
  (void)::setfsgid(gid);
  (void)::setfsuid(uid);
}

AsUser::~AsUser() {
  (void)::setfsuid(::geteuid());
  (void)::setfsgid(::getegid());
  (void)::setgroups(groups_.size(), groups_.data());
}

}  // namespace sbx
