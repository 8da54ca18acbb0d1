#include "tests/agent/support/scripted_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/base/sys.h"

namespace agentd::test {
namespace {

// Reads until the request is whole; false when the client is gone.
bool read_request(int socket, std::string& rest, Heard& heard) {
  for (;;) {
    const std::size_t end = rest.find("\r\n\r\n");
    if (end != std::string::npos) {
      heard.head = rest.substr(0, end + 2);
      heard.line = heard.head.substr(0, heard.head.find("\r\n"));
      const std::string length = heard.header("Content-Length");
      const std::size_t wanted = length.empty() ? 0 : std::stoul(length);
      if (rest.size() >= end + 4 + wanted) {
        heard.body = rest.substr(end + 4, wanted);
        rest.erase(0, end + 4 + wanted);
        return true;
      }
    }
    char buffer[16384];
    const ssize_t count = ::recv(socket, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    rest.append(buffer, static_cast<std::size_t>(count));
  }
}

}  // namespace

std::string Heard::header(std::string_view name) const {
  std::size_t at = 0;
  while ((at = head.find("\r\n", at)) != std::string::npos && at + 2 < head.size()) {
    at += 2;
    const std::size_t colon = head.find(':', at);
    if (colon == std::string::npos) break;
    if (colon - at == name.size() &&
        ::strncasecmp(head.data() + at, name.data(), name.size()) == 0) {
      const std::size_t value = head.find_first_not_of(' ', colon + 1);
      return head.substr(value, head.find("\r\n", value) - value);
    }
  }
  return {};
}

bool Peer::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool Peer::answer(int status, std::string_view content_type, std::string_view body,
                  std::string_view more_headers) {
  return send(fmt::format("HTTP/1.1 {} X\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}\r\n{}",
                          status, content_type, body.size(), more_headers, body));
}

bool Peer::start_stream() {
  return send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
}

bool Peer::event(std::string_view data) {
  return send(fmt::format("data: {}\n\n", data));
}

bool Peer::wait_until_gone() {
  pollfd polled{socket_, POLLIN | POLLRDHUP, 0};
  if (::poll(&polled, 1, 60'000) <= 0) return false;
  char byte = 0;
  return ::recv(socket_, &byte, 1, 0) <= 0;
}

void Peer::close() {
  open_ = false;
  (void)::shutdown(socket_, SHUT_RDWR);
}

ScriptedServer::ScriptedServer(Script script) : script_(std::move(script)) {
  listener_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener_.get(), generic, size) != 0 || ::listen(listener_.get(), 64) != 0 ||
      ::getsockname(listener_.get(), generic, &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  auto pipe = sbx::sys::pipe();
  if (!pipe) std::abort();
  stop_read_ = std::move(pipe->first);
  stop_write_ = std::move(pipe->second);
  thread_ = std::thread([this] { accept_all(); });
}

ScriptedServer::~ScriptedServer() {
  stop_write_.reset();
  thread_.join();
  for (const sbx::UniqueFd& socket : sockets_) (void)::shutdown(socket.get(), SHUT_RDWR);
  for (std::thread& connection : connections_) connection.join();
}

std::string ScriptedServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

std::vector<Heard> ScriptedServer::heard() const {
  const std::lock_guard lock(mutex_);
  return heard_;
}

void ScriptedServer::accept_all() {
  for (;;) {
    pollfd polled[2] = {{listener_.get(), POLLIN, 0}, {stop_read_.get(), POLLIN, 0}};
    (void)::poll(polled, 2, -1);
    if (polled[1].revents != 0) return;
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    sockets_.emplace_back(socket);
    connections_.emplace_back([this, socket] { serve(socket); });
  }
}

void ScriptedServer::serve(int socket) {
  std::string rest;
  Peer peer(socket);
  for (Heard heard; peer.open() && read_request(socket, rest, heard); heard = {}) {
    {
      const std::lock_guard lock(mutex_);
      heard_.push_back(heard);
    }
    script_(peer, heard);
    // A stream of ours ends with its connection.
    if (heard.body.find("\"stream\":true") != std::string::npos) peer.close();
  }
}

}  // namespace agentd::test
