#include "agentd/service/attempt_log.h"

#include "runtime/base/log.h"

namespace agentd::service {

void AttemptLog::look(const record::Record& record) {
  // The last one is under way until the next begins, or the request has ended.
  const std::size_t under_way = has_ended(record) ? 0 : 1;
  for (; logged_ + under_way < record.attempts.size(); ++logged_) {
    const record::Attempt& attempt = record.attempts[logged_];
    sbx::log::info("attempt ended", {{"request", record.id},
                                     {"attempt", std::int64_t{attempt.n}},
                                     {"class", class_or_outcome(attempt)},
                                     {"model_seconds", attempt.model_seconds},
                                     {"run_seconds", attempt.run_seconds},
                                     {"input_tokens", attempt.charge.input_tokens},
                                     {"output_tokens", attempt.charge.output_tokens},
                                     {"micro_dollars", attempt.charge.cost.value},
                                     {"tools", std::uint64_t{attempt.tools.size()}}});
  }
}

}  // namespace agentd::service
