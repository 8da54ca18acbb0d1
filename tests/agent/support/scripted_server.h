// A server that plays what a test tells it to, byte by byte: for the ways in which real model
// servers differ from each other, and from HTTP.
//
// On 127.0.0.1 with a port of the kernel's choice. Each connection has a thread, in which the
// script runs once for each request; blocking there is the point.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace agentd::test {

// A request as it came.
struct Heard {
  std::string line;  // "POST /v1/chat/completions HTTP/1.1"
  std::string head;  // with the line
  std::string body;
  [[nodiscard]] std::string header(std::string_view name) const;  // "" when it is not there
};

class Peer {
 public:
  explicit Peer(int socket) : socket_(socket) {}
  // False: the client is gone.
  bool send(std::string_view bytes);
  // A whole answer with Content-Length.
  bool answer(int status, std::string_view content_type, std::string_view body,
              std::string_view more_headers = {});
  // The head of an event stream that ends with the connection.
  bool start_stream();
  bool event(std::string_view data);  // "data: …"
  // Until the client closes, at most a minute. False: it did not.
  bool wait_until_gone();
  // Closes in the middle: the client sees the end of the connection.
  void close();
  [[nodiscard]] bool open() const { return open_; }

 private:
  int socket_;
  bool open_ = true;
};

class ScriptedServer {
 public:
  using Script = std::function<void(Peer&, const Heard&)>;
  explicit ScriptedServer(Script script);
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer();

  [[nodiscard]] std::string url() const;  // "http://127.0.0.1:PORT"
  [[nodiscard]] std::vector<Heard> heard() const;

 private:
  void accept_all();
  void serve(int socket);

  Script script_;
  sbx::UniqueFd listener_;
  sbx::UniqueFd stop_read_;
  sbx::UniqueFd stop_write_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<Heard> heard_;
  std::vector<std::thread> connections_;  // touched by the accepting thread, then the destructor
  std::vector<sbx::UniqueFd> sockets_;    // the same
  std::thread thread_;
};

}  // namespace agentd::test
