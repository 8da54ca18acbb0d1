#include "agentd/cli/api_client.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "agentd/cli/follower.h"
#include "agentd/render/json_view.h"

namespace agentd::cli {

using Json = nlohmann::ordered_json;
using render::text_at;
using sbx::http::ClientError;
using sbx::http::ClientRequest;
using sbx::http::ClientResponse;
using sbx::http::Method;

namespace {

constexpr std::size_t kMaxBytes = 64U << 20;

OrTrouble<Json> parsed(OrTrouble<std::string> answer) {
  if (auto* trouble = std::get_if<Trouble>(&answer)) return std::move(*trouble);
  Json json = Json::parse(std::get<std::string>(answer), nullptr, false);
  if (json.is_discarded()) return Trouble{.text = "agentd's answer is not JSON"};
  return json;
}

}  // namespace

Trouble trouble_of(const ClientError& error, const std::string& socket) {
  Trouble trouble{.text = fmt::format("{}: {}", socket, error.detail)};
  if (error.kind == ClientError::Kind::kUnreachable) {
    trouble.text = "agentd does not answer on " + socket;
    trouble.fix = "start agentd, or name its socket with --socket or AGENTD_SOCKET";
  }
  return trouble;
}

Trouble trouble_of(int status, std::string_view problem) {
  const Json json = Json::parse(problem, nullptr, false);
  std::string text = text_at(json, "detail");
  if (const std::string field = text_at(json, "field"); !field.empty()) text += " (" + field + ")";
  if (text.empty()) text = fmt::format("agentd answered {}", status);
  // What the caller asked for is wrong; that there is no room is not his fault.
  const bool wrong_use = status >= 400 && status < 500 && status != 429;
  return {.wrong_use = wrong_use, .text = std::move(text), .fix = text_at(json, "fix")};
}

ClientRequest ApiClient::request(Method method, const std::string& target) const {
  ClientRequest request;
  request.method = method;
  request.url = "http://agentd" + target;
  request.unix_socket = socket_;
  request.body_bytes = kMaxBytes;
  return request;
}

OrTrouble<std::string> ApiClient::perform(const ClientRequest& request) {
  auto result = client_.perform(request);
  if (const auto* error = std::get_if<ClientError>(&result)) return trouble_of(*error, socket_);
  auto& response = std::get<ClientResponse>(result);
  if (response.status >= 300) return trouble_of(response.status, response.body);
  return std::move(response.body);
}

OrTrouble<Json> ApiClient::get(const std::string& target) {
  return parsed(perform(request(Method::kGet, target)));
}

OrTrouble<Json> ApiClient::post(const std::string& target, const Json& body) {
  ClientRequest call = request(Method::kPost, target);
  call.headers.add("Content-Type", "application/json");
  call.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  return parsed(perform(call));
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
