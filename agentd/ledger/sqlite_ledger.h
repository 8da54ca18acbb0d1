// SqliteLedger: the Book as a Ledger, on the store's queue, so that the loop never waits for a
// disk.
//
// A settlement or release that fails (a full disk) is kept and made up for before anything more is
// reserved: what was spent would else count as nothing once this process has ended, and what was
// not would stay reserved until then.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "agentd/ledger/book.h"
#include "agentd/ledger/ledger.h"
#include "agentd/store/queue.h"

namespace agentd::ledger {

class SqliteLedger final : public Ledger {
 public:
  // Both are borrowed. The book outlives the queue, and the queue's loop runs no longer than the
  // ledger lives. The queue is the one for the book's database.
  SqliteLedger(Book& book, store::Queue& queue) : book_(book), queue_(queue) {}

  sbx::async::Task<sbx::Result<Grant>> reserve(Reservation reservation,
                                               std::optional<Reservation> ahead) override;
  void settle(std::string id, std::vector<Actual> actual) override;
  void release(std::string id, std::string reason) override;
  sbx::async::Task<bool> make_up() override;
  [[nodiscard]] std::size_t unwritten() const override { return failed_.size(); }
  sbx::async::Task<sbx::Result<int>> release_dead_owners() override;

 private:
  void keep(const sbx::Error& error, std::function<void()> again);
  [[nodiscard]] sbx::async::Task<void> until_tried();

  Book& book_;
  store::Queue& queue_;
  // Calls that failed. At most two for each request under way, its call's and the run's that was
  // reserved with it: without room for them none is granted another.
  std::vector<std::function<void()>> failed_;
  std::size_t under_way_ = 0;  // settlements and releases that the queue has
};

}  // namespace agentd::ledger
