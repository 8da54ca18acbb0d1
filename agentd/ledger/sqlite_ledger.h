// SqliteLedger: the Book as a Ledger, on a pool of one thread, so that the loop never waits for a
// disk.
//
// A settlement that fails (a full disk) is kept and made up for by release_dead_owners(), which is
// called now and then: what was spent would else count as nothing once this process has ended.
#pragma once

#include <utility>
#include <vector>

#include "agentd/ledger/book.h"
#include "agentd/ledger/ledger.h"
#include "http/async/work_pool.h"

namespace agentd::ledger {

class SqliteLedger final : public Ledger {
 public:
  // Both are borrowed and outlive it. SECURITY: `pool` has one thread, as a Book takes one at a
  // time.
  SqliteLedger(Book& book, sbx::async::WorkPool& pool) : book_(book), pool_(pool) {}

  sbx::async::Task<sbx::Result<Grant>> reserve(Reservation reservation) override;
  sbx::async::Task<sbx::Result<Settlement>> settle(std::string id,
                                                   std::vector<Actual> actual) override;
  sbx::async::Task<sbx::Result<void>> release(std::string id, std::string reason) override;
  sbx::async::Task<sbx::Result<int>> release_dead_owners() override;

 private:
  [[nodiscard]] sbx::async::Task<void> settle_what_failed();

  Book& book_;
  sbx::async::WorkPool& pool_;
  // At most one for each request under way: without room for it none is granted another.
  std::vector<std::pair<std::string, std::vector<Actual>>> unsettled_;
};

}  // namespace agentd::ledger
