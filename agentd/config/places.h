// Places: where agentd listens, where sbxd is, where state is kept. At start-up; blocking.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agentd/config/config.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace agentd::config {

inline constexpr const char* kDatabase = "agentd.db";  // in the state directory

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

// The state directory that agentd works in, and whether it is still where it was: what is stored in
// one that was moved away or removed is kept by nobody.
class HeldState {
 public:
  // When its files have been opened.
  [[nodiscard]] static sbx::Result<HeldState> open(const std::string& state_dir);
  // kHost when the directory, its lock, its database or its log is not the one that was opened. A
  // few looks at what the kernel has in memory: does not wait for the disk.
  [[nodiscard]] sbx::Result<void> check() const;

 private:
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  struct File {
    const char* name;  // in the directory; "" is the directory itself
    Identity identity{};
  };
  explicit HeldState(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] std::optional<Identity> look(const char* name) const;

  std::string path_;
  sbx::UniqueFd directory_;
  std::vector<File> files_;
};

// Where a client looks for agentd: `given`, AGENTD_SOCKET, /run/agentd/agentd.sock if accessible,
// $XDG_RUNTIME_DIR/sbx/agentd.sock. kInvalid when AGENTD_SOCKET is no absolute path: never another
// agentd in its place.
[[nodiscard]] sbx::Result<std::string> find_agentd_socket(const std::string& given);

// Where sbxd is now: `configured` (of Places), /run/sbx/sbxd.sock if accessible,
// $XDG_RUNTIME_DIR/sbx/sbxd.sock. Never empty. Asked before each connection, as sbxd may start
// later.
[[nodiscard]] std::string find_sbxd_socket(const std::string& configured);

}  // namespace agentd::config
