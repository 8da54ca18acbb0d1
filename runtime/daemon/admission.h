// Admission: which requests run now, which wait, which are refused. Stage: daemon. No I/O.
//
// A request is a Ticket: it waits in its peer's queue, then holds one of `max_running` places and
// its share of two budgets, until it is destroyed: of memory, which the run may use, and of
// answers, which is what we hold of its output until the client has read it. Turns go round the
// peers (by uid), one request each, so that a peer with a long queue delays the others by one run
// at most. A request that is too big for the memory that is free now is passed over, but only so
// many times: then everybody waits until it fits. A peer has half of the answer budget at most: he
// waits alone, when he does not read what he has asked for.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string_view>
#include <variant>

namespace sbx::daemon {

struct AdmissionLimits {
  std::uint32_t max_running = 64;
  std::uint32_t max_queued = 256;
  std::uint32_t max_queued_per_peer = 128;
  std::uint64_t memory_budget = 0;  // bytes
  std::uint64_t answer_budget = 0;  // bytes
};

// What a request may need of the two.
struct Need {
  std::uint64_t memory = 0;
  std::uint64_t answer = 0;
};

// Why a request cannot run, or cannot even wait. The name of the config's key.
enum class Budget { kRunning, kMemory, kAnswers, kQueued, kQueuedPerPeer };
[[nodiscard]] std::string_view budget_name(Budget budget);

struct Refusal {
  Budget budget{};
  std::chrono::seconds retry_after{1};  // an estimate from how long runs took lately
  bool own = false;                     // it is the peer's own answers that leave no room
};

class Admission {
 public:
  using Clock = std::chrono::steady_clock;

  class Ticket {
   public:
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;
    ~Ticket();  // leaves the queue, or gives place and memory back
    [[nodiscard]] bool admitted() const { return admitted_; }
    // Whether its end would give back anything of this budget.
    [[nodiscard]] bool holds(Budget budget) const;
    // The run is over: gives its place back, and all but what the answer under way still holds. Of
    // memory no more than it has; of the answer it is what there is, also when that is more.
    void keep_only(Need held);

   private:
    friend class Admission;
    Ticket(Admission& admission, uid_t peer, Need need, std::function<void()> on_turn)
        : admission_(admission), peer_(peer), holds_(need), on_turn_(std::move(on_turn)) {}

    Admission& admission_;
    uid_t peer_;
    Need holds_;
    std::function<void()> on_turn_;
    bool admitted_ = false;
    bool running_ = false;
    std::uint32_t passed_over_ = 0;
    Clock::time_point since_{};  // admitted
  };

  explicit Admission(AdmissionLimits limits, std::function<Clock::time_point()> now = Clock::now)
      : limits_(limits), now_(std::move(now)) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // `on_turn` is called once, later, when the ticket gets admitted; not when it is at once. It must
  // not destroy tickets. The Admission outlives its tickets.
  [[nodiscard]] std::variant<std::unique_ptr<Ticket>, Refusal> enter(uid_t peer, Need need,
                                                                     std::function<void()> on_turn);
  // What a ticket that waits is waiting for, as a refusal of those that gave up.
  [[nodiscard]] Refusal refusal(const Ticket& waiting) const;

  [[nodiscard]] std::uint32_t running() const { return running_; }
  [[nodiscard]] std::uint32_t queued() const { return queued_; }
  [[nodiscard]] std::uint64_t reserved() const { return reserved_.memory; }
  [[nodiscard]] std::uint64_t answers() const { return reserved_.answer; }
  [[nodiscard]] const AdmissionLimits& limits() const { return limits_; }

 private:
  struct Peer {
    uid_t uid;
    std::deque<Ticket*> waiting;
  };

  [[nodiscard]] std::uint64_t answers_per_peer() const { return limits_.answer_budget / 2; }
  [[nodiscard]] bool fits_memory(const Ticket& ticket) const;
  [[nodiscard]] bool fits_answers(const Ticket& ticket) const;
  // His own unread answers leave no room.
  [[nodiscard]] bool fits_peer(const Ticket& ticket) const;
  void enqueue(Ticket& ticket);
  void leave(Ticket& ticket);
  void end_run(Ticket& ticket);
  void hold(const Ticket& ticket);
  void release(const Ticket& ticket);
  void dequeue(Ticket& ticket);
  void admit_those_that_fit();
  [[nodiscard]] Ticket* next();
  void admit(Ticket& ticket);
  [[nodiscard]] std::chrono::seconds estimate() const;

  AdmissionLimits limits_;
  std::function<Clock::time_point()> now_;
  std::list<Peer> turns_;  // those who wait; the front's turn is next
  std::uint32_t running_ = 0;
  std::uint32_t queued_ = 0;
  Need reserved_;
  std::map<uid_t, std::uint64_t> answers_;  // of those who hold any
  double mean_seconds_ = 1;                 // of a run, lately
};

}  // namespace sbx::daemon
