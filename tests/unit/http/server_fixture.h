// A server with routes of the tests' own, on a loop that runs in a thread of its own.
//
// The test's thread talks to it over real sockets (tests/support/raw_http.h), and reaches the
// objects on the loop only through on_loop().
#pragma once

#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>

#include "http/async/task_group.h"
#include "http/server.h"
#include "tests/support/raw_http.h"

namespace sbx::http::test {

using sbx::test::http_request;
using sbx::test::RawClient;
using sbx::test::RawReply;

struct ServerSetup {
  ServerLimits limits{};
  bool tcp = false;
  std::function<bool(const Peer&)> admit{};
  std::function<void(Problem&)> on_problem{};
};

// What handlers saw, for the test's thread.
struct Seen {
  std::atomic<int> waiting = 0;         // handlers of /wait that are on
  std::atomic<int> left = 0;            // those whose client left
  std::atomic<std::uint64_t> lost = 0;  // bytes that /live could not write
  std::atomic<std::uint64_t> uploaded = 0;
};

class RunningServer {
 public:
  explicit RunningServer(ServerSetup setup = {});
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;
  ~RunningServer();  // drains without patience

  [[nodiscard]] RawClient connect() const;
  // A connection of its own for one request.
  [[nodiscard]] RawReply ask(std::string_view request) const { return connect().ask(request); }
  [[nodiscard]] RawReply get(std::string_view target) const {
    return ask(http_request("GET", target));
  }

  // Runs `action` on the loop's thread and waits for what it returns.
  template <typename F>
  std::invoke_result_t<F&> on_loop(F action) {
    // The second owner is the loop's thread, which may still be leaving it when the result is
    // there.
    const auto task =
        std::make_shared<std::packaged_task<std::invoke_result_t<F&>()>>(std::move(action));
    auto result = task->get_future();
    loop_.post([task] { (*task)(); });
    return result.get();
  }
  [[nodiscard]] ServerCounters counters();
  // Waits until `holds` of the counters or of what was seen is true; false after a minute.
  [[nodiscard]] bool wait_until(const std::function<bool()>& holds);
  // Destroys the server with whatever it does.
  void destroy() {
    on_loop([this] { server_.reset(); });
  }
  // Starts to drain; the future is ready when the server has ended.
  std::future<void> drain(std::chrono::milliseconds patience);

  Seen seen;
  std::string path;  // of the Unix socket
  std::uint16_t port = 0;
  std::vector<Exchange> exchanges();

 private:
  void add_routes();
  async::Task<void> drain_and_tell(std::chrono::milliseconds patience, std::promise<void>& ended);

  std::string directory_;
  async::Loop loop_;
  Router router_;
  std::vector<Exchange> exchanges_;
  std::vector<std::unique_ptr<std::promise<void>>> drains_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<async::TaskGroup> tasks_;
  std::thread thread_;
};

}  // namespace sbx::http::test
