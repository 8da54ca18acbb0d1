// The directory of one session: its tree, and what is in the making beside it. Stage: daemon.
// Blocks on disk: called from the work pool.
//
// `session` is a descriptor of the directory (session_store.h). Whoever calls sees to it that the
// tree has one user at a time, or readers alone.
#pragma once

#include <string>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/daemon/session_record.h"
#include "runtime/plan/request.h"
#include "runtime/workspace/edit.h"
#include "runtime/workspace/generation.h"

namespace sbx::daemon {

inline constexpr char kTreeName[] = "tree";
inline constexpr char kRecordName[] = "session.json";

// kHost, with the fix, where somebody has removed or shut the session's directory: so with all that
// begins with it.
[[nodiscard]] Result<UniqueFd> open_tree(int session);
[[nodiscard]] Result<plan::WorkspaceSize> measure_tree(int session);

// Notes a use of the session. Not forced to the disk: a power failure may cost it.
[[nodiscard]] Result<void> touch(int session, SessionTime now);

// What a run left becomes the tree, by one renameat2(2), durable before this returns. `old_name`
// remains to be removed. Unchanged trees are left as they are. After an error the tree is what it
// was.
struct SavedTree {
  workspace::Generation generation;
  std::string old_name;
};
[[nodiscard]] Result<SavedTree> save_tree(int session, int walker,
                                          const plan::WorkspaceSize& old_size);

// A file in the making. It remains to be removed when it is not finished.
struct Upload {
  UniqueFd file;  // for writing
  std::string name;
};
[[nodiscard]] Result<Upload> begin_upload(int session);
// Makes the file durable and puts it in place, see put_file().
[[nodiscard]] Result<workspace::SizeChange> finish_upload(int session, int file,
                                                          const std::string& name,
                                                          const std::string& path,
                                                          std::uint64_t room_bytes,
                                                          std::uint64_t room_inodes);

// Takes an entry out of the tree. `old_name` remains to be removed.
struct Deleted {
  workspace::SizeChange change;
  std::string old_name;
};
[[nodiscard]] Result<Deleted> delete_entry(int session, const std::string& path);

// Removes a file or directory beside the tree; one that is not there is none to remove.
[[nodiscard]] Result<void> remove_beside(int session, const std::string& name);

}  // namespace sbx::daemon
