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
    case Budget::kAnswers:
      return "answer_budget";
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
    uid_t peer, Need need, std::function<void()> on_turn) {
  // It would never fit, and in the end hold up everybody; a ceiling refuses it before.
  if (need.memory > limits_.memory_budget) return Refusal{Budget::kMemory, estimate()};
  if (need.answer > answers_per_peer()) return Refusal{Budget::kAnswers, estimate()};
  std::unique_ptr<Ticket> ticket(new Ticket(*this, peer, need, nullptr));
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
  Budget lacking = Budget::kRunning;
  const bool own = !fits_peer(waiting);
  if (running_ < limits_.max_running) {
    if (own || !fits_answers(waiting)) lacking = Budget::kAnswers;
    if (!own && !fits_memory(waiting)) lacking = Budget::kMemory;
  }
  return {lacking, estimate(), own};
}

bool Admission::fits_memory(const Ticket& ticket) const {
  return ticket.holds_.memory <= limits_.memory_budget - reserved_.memory;
}

// Answers that turned out longer may hold more than there is.
bool Admission::fits_answers(const Ticket& ticket) const {
  return reserved_.answer + ticket.holds_.answer <= limits_.answer_budget;
}

bool Admission::fits_peer(const Ticket& ticket) const {
  const auto held = answers_.find(ticket.peer_);
  return held == answers_.end() || held->second + ticket.holds_.answer <= answers_per_peer();
}

void Admission::hold(const Ticket& ticket) {
  reserved_.memory += ticket.holds_.memory;
  reserved_.answer += ticket.holds_.answer;
  if (ticket.holds_.answer > 0) answers_[ticket.peer_] += ticket.holds_.answer;
}

void Admission::release(const Ticket& ticket) {
  reserved_.memory -= ticket.holds_.memory;
  reserved_.answer -= ticket.holds_.answer;
  const auto held = answers_.find(ticket.peer_);
  if (held == answers_.end()) return;
  held->second -= ticket.holds_.answer;
  if (held->second == 0) answers_.erase(held);
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
    release(ticket);
  } else {
    dequeue(ticket);
  }
  admit_those_that_fit();
}

bool Admission::Ticket::holds(Budget budget) const {
  switch (budget) {
    case Budget::kRunning:
      return running_;
    case Budget::kMemory:
      return admitted_ && holds_.memory > 0;
    case Budget::kAnswers:
      return admitted_ && holds_.answer > 0;
    case Budget::kQueued:
    case Budget::kQueuedPerPeer:
      break;
  }
  return !admitted_;
}

void Admission::Ticket::keep_only(Need held) {
  admission_.end_run(*this);
  admission_.release(*this);
  holds_ = {std::min(held.memory, holds_.memory), held.answer};
  admission_.hold(*this);
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
    if (!fits_peer(first)) continue;
    if (!fits_memory(first) || !fits_answers(first)) {
      if (first.passed_over_ >= kMaxPassedOver) return nullptr;
      continue;
    }
    for (auto passed = turns_.begin(); passed != peer; ++passed) {
      Ticket& other = *passed->waiting.front();
      if (fits_peer(other)) ++other.passed_over_;
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
  hold(ticket);
  if (ticket.on_turn_) ticket.on_turn_();
}

std::chrono::seconds Admission::estimate() const {
  const double turns = static_cast<double>(queued_ + 1) / limits_.max_running;
  const double seconds = std::clamp(std::ceil(mean_seconds_ * turns), 1.0, kLongestRetry);
  return std::chrono::seconds(static_cast<std::int64_t>(seconds));
}

}  // namespace sbx::daemon
