// SessionWorkspace: a session's tree as a run's workspace. Stage: daemon, the loop's thread; the
// disk is worked on by the pool.
//
// One for each run, for as long as the run. Keeps the session held until its tree is no longer
// needed: the run is over and saved, whoever still reads the result.
#pragma once

#include <memory>
#include <optional>

#include "runtime/daemon/session.h"
#include "runtime/daemon/sessions.h"
#include "runtime/workspace/workspace.h"

namespace sbx::daemon {

class SessionWorkspace final : public workspace::Workspace {
 public:
  // Precondition: the session's size is known. `sessions` outlives it. An error: no descriptor
  // left.
  [[nodiscard]] static Result<std::unique_ptr<SessionWorkspace>> make(Sessions& sessions,
                                                                      SessionPtr session,
                                                                      Hold hold);
  ~SessionWorkspace() override;

  [[nodiscard]] std::uint32_t payload_id() const override { return session_->payload_id(); }
  [[nodiscard]] plan::WorkspaceSize size() const override { return *session_->size(); }
  void fill(UniqueFd pipe) override;
  [[nodiscard]] std::optional<Error> fill_failure() override;
  // Past its greatest age nobody will find the session any more, nor what is saved in it.
  [[nodiscard]] bool wants_save() const override {
    return !session_->ending() && !session_->is_aged();
  }
  void save(UniqueFd walker) override;
  [[nodiscard]] int saved_fd() const override;
  [[nodiscard]] Result<collect::SavedWorkspace> saved() override;

 private:
  struct State;
  SessionWorkspace(Sessions& sessions, SessionPtr session, std::shared_ptr<State> state);
  static async::Task<void> fill_on_pool(async::WorkPool& pool, std::shared_ptr<State> state,
                                        std::shared_ptr<const UniqueFd> directory, UniqueFd pipe);
  static async::Task<void> save_on_pool(Sessions& sessions, SessionPtr session,
                                        std::shared_ptr<State> state, UniqueFd walker);

  Sessions& sessions_;
  SessionPtr session_;
  std::shared_ptr<State> state_;  // the second owner is a transfer under way
};

}  // namespace sbx::daemon
