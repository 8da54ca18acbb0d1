// AsUser: the kernel is asked about paths as of another user. Any stage.
#pragma once

#include <sys/types.h>

#include <vector>

namespace sbx {

// While it lives, this process's rights to files are those of `uid` and `gid` without further
// groups, as far as we may take them on: root may; else nothing changes, and less is found. Ids of
// ours that a run or a file would get stay as they were. One thread in the process, one at a time.
class AsUser {
 public:
  AsUser(uid_t uid, gid_t gid);
  AsUser(const AsUser&) = delete;
  AsUser& operator=(const AsUser&) = delete;
  ~AsUser();

 private:
  std::vector<gid_t> groups_;
};

}  // namespace sbx
