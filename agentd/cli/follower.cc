#include "agentd/cli/follower.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "http/async/fd_watch.h"

namespace agentd::cli {

using Json = nlohmann::ordered_json;
using sbx::async::Task;
using sbx::http::ClientError;
using sbx::http::ClientRequest;
using sbx::http::ClientResponse;
using sbx::http::Method;

namespace {

constexpr int kMaxReconnects = 10;
constexpr std::chrono::seconds kReconnectAfter{1};
constexpr std::chrono::hours kLongest{24};
constexpr std::chrono::seconds kCancelTime{5};

}  // namespace

Follower::Follower(std::string socket, std::string id, int interrupted, const OnEvent& on_event)
    : socket_(std::move(socket)),
      id_(std::move(id)),
      interrupted_(interrupted),
      on_event_(on_event),
      client_(loop_),
      tasks_(loop_) {}

OrTrouble<bool> Follower::run() {
  tasks_.spawn(watch_interrupt());
  tasks_.spawn(follow());
  loop_.run();
  return std::move(outcome_);
}

ClientRequest Follower::call(Method method, const std::string& path) const {
  ClientRequest request;
  request.method = method;
  request.url = "http://agentd/v1/requests/" + id_ + path;
  request.unix_socket = socket_;
  return request;
}

void Follower::take(const providers::SseEvent& event) {
  const Json data = Json::parse(event.data, nullptr, false);
  if (!data.is_object()) return;
  ++seen_;
  ended_ = event.type == "end";
  on_event_(data);
}

Task<void> Follower::follow() {
  for (int tries = 0; !ended_ && tries <= kMaxReconnects; ++tries) {
    if (tries > 0) {
      (void)co_await loop_.sleep_until(sbx::async::after(kReconnectAfter));
    }
    providers::SseParser parser;
    std::string problem;
    ClientRequest request = call(Method::kGet, "/events");
    request.timeout = kLongest;
    if (seen_ > 0) request.headers.add("Last-Event-ID", std::to_string(seen_));
    request.on_data = [&](const ClientResponse& head, std::string_view bytes) {
      if (head.status != 200) {
        problem += bytes;
        return true;
      }
      for (const providers::SseEvent& event : parser.feed(bytes)) take(event);
      return !ended_;
    };
    const auto result = co_await client_.perform(std::move(request));
    const auto* head = std::get_if<ClientResponse>(&result);
    if (head != nullptr && head->status != 200) {
      outcome_ = trouble_of(head->status, problem);
      break;
    }
    if (const auto* error = std::get_if<ClientError>(&result); error != nullptr && !ended_) {
      outcome_ = trouble_of(*error, socket_);  // stands when it does not get better
    }
  }
  if (ended_) {
    outcome_ = true;
  } else if (std::holds_alternative<bool>(outcome_)) {
    outcome_ = Trouble{.text = "agentd ended the stream of events before the last one"};
  }
  loop_.stop();
}

// The first signal cancels the request, whose end then comes as an event; the second leaves.
Task<void> Follower::watch_interrupt() {
  auto watch = sbx::async::FdWatch::watch(loop_, interrupted_);
  if (!watch) co_return;  // a signalfd can be watched
  for (int signals = 1;; ++signals) {
    (void)co_await watch->readable();
    signalfd_siginfo information{};
    if (::read(interrupted_, &information, sizeof information) <= 0) continue;
    if (signals > 1) {
      outcome_ = Trouble{.text = "left before the request had ended"};
      loop_.stop();
      co_return;
    }
    tasks_.spawn(cancel());  // not waited for: an agentd that hangs would keep us from the second
  }
}

// The request's end is what counts, unless nobody is there to end it.
Task<void> Follower::cancel() {
  ClientRequest request = call(Method::kDelete, "");
  request.timeout = kCancelTime;
  const auto result = co_await client_.perform(std::move(request));
  if (ended_ || std::holds_alternative<ClientResponse>(result)) co_return;
  outcome_ = Trouble{.text = "left: agentd did not answer to the cancellation"};
  loop_.stop();
}

}  // namespace agentd::cli
