// PeerLedger: what each peer holds of the server (connections, buffered bodies, answers that are
// not sent yet), and all together.
//
// Internal to the server. Peers are told apart by uid; those without one (TCP) are one peer.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "http/problem.h"

namespace sbx::http {

class PeerLedger {
 public:
  struct Limits {
    std::size_t connections = 0;
    std::size_t connections_per_peer = 0;
    std::uint64_t bytes = 0;
    std::uint64_t bytes_per_peer = 0;
    std::uint64_t unsent = 0;  // bytes of answers
    std::uint64_t unsent_per_peer = 0;
  };
  enum class Verdict : std::uint8_t { kGranted, kPeerIsFull, kAllIsFull };
  using Key = std::optional<uid_t>;

  explicit PeerLedger(Limits limits) : limits_(limits) {}

  // What was granted is given back once.
  [[nodiscard]] Verdict connect(Key peer);
  void disconnect(Key peer);
  [[nodiscard]] Verdict buffer(Key peer, std::uint64_t bytes);
  void release(Key peer, std::uint64_t bytes);

  // Answers: asked for first, for small ones go out whatever the verdict; then counted until sent.
  [[nodiscard]] Verdict room_for_unsent(Key peer, std::uint64_t bytes) const;
  void queue(Key peer, std::uint64_t bytes);
  void sent(Key peer, std::uint64_t bytes);

  [[nodiscard]] std::size_t connections() const { return all_.connections; }
  [[nodiscard]] std::uint64_t bytes() const { return all_.bytes; }
  [[nodiscard]] std::uint64_t unsent() const { return all_.unsent; }

 private:
  struct Holding {
    std::size_t connections = 0;
    std::uint64_t bytes = 0;
    std::uint64_t unsent = 0;
  };
  void forget_if_empty(Key peer);

  Limits limits_;
  Holding all_;
  std::map<Key, Holding> peers_;
};

// What the client is told when it was not granted: 429 when the peer has its share already, 503
// when all have.
[[nodiscard]] Problem not_granted(PeerLedger::Verdict verdict, const char* code,
                                  const char* peer_is_full, const char* all_is_full);

}  // namespace sbx::http
