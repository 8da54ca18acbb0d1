// Bytes into the sandbox: the fill stream and the payload's stdin. Stage: supervise.
//
// Both write to non-blocking pipes and end quietly when the reader is gone: what that means is told
// by the report pipe and the ending, not by EPIPE. SIGPIPE must be ignored (Sandbox::open sees to
// it).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/plan/plan.h"

namespace sbx::supervise {

// Takes the pipe over: writes further entries, the end, and closes it. Must not block.
using FillRest = std::function<void(UniqueFd pipe)>;

// The stream that sbx-init's filler reads (plan::FillHeader).
class FillPump {
 public:
  // Without a `rest` the end follows the entries.
  FillPump(UniqueFd pipe, const std::vector<plan::FillEntry>* entries, FillRest rest = {});
  // Poll for POLLOUT while valid.
  [[nodiscard]] int fd() const { return pipe_.get(); }
  void step();

 private:
  [[nodiscard]] bool write_some(std::string_view& bytes);
  void prepare_next();
  void end();

  UniqueFd pipe_;
  const std::vector<plan::FillEntry>* entries_;  // outlives the pump: it belongs to the run's plan
  FillRest rest_;
  std::size_t next_ = 0;
  std::string head_;  // header and path of the entry under way
  std::string_view head_rest_;
  std::string_view content_rest_;
  bool ended_ = false;
};

// stdin: fixed text, or whatever a descriptor of the caller's gives, until end of file.
class StdinPump {
 public:
  StdinPump(UniqueFd pipe, std::optional<std::string> text, int source);
  // The pipe, for POLLOUT, while there is something to write; else -1.
  [[nodiscard]] int sink_fd() const { return rest_.empty() ? -1 : pipe_.get(); }
  // The caller's descriptor, for POLLIN, while more is wanted; else -1.
  [[nodiscard]] int source_fd() const { return pipe_ && rest_.empty() ? source_ : -1; }
  void write_some();
  void read_some();

 private:
  void finish_if_done();

  UniqueFd pipe_;
  std::string buffer_;
  std::string_view rest_;
  int source_;  // borrowed; -1: no more
};

}  // namespace sbx::supervise
