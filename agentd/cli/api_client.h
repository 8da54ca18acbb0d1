// ApiClient: agentd's HTTP interface for agentctl. Blocking; but for follow(), which runs a loop.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "http/client.h"
#include "runtime/base/unique_fd.h"

namespace agentd::cli {

// What went wrong, and whose it is.
struct Trouble {
  bool wrong_use = false;  // the caller's: exit 2; else exit 3
  std::string text{};
  std::string fix{};
};

template <typename T>
using OrTrouble = std::variant<T, Trouble>;

class ApiClient {
 public:
  explicit ApiClient(std::string socket) : socket_(std::move(socket)) {}

  // How long the next exchanges may take, each (60 s).
  void limit_time(std::chrono::milliseconds time) { time_ = time; }

  // /v1/info, of an agentd: a trouble where something else answers. `query`: "?provider=ask".
  [[nodiscard]] OrTrouble<nlohmann::ordered_json> info(const std::string& query = {});
  [[nodiscard]] OrTrouble<nlohmann::ordered_json> get(const std::string& target);
  // Hands a request in. What leaves open whether agentd has taken it says so, a signal that
  // `interrupted` (a signalfd) tells of included, which ends the wait at once.
  [[nodiscard]] OrTrouble<nlohmann::ordered_json> submit(const nlohmann::ordered_json& body,
                                                         int interrupted);
  [[nodiscard]] OrTrouble<nlohmann::ordered_json> remove(const std::string& target);
  [[nodiscard]] OrTrouble<std::string> bytes(const std::string& target);

  // Calls `on_event` with each event's data until the last one. When `interrupted` becomes readable
  // (a signalfd), the request is cancelled and its end waited for. Lost connections are made again
  // behind the last event.
  [[nodiscard]] OrTrouble<bool> follow(
      const std::string& id, int interrupted,
      const std::function<void(const nlohmann::ordered_json&)>& on_event);

 private:
  [[nodiscard]] sbx::http::ClientRequest request(sbx::http::Method method,
                                                 const std::string& target) const;
  [[nodiscard]] OrTrouble<std::string> perform(const sbx::http::ClientRequest& request);
  [[nodiscard]] OrTrouble<std::string> answer_of(sbx::http::ClientResult result) const;

  std::string socket_;
  std::chrono::milliseconds time_{60'000};
  sbx::http::Client client_;
};

// What a failed exchange, or an answer that is a problem, means. `socket` is named in the fix.
[[nodiscard]] Trouble trouble_of(const sbx::http::ClientError& error, const std::string& socket);
// `retry_after`: the header's value, or "".
[[nodiscard]] Trouble trouble_of(int status, std::string_view problem,
                                 const std::string& retry_after = {});
// Nothing for the /v1/info of an agentd; else who answers in its place.
[[nodiscard]] std::optional<Trouble> stranger(const nlohmann::ordered_json& info,
                                              const std::string& socket);

}  // namespace agentd::cli
