// Places: where sbxd listens and keeps what it keeps, and making them. Stage: daemon, start-up.
//
// Started by root, the top directories stay root's and what sbxd writes in is given to its user; as
// an ordinary user everything is his own.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/places.h"
#include "runtime/base/result.h"
#include "runtime/daemon/config.h"
#include "runtime/daemon/identity.h"
#include "runtime/policy/config.h"

namespace sbx::daemon {

struct Places {
  std::string socket;       // empty: there is nowhere to put one (a socket was passed, or error)
  std::string state_dir;    // absolute
  std::string runtime_dir;  // empty: the library's default
  [[nodiscard]] std::string audit_dir() const { return state_dir + "/audit"; }
  [[nodiscard]] std::string sessions_dir() const { return state_dir + "/sessions"; }
};

// Pure but for the environment (XDG_*, HOME, STATE_DIRECTORY, RUNTIME_DIRECTORY).
[[nodiscard]] Result<Places> choose_places(const DaemonConfig& config,
                                           const policy::RuntimeConfig& runtime, bool root);

// Makes the directories, those above them included, and gives `user` what is his; what was made is
// added to `fresh`. What is there is never changed: kHost when it is somebody else's, when others
// may get at what is private, or where `user` cannot get to it.
[[nodiscard]] Result<void> make_place_of_socket(const Places& places,
                                                const std::optional<ServiceUser>& user,
                                                FreshDirectories& fresh);
[[nodiscard]] Result<void> make_places_of_state(const Places& places,
                                                const std::optional<ServiceUser>& user,
                                                FreshDirectories& fresh);

// flock(2) for one alone: 0 or its errno. Blocks: a start that only looks whether another has the
// file holds it for microseconds, so it is tried twice.
[[nodiscard]] int lock_alone(int fd);

}  // namespace sbx::daemon
