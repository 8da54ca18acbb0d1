#include "tests/support/raw_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/base/deadline.h"

namespace sbx::test {
namespace {

bool wait_for(int fd, short events, std::chrono::steady_clock::time_point deadline) {
  pollfd waited{fd, events, 0};
  return ::poll(&waited, 1, poll_timeout(deadline)) == 1;
}

UniqueFd connected_to(const sockaddr* address, socklen_t size) {
  UniqueFd socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(socket.get(), address, size) != 0) return {};
  return socket;
}

}  // namespace

std::string RawReply::field(std::string_view name) const {
  for (std::size_t at = head.find("\r\n"); at != std::string::npos; at = head.find("\r\n", at)) {
    at += 2;
    const std::size_t colon = head.find(": ", at);
    const std::size_t end = head.find("\r\n", at);
    if (colon == std::string::npos || end == std::string::npos || colon > end) continue;
    if (colon - at != name.size()) continue;
    if (::strncasecmp(head.data() + at, name.data(), name.size()) == 0) {
      return head.substr(colon + 2, end - colon - 2);
    }
  }
  return {};
}

RawClient RawClient::to_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return RawClient(UniqueFd());
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return RawClient(connected_to(reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

RawClient RawClient::to_port(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return RawClient(connected_to(reinterpret_cast<const sockaddr*>(&address), sizeof address));
}

bool RawClient::send(std::string_view bytes) {
  const auto deadline = std::chrono::steady_clock::now() + kHttpPatience;
  while (!bytes.empty()) {
    const ssize_t put =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    if (put < 0 && errno != EAGAIN) return false;
    if (put < 0 && !wait_for(socket_.get(), POLLOUT, deadline)) return false;
  }
  return true;
}

void RawClient::shut_down_writing() {
  (void)::shutdown(socket_.get(), SHUT_WR);  // a peer that closed already is as good
}

bool RawClient::read_more(TimePoint deadline) {
  if (ended_ || !wait_for(socket_.get(), POLLIN, deadline)) return false;
  std::array<char, 65536> chunk;
  const ssize_t got = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
  ended_ = got <= 0;
  if (!ended_) buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  return !ended_;
}

bool RawClient::take(std::string& into, std::size_t bytes, TimePoint deadline) {
  while (buffer_.size() < bytes) {
    if (!read_more(deadline)) return false;
  }
  into.append(buffer_, 0, bytes);
  buffer_.erase(0, bytes);
  return true;
}

bool RawClient::take_line(std::string& line, TimePoint deadline) {
  while (buffer_.find("\r\n") == std::string::npos) {
    if (!read_more(deadline)) return false;
  }
  line.clear();
  return take(line, buffer_.find("\r\n") + 2, deadline);
}

bool RawClient::read_chunked(RawReply& reply, TimePoint deadline) {
  for (;;) {
    std::string line;
    if (!take_line(line, deadline)) return false;
    const std::size_t size = std::strtoul(line.c_str(), nullptr, 16);
    if (!take(reply.body, size, deadline) || !take_line(line, deadline)) return false;
    if (size == 0) return true;
  }
}

bool RawClient::read_body(RawReply& reply, TimePoint deadline) {
  if (reply.status == 204 || reply.status == 304 || reply.status == 100) return true;
  if (reply.field("Transfer-Encoding") == "chunked") return read_chunked(reply, deadline);
  if (const std::string length = reply.field("Content-Length"); !length.empty()) {
    return take(reply.body, std::strtoul(length.c_str(), nullptr, 10), deadline);
  }
  while (read_more(deadline)) {
  }
  reply.body = std::exchange(buffer_, {});
  return true;
}

RawReply RawClient::reply(bool to_head) {
  const auto deadline = std::chrono::steady_clock::now() + kHttpPatience;
  RawReply reply;
  for (std::string line; line != "\r\n";) {
    if (!take_line(line, deadline)) return {};
    reply.head += line;
  }
  constexpr std::size_t kStatusAt = std::string_view("HTTP/1.1 ").size();
  reply.status = std::atoi(reply.head.c_str() + kStatusAt);
  reply.cut = !to_head && !read_body(reply, deadline);
  if (reply.cut) reply.body += std::exchange(buffer_, {});
  return reply;
}

RawReply RawClient::ask(std::string_view bytes) {
  (void)send(bytes);  // a server may refuse before it has read all
  return reply();
}

std::string RawClient::read_to_end(std::chrono::milliseconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (read_more(deadline)) {
  }
  return std::exchange(buffer_, {});
}

bool RawClient::closed_by_peer(std::chrono::milliseconds patience) {
  (void)read_to_end(patience);
  return ended_;
}

std::string http_request(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view fields) {
  std::string request;
  request.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: sbx\r\n");
  request.append(fields);
  if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return request.append("\r\n").append(body);
}

}  // namespace sbx::test
