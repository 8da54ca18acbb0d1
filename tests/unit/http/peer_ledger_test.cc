// What peers hold: at each limit, one past it, and after it was given back.
#include "http/connection/peer_ledger.h"

namespace sbx::http {
namespace {

using Verdict = PeerLedger::Verdict;

TEST(PeerLedger, CountsConnectionsForEachPeerAndForAll) {
  PeerLedger ledger({.connections = 3, .connections_per_peer = 2});
  EXPECT_EQ(ledger.connect(1), Verdict::kGranted);
  EXPECT_EQ(ledger.connect(1), Verdict::kGranted);
  EXPECT_EQ(ledger.connect(1), Verdict::kPeerIsFull);
  EXPECT_EQ(ledger.connect(std::nullopt), Verdict::kGranted);
  EXPECT_EQ(ledger.connect(2), Verdict::kAllIsFull);
  ledger.disconnect(1);
  EXPECT_EQ(ledger.connect(2), Verdict::kGranted);
  EXPECT_EQ(ledger.connections(), 3U);
}

TEST(PeerLedger, CountsBytesForEachPeerAndForAll) {
  PeerLedger ledger({.bytes = 100, .bytes_per_peer = 60});
  EXPECT_EQ(ledger.buffer(1, 60), Verdict::kGranted);
  EXPECT_EQ(ledger.buffer(1, 1), Verdict::kPeerIsFull);
  EXPECT_EQ(ledger.buffer(2, 40), Verdict::kGranted);
  EXPECT_EQ(ledger.buffer(3, 1), Verdict::kAllIsFull);
  ledger.release(1, 60);
  EXPECT_EQ(ledger.buffer(1, 1), Verdict::kGranted);
  EXPECT_EQ(ledger.buffer(1, ~std::uint64_t{0}), Verdict::kAllIsFull);
  EXPECT_EQ(ledger.bytes(), 41U);
}

TEST(PeerLedger, CountsUnsentAnswersAndSaysWhenTheyAreTooMany) {
  PeerLedger ledger({.unsent = 100, .unsent_per_peer = 60});
  EXPECT_EQ(ledger.room_for_unsent(1, 60), Verdict::kGranted);
  EXPECT_EQ(ledger.room_for_unsent(1, 61), Verdict::kPeerIsFull);
  ledger.queue(1, 60);
  EXPECT_EQ(ledger.room_for_unsent(1, 1), Verdict::kPeerIsFull);
  EXPECT_EQ(ledger.room_for_unsent(2, 40), Verdict::kGranted);
  EXPECT_EQ(ledger.room_for_unsent(2, 41), Verdict::kAllIsFull);
  ledger.queue(2, 70);  // small ones go out whatever there is
  EXPECT_EQ(ledger.room_for_unsent(3, 0), Verdict::kAllIsFull);
  EXPECT_EQ(ledger.unsent(), 130U);
  ledger.sent(2, 70);
  ledger.sent(1, 60);
  EXPECT_EQ(ledger.room_for_unsent(1, 60), Verdict::kGranted);
  EXPECT_EQ(ledger.unsent(), 0U);
}

}  // namespace
}  // namespace sbx::http
