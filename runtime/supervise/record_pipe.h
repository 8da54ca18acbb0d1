// RecordPipe: what init reports of a run, record by record. Stage: supervise.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/plan/flat_plan.h"

namespace sbx::supervise {

class RecordPipe {
 public:
  // The read end, non-blocking.
  explicit RecordPipe(UniqueFd pipe) : pipe_(std::move(pipe)) {}

  // To poll for reading; -1 once nobody can write any more.
  [[nodiscard]] int fd() const { return pipe_.get(); }
  // Whole records that are there now, at most a pipe full; a part of one is kept until its rest has
  // come.
  [[nodiscard]] std::vector<plan::Record> read();

 private:
  UniqueFd pipe_;
  std::string partial_;
};

}  // namespace sbx::supervise
