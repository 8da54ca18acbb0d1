#include "agentd/api/routes.h"

#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "agentd/api/info.h"
#include "agentd/api/submission.h"
#include "agentd/embedded/embedded.h"
#include "http/file_body.h"
#include "http/uri.h"
#include "runtime/base/scope_exit.h"

namespace agentd::api {

using Json = nlohmann::ordered_json;
using sbx::http::BodyMode;
using sbx::http::json_response;
using sbx::http::Method;
using sbx::http::Problem;
using sbx::http::Response;
using service::Caller;
using service::RequestService;

namespace {

constexpr std::size_t kPoolBytes = 128U << 10;  // larger bodies are not for the loop
constexpr int kDefaultPage = 50;
constexpr int kMaxPage = 200;
constexpr std::chrono::seconds kKeepAlive{15};

Problem no_such_request() {
  return {.status = 404, .code = "unknown_request", .detail = "There is no such request."};
}

Problem bad_parameter(std::string_view name, std::string detail) {
  return {.status = 400,
          .code = "invalid_parameter",
          .detail = std::move(detail),
          .field = std::string(name)};
}

// A whole number; nullopt for anything else.
std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::string event_text(std::int64_t id, std::string_view kind, std::string_view data) {
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", id, kind, data);
}

Response stream_head() {
  Response head;
  head.content_type = "text/event-stream";
  head.headers.add("Cache-Control", "no-store");
  return head;
}

}  // namespace

const std::vector<Routes::Row>& Routes::rows() {
  static const std::vector<Row> kRows = {
      {Method::kPost, "/v1/requests", &Routes::submit, BodyMode::kWhole},
      {Method::kPost, "/v1/agent", &Routes::submit_task, BodyMode::kWhole},
      {Method::kGet, "/v1/requests", &Routes::list, BodyMode::kNone, {"limit", "before"}},
      {Method::kGet, "/v1/requests/{id}", &Routes::get_record},
      {Method::kDelete, "/v1/requests/{id}", &Routes::cancel},
      {Method::kGet, "/v1/requests/{id}/events", &Routes::events},
      {Method::kGet, "/v1/requests/{id}/artifacts/{name...}", &Routes::artifact},
      {Method::kGet, "/v1/info", &Routes::info, BodyMode::kNone, {"provider"}},
      {Method::kGet, "/healthz", &Routes::health},
      {Method::kGet, "/metrics", &Routes::get_metrics},
      {Method::kGet, "/v1/openapi.json", &Routes::openapi},
  };
  return kRows;
}

std::vector<std::pair<Method, std::string_view>> Routes::all() {
  std::vector<std::pair<Method, std::string_view>> list;
  for (const Row& row : rows()) list.emplace_back(row.method, row.path);
  return list;
}

void Routes::add_to(sbx::http::Router& router) {
  for (const Row& row : rows()) {
    std::vector<std::string> query = row.query;
    query.emplace_back("token");  // TcpGuard's
    router.add({.method = row.method,
                .path = std::string(row.path),
                .handler = [this, action = row.action](
                               Request& request,
                               Responder& responder) { return answer(request, responder, action); },
                .body = row.body,
                .body_limit = std::nullopt,
                .query = std::move(query)});
  }
}

std::optional<Problem> Routes::refuse(const Request& request) const {
  if (request.peer.uid) return std::nullopt;  // a Unix socket: its mode admitted him
  if (parts_.guard != nullptr) return parts_.guard->check(request);
  return Problem{.status = 403,
                 .code = sbx::http::problem_code::kPeerRefused,
                 .detail = "Only clients of the Unix socket are answered."};
}

Routes::Task Routes::answer(Request& request, Responder& responder, Action action) {
  if (auto problem = refuse(request)) {
    co_await send(responder, *std::move(problem));
    co_return;
  }
  Caller caller;
  caller.uid = request.peer.uid;
  // Who has the token is who started agentd.
  caller.all = !request.peer.uid || *request.peer.uid == 0 || *request.peer.uid == ::geteuid();
  co_await (this->*action)(request, responder, caller);
}

void clean(Problem& problem, const redact::Redactor& redactor) {
  const auto clean_text = [&](std::string& text) { text = redactor.clean(text).text(); };
  clean_text(problem.detail);
  clean_text(problem.field);
  clean_text(problem.fix);
  for (auto& [name, value] : problem.more) clean_text(value);
}

Routes::Task Routes::send(Responder& responder, Problem problem) const {
  clean(problem, parts_.redactor);
  Response response = to_response(problem);
  co_await responder.send(std::move(response));
}

Routes::Task Routes::submit(Request& request, Responder& responder, Caller caller) {
  co_await take(request, responder, caller, record::Mode::kCode);
}

Routes::Task Routes::submit_task(Request& request, Responder& responder, Caller caller) {
  co_await take(request, responder, caller, record::Mode::kTools);
}

Routes::Task Routes::take(Request& request, Responder& responder, Caller caller,
                          record::Mode mode) {
  const bool large = request.body.size() > kPoolBytes;
  auto job = [body = std::move(request.body), mode, ceilings = parts_.ceilings] {
    return parse_submission(body, mode, ceilings);
  };
  std::optional<sbx::http::OrProblem<service::Submitted>> parsed;
  if (large) {
    parsed = co_await parts_.pool.run(job);
  } else {
    parsed = job();
  }
  if (auto* problem = std::get_if<Problem>(&*parsed)) {
    parts_.metrics.count_refused(problem->code);
    co_await send(responder, std::move(*problem));
    co_return;
  }
  auto& submitted = std::get<service::Submitted>(*parsed);
  const providers::ProviderInfo& provider = parts_.provider.info();
  record::Record& record = submitted.record;
  record.provider_kind = provider.kind;
  record.model = provider.model;
  record.replayed = provider.replayed;
  const prompts::PromptVersions& versions = parts_.composer.versions();
  if (mode == record::Mode::kTools) {
    record.prompts = {{"tools", versions.tools}};
  } else {
    record.prompts = {{"codegen", versions.codegen + "." + record.language},
                      {"repair", versions.repair}};
  }
  auto outcome = co_await parts_.requests.submit(std::move(submitted), caller);
  if (auto* problem = std::get_if<Problem>(&outcome)) {
    co_await send(responder, std::move(*problem));
    co_return;
  }
  const std::string& id = std::get<std::string>(outcome);
  const Json body{{"id", id}, {"state", "queued"}};
  Response response = json_response(body.dump(), 202);
  response.headers.add("Location", "/v1/requests/" + id);
  co_await responder.send(std::move(response));
}

Routes::Task Routes::get_record(Request& request, Responder& responder, Caller caller) {
  auto record = co_await parts_.requests.record(request.parameters.at("id"), caller);
  if (!record) {
    co_await send(responder, no_such_request());
    co_return;
  }
  Response response = json_response(record->text());
  co_await responder.send(std::move(response));
}

Routes::Task Routes::list(Request& request, Responder& responder, Caller caller) {
  std::int64_t limit = kDefaultPage;
  if (const auto given = request.target.query.find("limit")) {
    const auto number = whole(*given);
    if (!number || *number < 1 || *number > kMaxPage) {
      co_await send(responder, bad_parameter("limit", fmt::format("limit is 1 to {}.", kMaxPage)));
      co_return;
    }
    limit = *number;
  }
  std::string before(request.target.query.find("before").value_or(""));
  if (!before.empty() && !RequestService::is_id(before)) {
    co_await send(responder, bad_parameter("before", "before is the id of a request."));
    co_return;
  }
  auto page = co_await parts_.requests.list(std::move(before), static_cast<int>(limit), caller);
  if (!page) {
    Problem problem{.status = 500, .code = "not_readable", .detail = page.error().detail};
    co_await send(responder, std::move(problem));
    co_return;
  }
  Response response = json_response(page->text());
  co_await responder.send(std::move(response));
}

Routes::Task Routes::cancel(Request& request, Responder& responder, Caller caller) {
  const std::string id = request.parameters.at("id");
  const auto done = co_await parts_.requests.cancel(id, caller);
  if (done == RequestService::Cancelled::kUnknown) {
    co_await send(responder, no_such_request());
    co_return;
  }
  if (done == RequestService::Cancelled::kEndedBefore) {
    Problem problem{
        .status = 409, .code = "already_ended", .detail = "The request has ended already."};
    co_await send(responder, std::move(problem));
    co_return;
  }
  const Json body{{"id", id}, {"state", "cancelling"}};
  Response response = json_response(body.dump(), 202);
  co_await responder.send(std::move(response));
}

Routes::Task Routes::events(Request& request, Responder& responder, Caller caller) {
  std::int64_t last = 0;
  if (const auto given = request.headers.find("Last-Event-ID"); given && !given->empty()) {
    const auto number = whole(*given);
    if (!number) {
      co_await send(responder, bad_parameter("Last-Event-ID", "Last-Event-ID is a number."));
      co_return;
    }
    last = *number;
  }
  const std::string id = request.parameters.at("id");
  if (auto live = parts_.requests.live(id, caller)) {
    co_await follow(request, responder, std::move(live), last);
    co_return;
  }
  const auto stored = co_await parts_.requests.stored_events(id, caller);
  if (!stored) {
    co_await send(responder, no_such_request());
    co_return;
  }
  std::string text;
  for (const Json& event : Json::parse(stored->text(), nullptr, false)) {
    const std::int64_t number = event.value("id", std::int64_t{0});
    if (number > last) text += event_text(number, event.value("event", ""), event["data"].dump());
  }
  Response response = stream_head();
  response.body = std::move(text);
  co_await responder.send(std::move(response));
}

Routes::Task Routes::follow(Request& request, Responder& responder,
                            std::shared_ptr<service::LiveRequest> live, std::int64_t last) {
  ++live->followers;
  const sbx::ScopeExit gone([&live] { --live->followers; });
  auto next = static_cast<std::size_t>(last);
  const auto news = [&live, &next] {
    std::string text;
    for (; next < live->events.size(); ++next) {
      const service::LiveEvent& event = live->events[next];
      text += event_text(event.id, event.kind, event.data.text());
    }
    return text;
  };
  Response head = stream_head();
  head.body = news();
  responder.begin(std::move(head));
  for (;;) {
    std::string text = news();
    if (live->sealed) {
      (void)co_await responder.finish(std::move(text));  // whoever is gone has had all
      co_return;
    }
    if (text.empty()) {
      const auto wake = co_await live->changed.wait(sbx::async::after(kKeepAlive), request.gone);
      if (wake == sbx::async::Wake::kCancelled) co_return;
      if (wake == sbx::async::Wake::kReady) continue;
      text = ": keep-alive\n\n";
    }
    const bool sent = co_await responder.write(std::move(text));
    if (!sent) co_return;
  }
}

std::string content_disposition(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('/') + 1);
  std::string ascii;
  for (const char c : last) {
    const bool plain = c >= ' ' && c < '\x7F' && c != '"' && c != '\\' && c != '%';
    ascii += plain ? c : '_';
  }
  return fmt::format("attachment; filename=\"{}\"; filename*=UTF-8''{}", ascii,
                     sbx::http::percent_encode(last));
}

// SECURITY: a file of a hostile program. Never shown in place, never sniffed, and where a browser
// shows it all the same, without scripts, forms or an origin.
Routes::Task Routes::artifact(Request& request, Responder& responder, Caller caller) {
  auto found = co_await parts_.requests.artifact(request.parameters.at("id"),
                                                 request.parameters.at("name"), caller);
  if (!found) {
    Problem problem{
        .status = 404, .code = "unknown_artifact", .detail = "There is no such artifact."};
    co_await send(responder, std::move(problem));
    co_return;
  }
  Response head;
  head.content_type = found->media_type.empty() ? "application/octet-stream" : found->media_type;
  head.headers.add("Content-Disposition", content_disposition(found->name));
  head.headers.add("X-Content-Type-Options", "nosniff");
  head.headers.add("Content-Security-Policy", "sandbox; default-src 'none'");
  head.headers.add("Cache-Control", "private, no-store");
  (void)co_await sbx::http::send_file(responder, parts_.pool, std::move(found->file), found->size,
                                      std::move(head));  // whoever is gone needs no more
}

Routes::Task Routes::info(Request& request, Responder& responder, Caller /*anybody*/) {
  const std::string_view wanted = request.target.query.find("provider").value_or("");
  if (!wanted.empty() && wanted != "ask") {
    co_await send(responder, bad_parameter("provider", "provider is ask, or left out."));
    co_return;
  }
  providers::Reach reach{.asked = false};
  if (wanted == "ask") reach = co_await parts_.provider.reach(request.gone);
  if (wanted == "ask") parts_.sandbox.doubt();  // who wants to know of one wants to know of all
  const sandbox::InfoOutcome outcome = co_await parts_.sandbox.state(request.gone);
  const Json json = info_json({.provider = parts_.provider.info(),
                               .reach = reach,
                               .sandbox = outcome,
                               .prompts = parts_.composer.versions(),
                               .ceilings = parts_.ceilings});
  Response response = json_response(parts_.redactor.clean_json(json).text());
  co_await responder.send(std::move(response));
}

// agentd is up without its sandbox, and says that it waits for it; or with a disk that is full.
Routes::Task Routes::health(Request& request, Responder& responder, Caller /*anybody*/) {
  const sandbox::InfoOutcome outcome = co_await parts_.sandbox.state(request.gone);
  const auto* failure = std::get_if<sandbox::SandboxFailure>(&outcome);
  const auto there = parts_.requests.check_place();
  const bool stores = parts_.requests.stores();
  const auto or_null = [](std::string text) { return text.empty() ? Json() : Json(text); };
  const char* const status = stores ? "ok" : "failing";
  Json json{{"status", parts_.requests.closed() ? "ending" : status},
            {"store", stores ? "ok" : "failed"},
            {"problem", or_null(there ? "" : to_string(there.error()))},
            {"fix", or_null(there ? "" : there.error().fix)},
            {"sandbox", failure == nullptr ? "ok" : std::string(to_string(failure->kind))},
            {"provider", parts_.provider.info().kind},
            {"running", parts_.requests.running()},
            {"queued", parts_.requests.queued()}};
  Response response = json_response(parts_.redactor.clean_json(json).text());
  co_await responder.send(std::move(response));
}

Routes::Task Routes::get_metrics(Request& /*none*/, Responder& responder, Caller /*anybody*/) {
  Response response;
  response.content_type = "text/plain; version=0.0.4";
  response.body = parts_.metrics.text(parts_.gauges());
  co_await responder.send(std::move(response));
}

Routes::Task Routes::openapi(Request& /*none*/, Responder& responder, Caller /*anybody*/) {
  Response response = json_response(std::string(embedded::find(embedded::documents(), "openapi")));
  co_await responder.send(std::move(response));
}

}  // namespace agentd::api
