// Connection: one client's connection from accept to close. Internal to the server.
//
// A coroutine of the server's TaskGroup owns it. It serves one request at a time; beside it run the
// output's flusher and the watch for the client's leaving, in groups that the connection owns.
#pragma once

#include <cstdint>
#include <string>

#include "http/async/cancellation.h"
#include "http/async/fd_watch.h"
#include "http/async/task.h"
#include "http/async/task_group.h"
#include "http/connection/answer.h"
#include "http/connection/body_reader.h"
#include "http/connection/core.h"
#include "http/connection/input.h"
#include "http/connection/output.h"
#include "http/connection/request_parser.h"
#include "runtime/base/unique_fd.h"

namespace sbx::http {

class Connection {
 public:
  // Precondition: the ledger granted the connection, which is given back at the end.
  Connection(Core& core, UniqueFd socket, async::FdWatch watch, Peer peer, bool is_unix);
  ~Connection();

  // Until the client leaves, misbehaves, is idle for too long, or the server ends.
  [[nodiscard]] async::Task<void> serve();

 private:
  enum class HeadRead : std::uint8_t { kRead, kRefused, kOver };  // kOver: no request came
  struct Exchanging;                                              // one request and its answer

  [[nodiscard]] async::Task<bool> serve_one();
  [[nodiscard]] async::Task<HeadRead> read_head(RequestParser& parser);
  [[nodiscard]] async::Task<void> exchange(Exchanging& current);
  // The problem to refuse it with, if any; with BodyMode::kWhole the body is read.
  [[nodiscard]] async::Task<std::optional<Problem>> prepare(Exchanging& current);
  [[nodiscard]] async::Task<std::optional<Problem>> read_whole(Exchanging& current);
  [[nodiscard]] async::Task<void> run_handler(Exchanging& current);
  [[nodiscard]] async::Task<void> refuse(Problem problem);
  void report(const Exchanging& current);

  [[nodiscard]] async::Task<void> watch_hangup();
  [[nodiscard]] async::Task<void> watch_end();
  [[nodiscard]] async::Task<void> linger();

  [[nodiscard]] Pace pace() const;

  Core& core_;
  UniqueFd socket_;
  async::FdWatch watch_;
  Peer peer_;
  bool is_unix_;
  async::Cancellation gone_;  // child of Core::expired
  async::Cancellation over_;  // ends the wait for a next request: gone_ or Core::draining
  Input input_;
  Output output_;
  std::size_t served_ = 0;
  bool spoke_last_ = false;   // the client may still be reading
  async::TaskGroup watches_;  // last: its tasks use the others
};

}  // namespace sbx::http
