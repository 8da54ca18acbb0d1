// Routes: agentd's HTTP interface (docs/api.md). On the loop.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agentd/api/tcp_guard.h"
#include "agentd/prompts/composer.h"
#include "agentd/providers/provider.h"
#include "agentd/record/record.h"
#include "agentd/redact/redactor.h"
#include "agentd/sandbox/watch.h"
#include "agentd/service/metrics.h"
#include "agentd/service/request_service.h"
#include "http/async/work_pool.h"
#include "http/handler.h"
#include "http/router.h"

namespace agentd::api {

class Routes {
 public:
  struct Parts {
    sbx::async::WorkPool& pool;  // for large bodies and for files
    service::RequestService& requests;
    service::Metrics& metrics;
    const redact::Redactor& redactor;
    providers::Provider& provider;
    sandbox::SandboxWatch& sandbox;
    const prompts::Composer& composer;
    record::Budget ceilings{};
    std::function<service::Gauges()> gauges;
    const TcpGuard* guard = nullptr;  // null: no TCP, and none is answered
  };
  // All are borrowed and outlive it.
  explicit Routes(Parts parts) : parts_(std::move(parts)) {}

  void add_to(sbx::http::Router& router);
  // Method and template of each, for the test that compares them with the OpenAPI document.
  [[nodiscard]] static std::vector<std::pair<sbx::http::Method, std::string_view>> all();

 private:
  using Request = sbx::http::Request;
  using Responder = sbx::http::Responder;
  using Task = sbx::async::Task<void>;
  using Action = Task (Routes::*)(Request&, Responder&, service::Caller);

  struct Row {
    sbx::http::Method method;
    std::string_view path;
    Action action;
    sbx::http::BodyMode body = sbx::http::BodyMode::kNone;
    std::vector<std::string> query{};  // beside the token of TCP
  };
  [[nodiscard]] static const std::vector<Row>& rows();

  // Who asks, then the action.
  Task answer(Request& request, Responder& responder, Action action);
  [[nodiscard]] std::optional<sbx::http::Problem> refuse(const Request& request) const;
  Task send(Responder& responder, sbx::http::Problem problem) const;

  Task submit(Request& request, Responder& responder, service::Caller caller);
  Task submit_task(Request& request, Responder& responder, service::Caller caller);
  Task take(Request& request, Responder& responder, service::Caller caller, record::Mode mode);
  Task get_record(Request& request, Responder& responder, service::Caller caller);
  Task list(Request& request, Responder& responder, service::Caller caller);
  Task cancel(Request& request, Responder& responder, service::Caller caller);
  Task events(Request& request, Responder& responder, service::Caller caller);
  Task follow(Request& request, Responder& responder, std::shared_ptr<service::LiveRequest> live,
              std::int64_t last);
  Task artifact(Request& request, Responder& responder, service::Caller caller);
  Task info(Request& request, Responder& responder, service::Caller caller);
  Task health(Request& request, Responder& responder, service::Caller caller);
  Task get_metrics(Request& request, Responder& responder, service::Caller caller);
  Task openapi(Request& request, Responder& responder, service::Caller caller);

  Parts parts_;
};

// Problems quote what clients wrote. For those of the server itself, too.
void clean(sbx::http::Problem& problem, const redact::Redactor& redactor);

// "attachment", with the name in ASCII and as RFC 8187 has it. `name` is what a program chose.
[[nodiscard]] std::string content_disposition(std::string_view name);

}  // namespace agentd::api
