// Workspace: what a run gets as /work, and what takes over what is there at its end. Stage:
// workspace.
//
// The interface between a run and where a session's files are kept. The run knows nothing of
// disks: it hands over a pipe to be filled and a socket to be read, and waits on a descriptor. The
// owner outlives the run. Calls come from the thread that steps the run; none may block.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/collect/outcome.h"
#include "runtime/plan/request.h"

namespace sbx::workspace {

class Workspace {
 public:
  virtual ~Workspace() = default;

  // The payload's id for life: an index of the upper half of the id range, 0 where there is one id.
  [[nodiscard]] virtual std::uint32_t payload_id() const = 0;
  // What it holds now; refused before the run when it does not fit.
  [[nodiscard]] virtual plan::WorkspaceSize size() const = 0;

  // Once, while the run starts: writes the tree as plan::FillHeaders and the end into the pipe, and
  // closes it. A pipe that closes without the end fails the run. Not called when the run is over
  // before.
  virtual void fill(UniqueFd pipe) = 0;
  // What went wrong in fill(), once the pipe is closed; none as long as it is not known.
  [[nodiscard]] virtual std::optional<Error> fill_failure() = 0;

  // False: what the run leaves is dropped, and `reason` of saved() says why (the session is being
  // deleted). Asked once, when everything inside is dead.
  [[nodiscard]] virtual bool wants_save() const = 0;
  // Once, when everything inside is dead: takes the socket over which the walker tells what is in
  // /work (wire.h).
  virtual void save(UniqueFd walker) = 0;
  // Readable once the save has ended.
  [[nodiscard]] virtual int saved_fd() const = 0;
  // After that, or without a save: what the workspace is now. An error: nothing was saved, the tree
  // is as it was before the run.
  [[nodiscard]] virtual Result<collect::SavedWorkspace> saved() = 0;
};

}  // namespace sbx::workspace
