// What init learns from the kernel about the payload's end. Stage: child.
#pragma once

#include "runtime/child/context.h"

namespace sbx::child {

// Opens what report_facts() and the count of locks will read, and lets go of the view of /proc: the
// kernel takes down a mount that has no path before the one who held it may end, and here nobody
// waits for that.
void prepare_facts(Context& context);

// Reports storage that is full, packets that found no route, and processes left behind.
void report_facts(Context& context);

}  // namespace sbx::child
