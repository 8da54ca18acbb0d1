// Spawner: the supervisor's handle on the one process that clones. Stage: spawn.
//
// The spawner is forked before any thread or event loop, lives in an outer user namespace and a
// mount namespace of its own, makes net namespaces and the mounts whose contents outlive a run,
// clones sbx-init into its cgroup leaf, reaps it, and forks the collector. The supervisor stays
// outside: in its user namespace every peer's uid is what it is. Each run has a control socket of
// its own, so that runs do not wait for each other.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/plan/flat_plan.h"
#include "runtime/plan/host_facts.h"
#include "runtime/plan/plan.h"
#include "runtime/spawn/protocol.h"

namespace sbx::spawn {

// Runs in a process forked by the spawner, in the outer user namespace: serves one walk of the tree
// below `directory` over `socket`. Set by sandbox.cc (the walkers stand to the right of spawn).
using CollectHandler = void (*)(int directory, int socket, const CollectRequest& request);

// An answer takes milliseconds, on a busy host seconds; who has none by then asks one that was
// stopped.
inline constexpr std::chrono::milliseconds kAnswerPatience{20'000};
// The operation of what goes wrong with the spawner during a run.
inline constexpr char kSpawnerOperation[] = "spawner";
// kHost with ETIMEDOUT: the spawner, process `pid`, did not answer in time.
[[nodiscard]] Error spawner_silent(const char* operation, pid_t pid);
// Whether an error is that; and one of a run, of which the operation and errno are left.
[[nodiscard]] bool is_spawner_silent(const Error& error);
[[nodiscard]] bool is_spawner_silent(std::string_view operation, int sys_errno);

struct SpawnerOptions {
  plan::IdMode ids = plan::IdMode::kSingle;
  std::uint32_t id_count = 1;
  std::uint32_t host_uid = 0, host_gid = 0;
  std::uint32_t sub_uid = 0, sub_gid = 0;
  CollectHandler collect = nullptr;
  std::uint32_t ready_net_namespaces = 1;  // made ahead
  // A millisecond of work that only pays when another run follows (a daemon's).
  bool refill_net_namespaces = false;
  // How long one that does not answer is waited for.
  std::chrono::milliseconds answer_patience = kAnswerPatience;
  // The spawner ends by itself once its first run is over, while the supervisor still cleans up.
  // The net namespace made ahead is its own too, so that a run of the host's network wants none
  // ready.
  bool single_run = false;
};

// What one launch needs. Descriptors are borrowed until launch() returns.
struct LaunchRequest {
  int plan = -1;  // sealed memfd
  int stdin_fd = -1, stdout_fd = -1, stderr_fd = -1;
  int report = -1;     // write end
  int lifeline = -1;   // read end
  int fill = -1;       // read end, or -1
  int init_leaf = -1;  // cgroup v2, or -1
  int payload_leaf = -1;
  std::vector<int> join;  // cgroup v1
  bool net_namespace = true;
  std::uint64_t without_namespaces =
      0;                           // CLONE_NEW* flags this kernel lacks (allowed to be missing)
  plan::PassedTmpfs output, work;  // made by the spawner
};

class Spawner {
 public:
  // begin() and map_ids(), for a caller who has nothing to do in between.
  [[nodiscard]] static Result<Spawner> start(const SpawnerOptions& options);
  // Forks and returns: from here on the spawner works beside the caller.
  [[nodiscard]] static Result<Spawner> begin(const SpawnerOptions& options);
  // Gives the spawner its ids; once, before launch(), and with the caller's ids as they were in
  // begin(). Returns while the spawner still sets itself up: what fails there is told by the first
  // launch(). kHost when user namespaces are not to be had, with the fix; like launch(), with
  // ETIMEDOUT when the spawner does not answer in time (one that was stopped).
  [[nodiscard]] Result<void> map_ids();
  Spawner(Spawner&&) noexcept = default;
  Spawner& operator=(Spawner&&) noexcept = default;
  // Blocks until the spawner has ended: milliseconds, or seconds for one that has to be killed; at
  // most 6 s.
  ~Spawner();

  [[nodiscard]] pid_t pid() const { return pid_; }

  // What its owner has found out by ask(). Runs that end look at it, as long as this lives and is
  // not moved.
  void note_silence(bool silent) { known_silent_ = silent; }
  [[nodiscard]] const bool& known_silent() const { return known_silent_; }

  // Sends the request; the answers come over the returned control socket (protocol.h). The first
  // call waits for the end of the set-up. Later ones do not block while the spawner takes requests;
  // one that has stopped doing so holds up one caller for 2 s, and then nobody.
  [[nodiscard]] Result<UniqueFd> launch(const LaunchRequest& request);

  // What is returned is at its end (readable) once the spawner has taken this question, and all
  // that was sent before; also when it has ended. Does not block: EAGAIN when its queue is full.
  [[nodiscard]] Result<UniqueFd> ask();

 private:
  Spawner(pid_t pid, UniqueFd pidfd, UniqueFd socket, const SpawnerOptions& options)
      : pid_(pid), pidfd_(std::move(pidfd)), socket_(std::move(socket)), options_(options) {}
  [[nodiscard]] Result<void> send(const LaunchPacket& packet, const std::vector<int>& fds);

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  UniqueFd socket_;
  SpawnerOptions options_;
  UniqueFd init_;           // sealed memfd
  bool confirmed_ = false;  // the spawner has reported that its set-up succeeded
  bool silent_ = false;     // its queue was full for too long the last time
  bool known_silent_ = false;
};

}  // namespace sbx::spawn
