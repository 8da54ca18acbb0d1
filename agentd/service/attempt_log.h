// AttemptLog: a line on the log for each attempt of a request, once it has ended. On the loop.
//
// Figures and names of ours alone: what a model or a program said is in the record.
#pragma once

#include <cstddef>

#include "agentd/record/record.h"

namespace agentd::service {

class AttemptLog {
 public:
  // After each change of the record; always of the same one.
  void look(const record::Record& record);

 private:
  std::size_t logged_ = 0;  // of its attempts
};

}  // namespace agentd::service
