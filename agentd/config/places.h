// Places: where agentd listens, where sbxd is, where state is kept. At start-up; blocking.
#pragma once

#include <string>

#include "agentd/config/config.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace agentd::config {

// In the state directory. The lock is the first that is made there.
inline constexpr const char* kLock = "agentd.lock";
inline constexpr const char* kDatabase = "agentd.db";

struct Places {
  std::string socket;       // empty: there is nowhere to put one
  std::string sbxd_socket;  // empty: not named, to be found when it is needed
  std::string state_dir;
};

// By the configuration, else by the environment (SBX_SOCKET, XDG_*, HOME, STATE_DIRECTORY,
// RUNTIME_DIRECTORY). kInvalid when there is no home for state, or SBX_SOCKET names no socket.
[[nodiscard]] sbx::Result<Places> choose_places(const AgentConfig& config, bool root);

// The state directory (0700), those above it and the socket's, where they are missing. One that is
// there is never changed: it is taken when it is ours and shut to others, or when others may only
// read it and it is empty or has been agentd's since. Otherwise kHost, with the fix.
[[nodiscard]] sbx::Result<void> make_places(const Places& places);

// Holds the state directory for one agentd, until the descriptor is closed: a second one would end
// the requests of the first, which it takes for those of a dead one. kHost when it is held.
[[nodiscard]] sbx::Result<sbx::UniqueFd> lock_state(const std::string& state_dir);

// Where a client looks for agentd: `given`, AGENTD_SOCKET, /run/agentd/agentd.sock if accessible,
// $XDG_RUNTIME_DIR/sbx/agentd.sock. kInvalid when AGENTD_SOCKET is no absolute path: never another
// agentd in its place.
[[nodiscard]] sbx::Result<std::string> find_agentd_socket(const std::string& given);

// Where sbxd is now: `configured` (of Places), /run/sbx/sbxd.sock if accessible,
// $XDG_RUNTIME_DIR/sbx/sbxd.sock. Never empty. Asked before each connection, as sbxd may start
// later.
[[nodiscard]] std::string find_sbxd_socket(const std::string& configured);

}  // namespace agentd::config
