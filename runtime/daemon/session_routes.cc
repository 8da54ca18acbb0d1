#include "runtime/daemon/session_routes.h"

#include <fmt/core.h>

#include "runtime/daemon/json_parts.h"
#include "runtime/daemon/routes.h"
#include "runtime/daemon/session_problems.h"
#include "runtime/daemon/session_workspace.h"

namespace sbx::daemon {
namespace {

using async::Task;
using http::Problem;
using http::Request;
using http::Responder;

std::string size_text(const std::optional<plan::WorkspaceSize>& size) {
  if (!size) return "null";
  return fmt::format(R"({{"size":{},"inodes":{}}})", size->bytes, size->inodes);
}

std::string session_json(const Session& session) {
  const SessionRecord& record = session.record();
  return fmt::format(
      R"({{"id":"{}","owner_uid":{},"created_at":"{}","last_used_at":"{}","idle_expires_at":"{}",)"
      R"("expires_at":"{}","idle_seconds":{},"age_seconds":{},)"
      R"("limits":{{"work":{},"work_inodes":{}}},"usage":{},"running":{}}})",
      record.id, record.owner ? std::to_string(*record.owner) : "null",
      session_time_text(record.created), session_time_text(session.last_used()),
      session_time_text(std::min(session.idle_end(), session.age_end())),
      session_time_text(session.age_end()), record.idle.count(), record.age.count(), record.work,
      record.work_inodes, size_text(session.size()), session.running());
}

}  // namespace

Task<void> SessionRoutes::create(Request& request, Responder& responder) {
  const auto wish = parse_session_request(request.body, rules_, times_);
  if (const auto* problem = std::get_if<Problem>(&wish)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  if (const auto refused = runs_.refuse_now()) {
    co_await responder.send(to_response(*refused));
    co_return;
  }
  auto made = co_await sessions_.create(request.peer, std::get<SessionWish>(wish));
  if (const auto* problem = std::get_if<Problem>(&made)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  const Session& session = *std::get<SessionPtr>(made);
  http::Response response = http::json_response(session_json(session), 201);
  response.headers.set("Location", "/v1/sessions/" + session.record().id);
  co_await responder.send(std::move(response));
}

Task<void> SessionRoutes::list(Request& request, Responder& responder) {
  std::string json;
  for (const SessionPtr& session : sessions_.all_of(request.peer)) {
    json += (json.empty() ? "" : ",") + session_json(*session);
  }
  co_await responder.send(http::json_response("{\"sessions\":[" + json + "]}"));
}

Task<void> SessionRoutes::get(Request& request, Responder& responder) {
  auto found = sessions_.find(request.peer, request.parameters.at("id"));
  if (const auto* problem = std::get_if<Problem>(&found)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  const SessionPtr session = std::get<SessionPtr>(std::move(found));
  // One whose run is on tells the size from before.
  if (!session->size_is_exact() && !session->running()) {
    std::optional<Problem> failed;
    auto hold = co_await hold_for_reading(session);
    if (std::holds_alternative<Hold>(hold)) failed = co_await sessions_.measure(session);
    if (failed) {
      co_await responder.send(to_response(*failed));
      co_return;
    }
  }
  co_await responder.send(http::json_response(session_json(*session)));
}

Task<void> SessionRoutes::remove(Request& request, Responder& responder) {
  auto found = sessions_.find(request.peer, request.parameters.at("id"));
  if (const auto* problem = std::get_if<Problem>(&found)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  const std::string id = std::get<SessionPtr>(found)->record().id;
  auto removed = co_await sessions_.remove(std::get<SessionPtr>(std::move(found)));
  if (const auto* problem = std::get_if<Problem>(&removed)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  std::string json = fmt::format(R"({{"id":"{}","deleted":true,"run_cancelled":{}}})", id,
                                 std::get<bool>(removed));
  co_await responder.send(http::json_response(std::move(json)));
}

Task<void> SessionRoutes::run(Request& request, Responder& responder) {
  auto found = sessions_.find(request.peer, request.parameters.at("id"));
  if (const auto* problem = std::get_if<Problem>(&found)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  SessionPtr session = std::get<SessionPtr>(std::move(found));
  auto parsed = co_await runs_.parse(std::move(request.body), RunPlace::kSession);
  if (const auto* problem = std::get_if<Problem>(&parsed)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  const auto problem = co_await try_run(std::move(session), std::get<RunRequest>(std::move(parsed)),
                                        request, responder);
  if (problem) co_await responder.send(to_response(*problem));
}

// A problem, or the run was served.
Task<std::optional<Problem>> SessionRoutes::try_run(SessionPtr session, RunRequest run,
                                                    Request& request, Responder& responder) {
  const async::Deadline deadline = async::after(queue_time_);
  auto held = co_await hold_for_run(session, run.wait, deadline, request.gone);
  if (auto* problem = std::get_if<Problem>(&held)) co_return std::move(*problem);
  Hold hold = std::get<Hold>(std::move(held));
  auto failed = co_await sessions_.measure(session);
  if (failed) co_return failed;
  run.policy.limits.work = session->record().work;
  run.policy.limits.work_inodes = session->record().work_inodes;
  run.request.workspace = session->size();  // so that it is refused before it waits for its turn
  auto workspace = SessionWorkspace::make(sessions_, session, std::move(hold));
  if (!workspace) co_return store_problem(workspace.error());
  const SessionRun share{
      .id = session->record().id, .workspace = workspace->get(), .deleted = &session->deleted()};
  co_await runs_.serve(std::move(run), share, request, responder);
  // Deleted before the run began: there was no answer.
  if (!responder.begun() && session->ending()) co_return session_deleted(session->record().id);
  co_return std::nullopt;
}

void add_session_routes(http::Router& router, SessionRoutes& routes) {
  const auto add = [&](http::Method method, const char* path, http::BodyMode body,
                       Task<void> (SessionRoutes::*handler)(Request&, Responder&)) {
    router.add(
        {.method = method,
         .path = path,
         .handler = [&routes, handler](
                        Request& request,
                        Responder& responder) { return (routes.*handler)(request, responder); },
         .body = body,
         .query = std::string_view(path).ends_with("/run") ? kStreamParameter : kNoParameters});
  };
  using http::BodyMode;
  using http::Method;
  add(Method::kPost, "/v1/sessions", BodyMode::kWhole, &SessionRoutes::create);
  add(Method::kGet, "/v1/sessions", BodyMode::kNone, &SessionRoutes::list);
  add(Method::kGet, "/v1/sessions/{id}", BodyMode::kNone, &SessionRoutes::get);
  add(Method::kDelete, "/v1/sessions/{id}", BodyMode::kNone, &SessionRoutes::remove);
  add(Method::kPost, "/v1/sessions/{id}/run", BodyMode::kWhole, &SessionRoutes::run);
}

}  // namespace sbx::daemon
