#include "agentd/cli/api_client.h"

#include <fmt/core.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agentd/cli/follower.h"
#include "agentd/render/json_view.h"
#include "http/async/cancellation.h"
#include "http/async/fd_watch.h"
#include "http/async/loop.h"
#include "http/async/task_group.h"
#include "http/unreachable.h"

namespace agentd::cli {

using Json = nlohmann::ordered_json;
using render::member;
using render::text_at;
using sbx::async::Loop;
using sbx::async::Task;
using sbx::http::ClientError;
using sbx::http::ClientRequest;
using sbx::http::ClientResponse;
using sbx::http::ClientResult;
using sbx::http::Method;

namespace {

constexpr std::size_t kMaxBytes = 64U << 20;
constexpr const char* kSeeHistory = "agentctl history shows whether it was";

// Not a date, which the field may be too.
bool is_seconds(const std::string& text) {
  return !text.empty() && text.size() < 7 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

OrTrouble<Json> parsed(OrTrouble<std::string> answer) {
  if (auto* trouble = std::get_if<Trouble>(&answer)) return std::move(*trouble);
  Json json = Json::parse(std::get<std::string>(answer), nullptr, false);
  if (json.is_discarded()) return Trouble{.text = "agentd's answer is not JSON"};
  return json;
}

Task<void> cancel_when(Loop& loop, int signals, sbx::async::Cancellation& interrupt) {
  auto watch = sbx::async::FdWatch::watch(loop, signals);
  if (!watch) co_return;  // without a signalfd a signal ends the process
  (void)co_await watch->readable();
  interrupt.cancel();
}

Task<void> perform_on(Loop& loop, ClientRequest request, const sbx::async::Cancellation& interrupt,
                      ClientResult& result) {
  sbx::http::AsyncClient client(loop);
  result = co_await client.perform(std::move(request), &interrupt);
  loop.stop();
}

// kCancelled once `signals` is readable.
ClientResult perform_unless(int signals, ClientRequest request) {
  Loop loop;
  sbx::async::Cancellation interrupt;
  ClientResult result;
  sbx::async::TaskGroup tasks(loop);
  tasks.spawn(cancel_when(loop, signals, interrupt));
  tasks.spawn(perform_on(loop, std::move(request), interrupt, result));
  loop.run();
  return result;
}

}  // namespace

Trouble trouble_of(const ClientError& error, const std::string& socket) {
  if (error.kind == ClientError::Kind::kTimeout) {
    return {.text = fmt::format("agentd on {} was silent: {}", socket, error.detail),
            .fix = "see whether agentd is stopped or hangs: its log and its service's state"};
  }
  if (error.kind != ClientError::Kind::kUnreachable) {
    return {.text = fmt::format("{}: {}", socket, error.detail),
            .fix = "see agentd's log: it may have ended"};
  }
  auto why = sbx::http::explain_unreachable("agentd", socket, error, "--socket or AGENTD_SOCKET");
  return {.text = std::move(why.text), .fix = std::move(why.fix)};
}

Trouble trouble_of(int status, std::string_view problem, const std::string& retry_after) {
  const Json json = Json::parse(problem, nullptr, false);
  std::string text = text_at(json, "detail");
  if (const std::string field = text_at(json, "field"); !field.empty()) text += " (" + field + ")";
  if (text.empty()) text = fmt::format("agentd answered {}", status);
  // What the caller asked for is wrong; that there is no room is not his fault.
  const bool wrong_use = status >= 400 && status < 500 && status != 429;
  std::string fix = text_at(json, "fix");
  if (is_seconds(retry_after)) {
    fix += (fix.empty() ? "" : "; ") + fmt::format("try again in {} s", retry_after);
  }
  return {.wrong_use = wrong_use, .text = std::move(text), .fix = std::move(fix)};
}

std::optional<Trouble> stranger(const Json& info, const std::string& socket) {
  if (!text_at(member(info, "provider"), "kind").empty() && member(info, "sandbox").is_object()) {
    return std::nullopt;
  }
  const bool sbxd = member(info, "profiles").is_array() && member(info, "admission").is_object();
  return Trouble{.text = fmt::format("what answers on {} is {}", socket,
                                     sbxd ? "sbxd, and not agentd" : "not agentd"),
                 .fix = "name agentd's socket with --socket or AGENTD_SOCKET"};
}

ClientRequest ApiClient::request(Method method, const std::string& target) const {
  ClientRequest request;
  request.method = method;
  request.url = "http://agentd" + target;
  request.unix_socket = socket_;
  request.body_bytes = kMaxBytes;
  request.timeout = time_;
  return request;
}

OrTrouble<std::string> ApiClient::perform(const ClientRequest& request) {
  return answer_of(client_.perform(request));
}

OrTrouble<std::string> ApiClient::answer_of(ClientResult result) const {
  if (const auto* error = std::get_if<ClientError>(&result)) return trouble_of(*error, socket_);
  auto& response = std::get<ClientResponse>(result);
  if (response.status >= 300) {
    return trouble_of(response.status, response.body,
                      std::string(response.headers.find("Retry-After").value_or("")));
  }
  return std::move(response.body);
}

OrTrouble<Json> ApiClient::info(const std::string& query) {
  auto info = get("/v1/info" + query);
  if (std::holds_alternative<Trouble>(info)) return info;
  if (auto other = stranger(std::get<Json>(info), socket_)) return *std::move(other);
  return info;
}

OrTrouble<Json> ApiClient::get(const std::string& target) {
  return parsed(perform(request(Method::kGet, target)));
}

OrTrouble<Json> ApiClient::submit(const Json& body, int interrupted) {
  ClientRequest call = request(Method::kPost, "/v1/requests");
  call.headers.add("Content-Type", "application/json");
  call.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  ClientResult result = perform_unless(interrupted, std::move(call));
  const auto* error = std::get_if<ClientError>(&result);
  if (error == nullptr) return parsed(answer_of(std::move(result)));
  Trouble trouble = trouble_of(*error, socket_);
  if (error->kind == ClientError::Kind::kUnreachable) return trouble;
  if (error->kind == ClientError::Kind::kCancelled) {
    signalfd_siginfo taken{};  // it has had its effect
    (void)!::read(interrupted, &taken, sizeof taken);
    trouble = {.text = "left before agentd answered"};
  }
  trouble.text += "; the request may have been taken";
  trouble.fix += (trouble.fix.empty() ? "" : "; ") + std::string(kSeeHistory);
  return trouble;
}

OrTrouble<Json> ApiClient::remove(const std::string& target) {
  return parsed(perform(request(Method::kDelete, target)));
}

OrTrouble<std::string> ApiClient::bytes(const std::string& target) {
  return perform(request(Method::kGet, target));
}

OrTrouble<bool> ApiClient::follow(const std::string& id, int interrupted,
                                  const std::function<void(const Json&)>& on_event) {
  Follower follower(socket_, id, interrupted, on_event);
  return follower.run();
}

}  // namespace agentd::cli
