// The calls on sessions and on their files. Stage: daemon, the loop's thread.
#pragma once

#include "http/handler.h"
#include "http/router.h"
#include "runtime/daemon/run_service.h"
#include "runtime/daemon/session_request.h"
#include "runtime/daemon/sessions.h"

namespace sbx::daemon {

// Both are borrowed, and outlive the router.
class SessionRoutes {
 public:
  SessionRoutes(Sessions& sessions, RunService& runs, const RequestRules& rules, SessionTimes times,
                std::chrono::seconds queue_time)
      : sessions_(sessions), runs_(runs), rules_(rules), times_(times), queue_time_(queue_time) {}

  [[nodiscard]] async::Task<void> create(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> list(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> get(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> remove(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> run(http::Request& request, http::Responder& responder);

 private:
  [[nodiscard]] async::Task<std::optional<http::Problem>> try_run(SessionPtr session,
                                                                  RunRequest run,
                                                                  http::Request& request,
                                                                  http::Responder& responder);

  Sessions& sessions_;
  RunService& runs_;
  const RequestRules& rules_;
  SessionTimes times_;
  std::chrono::seconds queue_time_;
};

void add_session_routes(http::Router& router, SessionRoutes& routes);

}  // namespace sbx::daemon
