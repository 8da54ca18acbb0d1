#include "http/async/cancellation.h"

namespace sbx::async {

// A child's place in one parent's list.
struct Cancellation::Inheritance : detail::Link<detail::ByCancellation> {
  explicit Inheritance(Cancellation& heir) : child(heir) {}
  Cancellation& child;
};

Cancellation::Cancellation() = default;

Cancellation::Cancellation(std::initializer_list<const Cancellation*> parents) {
  for (const Cancellation* parent : parents) {
    cancelled_ = cancelled_ || parent->cancelled_;
    parents_.push_back(std::make_unique<Inheritance>(*this));
    parent->children_.push_back(*parents_.back());
  }
}

Cancellation::~Cancellation() = default;

void Cancellation::cancel() {
  if (cancelled_) return;
  cancelled_ = true;
  while (!waits_.empty()) waits_.front().wake(Wake::kCancelled);
  while (!children_.empty()) {
    Inheritance& heir = children_.front();
    heir.unlink();
    heir.child.cancel();
  }
}

}  // namespace sbx::async
