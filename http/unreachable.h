// Why a daemon's Unix socket cannot be connected to, for people: whose it is where that is the
// reason. Reads /etc/passwd and /etc/group, and no other source of names: no network is asked.
#pragma once

#include <string>

#include "http/client.h"

namespace sbx::http {

struct Unreachable {
  std::string text;
  std::string fix;
};

// `daemon`: "agentd". `error`: of connecting. `elsewhere`: what names another socket.
[[nodiscard]] Unreachable explain_unreachable(const std::string& daemon, const std::string& socket,
                                              const ClientError& error,
                                              const std::string& elsewhere);

}  // namespace sbx::http
