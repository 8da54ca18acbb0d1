// Walking a list of steps and telling the supervisor about it.
#include "runtime/child/context.h"

namespace sbx::child {

bool report(const plan::Record& record) {
  // A full pipe or a dead supervisor: mostly nothing that init could do; the lifeline ends it.
  return sys(__NR_write, plan::kSlotReport, &record, sizeof record) ==
         static_cast<Word>(sizeof record);
}

bool walk(Context& context, const StepEntry* steps, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const plan::StepMask bit = plan::step_bit(steps[i].step);
    if ((context.plan->skip & bit) != 0) continue;
    const Word result = chosen_step(context, steps[i])(context);
    if (result >= 0) continue;
    const bool passed_over = (context.plan->may_fail & bit) != 0;
    plan::Record record;
    record.kind = passed_over ? plan::RecordKind::kInformation : plan::RecordKind::kStepFailed;
    record.step = steps[i].step;
    record.error = static_cast<std::int32_t>(-result);
    report(record);
    if (!passed_over) return false;
  }
  return true;
}

}  // namespace sbx::child
