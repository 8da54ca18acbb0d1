// The routes of sbxd that are neither runs nor sessions, and the table that has all of them. Stage:
// daemon, the loop's thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "http/async/work_pool.h"
#include "http/router.h"
#include "runtime/daemon/info.h"
#include "runtime/daemon/metrics.h"
#include "runtime/daemon/run_service.h"
#include "runtime/daemon/sessions.h"

namespace sbx::daemon {

// The OpenAPI document, as it is served (openapi.json, compiled in).
[[nodiscard]] std::string_view openapi_text();

struct InfoRoutes {
  async::WorkPool& pool;
  const Metrics& metrics;
  const RunService& runs;
  const Sessions& sessions;
  std::function<Gauges()> gauges;
  std::function<Result<InfoSource>()> info;

  [[nodiscard]] async::Task<void> get_info(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> get_health(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> get_metrics(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> get_openapi(http::Request& request, http::Responder& responder);
};

// The query parameters of routes.
inline const std::vector<std::string> kNoParameters;
inline const std::vector<std::string> kStreamParameter{"stream"};

// Both outlive the router.
void add_info_routes(http::Router& router, InfoRoutes& routes);
void add_run_routes(http::Router& router, RunService& service);

}  // namespace sbx::daemon
