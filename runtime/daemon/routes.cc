#include "runtime/daemon/routes.h"

#include <fmt/core.h>

#include "runtime/base/log.h"

extern "C" {
extern const char sbx_openapi_begin[];
extern const char sbx_openapi_end[];
}

namespace sbx::daemon {

using async::Task;
using http::BodyMode;
using http::Method;
using http::Request;
using http::Responder;

std::string_view openapi_text() {
  return {sbx_openapi_begin, static_cast<std::size_t>(sbx_openapi_end - sbx_openapi_begin)};
}

// The manifest is read from the disk.
Task<void> InfoRoutes::get_info(Request&, Responder& responder) {
  auto source = info();
  if (!source) {
    co_await responder.send(to_response(runs.no_start(source.error())));
    co_return;
  }
  auto job = [known = *std::move(source)] { return info_json(known); };
  std::string json = co_await pool.run(job);
  co_await responder.send(http::json_response(std::move(json)));
}

Task<void> InfoRoutes::get_health(Request&, Responder& responder) {
  auto problem = runs.health();
  if (!problem) problem = sessions.problem();
  if (problem) {
    co_await responder.send(to_response(*problem));
  } else {
    co_await responder.send(http::json_response(R"({"status":"ok"})"));
  }
}

Task<void> InfoRoutes::get_metrics(Request&, Responder& responder) {
  http::Response response = http::text_response(metrics.text(gauges()));
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  co_await responder.send(std::move(response));
}

Task<void> InfoRoutes::get_openapi(Request&, Responder& responder) {
  co_await responder.send(http::json_response(std::string(openapi_text())));
}

void add_info_routes(http::Router& router, InfoRoutes& routes) {
  const auto add = [&](const char* path, Task<void> (InfoRoutes::*handler)(Request&, Responder&)) {
    router.add({.method = Method::kGet,
                .path = path,
                .handler =
                    [&routes, handler](Request& request, Responder& responder) {
                      return (routes.*handler)(request, responder);
                    },
                .query = kNoParameters});
  };
  add("/v1/info", &InfoRoutes::get_info);
  add("/v1/openapi.json", &InfoRoutes::get_openapi);
  add("/healthz", &InfoRoutes::get_health);
  add("/metrics", &InfoRoutes::get_metrics);
}

void add_run_routes(http::Router& router, RunService& service) {
  router.add(
      {.method = Method::kPost,
       .path = "/v1/run",
       .handler = [&service](Request& request,
                             Responder& responder) { return service.run(request, responder); },
       .body = BodyMode::kWhole,
       .query = kStreamParameter});
  router.add(
      {.method = Method::kDelete,
       .path = "/v1/runs/{id}",
       .handler = [&service](Request& request,
                             Responder& responder) { return service.cancel(request, responder); },
       .query = kNoParameters});
}

}  // namespace sbx::daemon
