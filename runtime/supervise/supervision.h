// Supervision: watches one child to its end and gathers the facts. Stage: supervise.
//
// Runs in the supervisor, outside. A non-blocking object: descriptors to poll, a next deadline, and
// step(). The one who kills: init ends a run by itself only at a hostile call, when nobody is left
// outside, and when the wall limit is long over. Produces an Ending; judges nothing.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/spawn/child.h"
#include "runtime/spawn/protocol.h"
#include "runtime/supervise/capture.h"
#include "runtime/supervise/ending.h"
#include "runtime/supervise/pumps.h"
#include "runtime/supervise/record_pipe.h"

namespace sbx::supervise {

struct SupervisionOptions {
  const plan::Plan* plan = nullptr;  // outlives the supervision
  std::optional<std::string> stdin_text;
  int stdin_source = -1;  // borrowed
  int cancel = -1;        // borrowed; readable: cancel
  Capture::Live on_stdout, on_stderr;
  FillRest fill_rest;  // what follows the plan's own entries
};

class Supervision {
 public:
  using Clock = std::chrono::steady_clock;

  Supervision(spawn::Child child, SupervisionOptions options);
  Supervision(const Supervision&) = delete;
  Supervision& operator=(const Supervision&) = delete;

  // Descriptors to poll now, and by when to call step() at the latest.
  void add_interest(std::vector<pollfd>& fds) const;
  [[nodiscard]] Clock::time_point next_deadline() const;
  // `ready` holds at least what add_interest added, as poll filled it.
  void step(const std::vector<pollfd>& ready);
  void cancel();

  [[nodiscard]] bool ended() const { return phase_ == Phase::kEnded; }
  // Once, after ended(). The control socket serves the collection.
  [[nodiscard]] Ending take_ending();
  [[nodiscard]] UniqueFd take_control() { return std::move(child_.control); }
  [[nodiscard]] bool output_empty() const { return output_empty_; }

 private:
  enum class Phase { kLaunching, kRunning, kEnded };

  void take_answers();
  void take_answer(const spawn::AnswerPacket& answer, std::vector<UniqueFd> fds);
  void take_records();
  void take_record(const plan::Record& record);
  void take_failed_step(const plan::Record& record);
  void take_information(const plan::Record& record);
  void take_clock(const plan::Record& record);
  void drain_output(UniqueFd& pipe, Capture& capture);
  [[nodiscard]] Clock::time_point launch_deadline() const;
  void give_up_launch();
  // The payload's own end is known: whatever acts from here on has not ended it.
  [[nodiscard]] bool payload_is_over() const {
    return ending_.payload_wait_status.has_value() || ending_.hostile.has_value();
  }
  [[nodiscard]] bool is_killed() const { return killed_ || kill_wanted_; }
  [[nodiscard]] bool is_ending() const { return is_killed() || payload_is_over(); }
  [[nodiscard]] bool spawner_is_silent() const {
    return child_.spawner_silent != nullptr && *child_.spawner_silent;
  }
  void lose_spawner(Error error);
  void give_up_spawner();
  void give_up_end();
  void check_deadlines();
  void end_at_wall_limit();
  void check_cpu(Clock::time_point now);
  void on_oom();
  void expect_the_end();
  void kill();
  void hurry_the_end();
  void fail(Error error);
  void finish();

  spawn::Child child_;
  SupervisionOptions options_;
  RecordPipe report_;
  Capture out_;
  Capture err_;
  FillPump fill_;
  StdinPump stdin_;
  UniqueFd pidfd_;
  Phase phase_ = Phase::kLaunching;
  bool killed_ = false;
  bool kill_wanted_ = false;  // before the pidfd has come
  bool output_empty_ = true;
  Clock::time_point wall_deadline_ = Clock::time_point::max();  // from the launch on
  Clock::time_point next_cpu_check_ = Clock::time_point::max();
  Clock::time_point kill_deadline_ = Clock::time_point::max();
  Clock::time_point payload_ended_ = Clock::time_point::max();  // as init told it
  Ending ending_;
};

}  // namespace sbx::supervise
