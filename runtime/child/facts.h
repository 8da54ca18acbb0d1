// What init reads from the kernel when the payload has ended. Stage: child.
#pragma once

#include "runtime/child/context.h"

namespace sbx::child {

// Reports storage that is full, packets that found no route, and processes left behind.
void report_facts(Context& context);

}  // namespace sbx::child
