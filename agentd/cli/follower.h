// Follower: a request's events, to their end. Runs a loop of its own; used by ApiClient.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "agentd/cli/api_client.h"
#include "agentd/providers/sse.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/async/task_group.h"
#include "http/client.h"

namespace agentd::cli {

class Follower {
 public:
  using OnEvent = std::function<void(const nlohmann::ordered_json&)>;
  // `interrupted` and `on_event` are borrowed.
  Follower(std::string socket, std::string id, int interrupted, const OnEvent& on_event);

  // True when the last event has come.
  [[nodiscard]] OrTrouble<bool> run();

 private:
  [[nodiscard]] sbx::async::Task<void> follow();
  [[nodiscard]] sbx::async::Task<void> watch_interrupt();
  [[nodiscard]] sbx::async::Task<void> cancel();
  [[nodiscard]] sbx::http::ClientRequest call(sbx::http::Method method,
                                              const std::string& path) const;
  void take(const providers::SseEvent& event);

  std::string socket_;
  std::string id_;
  int interrupted_;
  const OnEvent& on_event_;
  int seen_ = 0;  // events: ids count from 1 without gaps
  bool ended_ = false;
  OrTrouble<bool> outcome_ = true;

  sbx::async::Loop loop_;
  sbx::http::AsyncClient client_;
  sbx::async::TaskGroup tasks_;
};

}  // namespace agentd::cli
