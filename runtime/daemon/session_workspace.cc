#include "runtime/daemon/session_workspace.h"

#include <sys/eventfd.h>

#include <mutex>
#include <utility>

#include "runtime/base/own_limits.h"
#include "runtime/base/places.h"
#include "runtime/base/sys.h"
#include "runtime/daemon/session_directory.h"
#include "runtime/plan/plan.h"
#include "runtime/workspace/fill_stream.h"

namespace sbx::daemon {

using async::Task;

struct SessionWorkspace::State {
  UniqueFd saved;  // an eventfd
  // The loop's alone.
  std::optional<Hold> hold;
  std::optional<Result<collect::SavedWorkspace>> outcome;
  // What a thread of the pool says, known before it closes the pipe: what follows inside is the
  // consequence.
  std::mutex mutex;
  std::optional<Error> fill_failure;
};

Result<std::unique_ptr<SessionWorkspace>> SessionWorkspace::make(Sessions& sessions,
                                                                 SessionPtr session, Hold hold) {
  auto state = std::make_shared<State>();
  state->saved = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!state->saved) return name_scarcity(sys_error("eventfd"));
  state->hold.emplace(std::move(hold));
  return std::unique_ptr<SessionWorkspace>(
      new SessionWorkspace(sessions, std::move(session), std::move(state)));
}

SessionWorkspace::SessionWorkspace(Sessions& sessions, SessionPtr session,
                                   std::shared_ptr<State> state)
    : sessions_(sessions), session_(std::move(session)), state_(std::move(state)) {}

SessionWorkspace::~SessionWorkspace() = default;

void SessionWorkspace::fill(UniqueFd pipe) {
  sessions_.tasks().spawn(
      fill_on_pool(sessions_.transfers(), state_, session_->directory(), std::move(pipe)));
}

Task<void> SessionWorkspace::fill_on_pool(async::WorkPool& pool, std::shared_ptr<State> state,
                                          std::shared_ptr<const UniqueFd> directory,
                                          UniqueFd pipe) {
  auto out = std::make_shared<UniqueFd>(std::move(pipe));  // a job must be copyable
  auto job = [state, directory, out] {
    auto written = sys::set_nonblocking(out->get(), false);
    if (written) {
      const auto tree = open_tree(directory->get());
      written = tree ? workspace::write_fill_stream(tree->get(), plan::kWorkMount, out->get())
                     : Result<void>(tree.error());
    }
    if (!written) {
      const std::lock_guard lock(state->mutex);
      state->fill_failure = name_disk_failure(std::move(written).error());
    }
    out->reset();
  };
  co_await pool.run(job);
}

std::optional<Error> SessionWorkspace::fill_failure() {
  const std::lock_guard lock(state_->mutex);
  return state_->fill_failure;
}

int SessionWorkspace::saved_fd() const {
  return state_->saved.get();
}

void SessionWorkspace::save(UniqueFd walker) {
  sessions_.tasks().spawn(save_on_pool(sessions_, session_, state_, std::move(walker)));
}

Task<void> SessionWorkspace::save_on_pool(Sessions& sessions, SessionPtr session,
                                          std::shared_ptr<State> state, UniqueFd walker) {
  auto socket = std::make_shared<UniqueFd>(std::move(walker));
  auto job = [directory = session->directory(), size = *session->size(), socket] {
    return save_tree(directory->get(), socket->get(), size);
  };
  auto saved = co_await sessions.transfers().run(job);
  if (saved) {
    session->set_size(saved->generation.size);
    sessions.remove_later(*session, std::move(saved->old_name));
    state->outcome = collect::SavedWorkspace{.saved = true,
                                             .size = saved->generation.size.bytes,
                                             .inodes = saved->generation.size.inodes,
                                             .refused = std::move(saved->generation.refused)};
  } else {
    state->outcome = unexpected(std::move(saved).error());
  }
  (void)::eventfd_write(state->saved.get(), 1);
}

// From here on the run needs the tree no more.
Result<collect::SavedWorkspace> SessionWorkspace::saved() {
  state_->hold.reset();
  const bool aged = session_->is_aged();
  if (state_->outcome && !aged) return *std::exchange(state_->outcome, std::nullopt);
  const plan::WorkspaceSize size = this->size();
  return collect::SavedWorkspace{
      .reason = aged ? "the session reached its greatest age" : "the session was deleted",
      .size = size.bytes,
      .inodes = size.inodes};
}

}  // namespace sbx::daemon
