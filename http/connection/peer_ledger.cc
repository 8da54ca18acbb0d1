#include "http/connection/peer_ledger.h"

namespace sbx::http {

Problem not_granted(PeerLedger::Verdict verdict, const char* code, const char* peer_is_full,
                    const char* all_is_full) {
  const bool all = verdict == PeerLedger::Verdict::kAllIsFull;
  return {.status = all ? 503 : 429,
          .code = code,
          .detail = all ? all_is_full : peer_is_full,
          .retry_after = std::chrono::seconds(1)};
}

PeerLedger::Verdict PeerLedger::connect(Key peer) {
  if (all_.connections >= limits_.connections) return Verdict::kAllIsFull;
  const auto known = peers_.find(peer);
  if (known != peers_.end() && known->second.connections >= limits_.connections_per_peer) {
    return Verdict::kPeerIsFull;
  }
  ++all_.connections;
  ++peers_[peer].connections;
  return Verdict::kGranted;
}

void PeerLedger::disconnect(Key peer) {
  --all_.connections;
  --peers_[peer].connections;
  forget_if_empty(peer);
}

PeerLedger::Verdict PeerLedger::buffer(Key peer, std::uint64_t bytes) {
  if (bytes > limits_.bytes - all_.bytes) return Verdict::kAllIsFull;
  Holding& holding = peers_[peer];
  if (bytes > limits_.bytes_per_peer - holding.bytes) return Verdict::kPeerIsFull;
  all_.bytes += bytes;
  holding.bytes += bytes;
  return Verdict::kGranted;
}

void PeerLedger::release(Key peer, std::uint64_t bytes) {
  all_.bytes -= bytes;
  peers_[peer].bytes -= bytes;
  forget_if_empty(peer);
}

PeerLedger::Verdict PeerLedger::room_for_unsent(Key peer, std::uint64_t bytes) const {
  const auto is_over = [bytes](std::uint64_t held, std::uint64_t limit) {
    return held > limit || bytes > limit - held;
  };
  if (is_over(all_.unsent, limits_.unsent)) return Verdict::kAllIsFull;
  const auto known = peers_.find(peer);
  const std::uint64_t held = known == peers_.end() ? 0 : known->second.unsent;
  return is_over(held, limits_.unsent_per_peer) ? Verdict::kPeerIsFull : Verdict::kGranted;
}

void PeerLedger::queue(Key peer, std::uint64_t bytes) {
  all_.unsent += bytes;
  peers_[peer].unsent += bytes;
}

void PeerLedger::sent(Key peer, std::uint64_t bytes) {
  all_.unsent -= bytes;
  peers_[peer].unsent -= bytes;
  forget_if_empty(peer);
}

void PeerLedger::forget_if_empty(Key peer) {
  const auto known = peers_.find(peer);
  const Holding& holding = known->second;
  if (holding.connections == 0 && holding.bytes == 0 && holding.unsent == 0) peers_.erase(known);
}

}  // namespace sbx::http
