#include "http/async/event.h"

namespace sbx::async {

void Event::notify_one() {
  if (!waits_.empty()) waits_.front().wake(Wake::kReady);
}

void Event::notify_all() {
  while (!waits_.empty()) waits_.front().wake(Wake::kReady);
}

}  // namespace sbx::async
