#include "runtime/daemon/admission.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace sbx::daemon {
namespace {

// How often a request may be passed over for smaller ones.
constexpr std::uint32_t kMaxPassedOver = 32;
constexpr double kWeightOfNewest = 0.1;
constexpr double kLongestRetry = 60;

}  // namespace

std::string_view budget_name(Budget budget) {
  switch (budget) {
    case Budget::kRunning:
      return "max_running";
    case Budget::kMemory:
      return "memory_budget";
    case Budget::kQueued:
      return "max_queued";
    case Budget::kQueuedPerPeer:
      break;
  }
  return "max_queued_per_peer";
}

Admission::Ticket::~Ticket() {
  admission_.leave(*this);
}

std::variant<std::unique_ptr<Admission::Ticket>, Refusal> Admission::enter(
    uid_t peer, std::uint64_t memory, std::function<void()> on_turn) {
  // It would never fit, and in the end hold up everybody; a ceiling refuses it before.
  if (memory > limits_.memory_budget) return Refusal{Budget::kMemory, estimate()};
  std::unique_ptr<Ticket> ticket(new Ticket(*this, peer, memory, nullptr));
  enqueue(*ticket);
  admit_those_that_fit();
  if (ticket->admitted_) return ticket;
  ticket->on_turn_ = std::move(on_turn);
  const auto own = std::find_if(turns_.begin(), turns_.end(),
                                [&](const Peer& each) { return each.uid == peer; });
  // The ticket itself is counted already.
  if (queued_ <= limits_.max_queued && own->waiting.size() <= limits_.max_queued_per_peer) {
    return ticket;
  }
  Refusal refused = refusal(*ticket);
  if (queued_ > limits_.max_queued) {
    if (limits_.max_queued != 0) refused.budget = Budget::kQueued;
  } else {
    refused.budget = Budget::kQueuedPerPeer;
  }
  return refused;
}

Refusal Admission::refusal(const Ticket& waiting) const {
  const bool full = running_ >= limits_.max_running || fits(waiting);
  return {full ? Budget::kRunning : Budget::kMemory, estimate()};
}

void Admission::enqueue(Ticket& ticket) {
  auto peer = std::find_if(turns_.begin(), turns_.end(),
                           [&](const Peer& each) { return each.uid == ticket.peer_; });
  if (peer == turns_.end()) peer = turns_.insert(turns_.end(), Peer{ticket.peer_, {}});
  peer->waiting.push_back(&ticket);
  ++queued_;
}

void Admission::dequeue(Ticket& ticket) {
  const auto peer = std::find_if(turns_.begin(), turns_.end(),
                                 [&](const Peer& each) { return each.uid == ticket.peer_; });
  auto& waiting = peer->waiting;
  waiting.erase(std::find(waiting.begin(), waiting.end(), &ticket));
  --queued_;
  if (waiting.empty()) turns_.erase(peer);
}

void Admission::leave(Ticket& ticket) {
  if (ticket.admitted_) {
    end_run(ticket);
    reserved_ -= ticket.memory_;
  } else {
    dequeue(ticket);
  }
  admit_those_that_fit();
}

void Admission::Ticket::keep_only(std::uint64_t bytes) {
  admission_.end_run(*this);
  const std::uint64_t kept = std::min(bytes, memory_);
  admission_.reserved_ -= memory_ - kept;
  memory_ = kept;
  admission_.admit_those_that_fit();
}

void Admission::end_run(Ticket& ticket) {
  if (!std::exchange(ticket.running_, false)) return;
  --running_;
  const double seconds = std::chrono::duration<double>(now_() - ticket.since_).count();
  mean_seconds_ += (seconds - mean_seconds_) * kWeightOfNewest;
}

void Admission::admit_those_that_fit() {
  while (Ticket* const ticket = next()) admit(*ticket);
}

// The first in turn whose memory is free; null when nobody may run now.
Admission::Ticket* Admission::next() {
  if (running_ >= limits_.max_running) return nullptr;
  for (auto peer = turns_.begin(); peer != turns_.end(); ++peer) {
    Ticket& first = *peer->waiting.front();
    if (!fits(first)) {
      if (first.passed_over_ >= kMaxPassedOver) return nullptr;
      continue;
    }
    for (auto passed = turns_.begin(); passed != peer; ++passed) {
      ++passed->waiting.front()->passed_over_;
    }
    return &first;
  }
  return nullptr;
}

void Admission::admit(Ticket& ticket) {
  const auto peer = std::find_if(turns_.begin(), turns_.end(),
                                 [&](const Peer& each) { return each.uid == ticket.peer_; });
  turns_.splice(turns_.end(), turns_, peer);  // his next one comes after everybody else's
  dequeue(ticket);
  ticket.admitted_ = true;
  ticket.running_ = true;
  ticket.since_ = now_();
  ++running_;
  reserved_ += ticket.memory_;
  if (ticket.on_turn_) ticket.on_turn_();
}

std::chrono::seconds Admission::estimate() const {
  const double turns = static_cast<double>(queued_ + 1) / limits_.max_running;
  const double seconds = std::clamp(std::ceil(mean_seconds_ * turns), 1.0, kLongestRetry);
  return std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

}  // namespace sbx::daemon
