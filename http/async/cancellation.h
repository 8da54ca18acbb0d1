// Cancellation: a flag that ends the waits which were told of it.
//
// Owned by whoever may cancel, borrowed by waits; it outlives them. Raised once, for good. One that
// is made with parents is raised with the first of them: a run listens to its own Cancellation,
// whose parents are "the client left" and "the daemon stops".
#pragma once

#include <initializer_list>
#include <memory>
#include <vector>

#include "http/async/list.h"
#include "http/async/wait.h"

namespace sbx::async {

class Cancellation {
 public:
  Cancellation();
  // Parents outlive it.
  Cancellation(std::initializer_list<const Cancellation*> parents);
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;
  ~Cancellation();

  // Wakes every wait with kCancelled, in the loop's next turn. Again: nothing.
  void cancel();
  [[nodiscard]] bool cancelled() const { return cancelled_; }

 private:
  friend class Wait;
  struct Inheritance;

  bool cancelled_ = false;
  mutable detail::List<Wait, detail::ByCancellation> waits_;
  mutable detail::List<Inheritance, detail::ByCancellation> children_;
  std::vector<std::unique_ptr<Inheritance>> parents_;
};

}  // namespace sbx::async
