// SqliteLedger: the Book as a Ledger, on a pool of one thread, so that the loop never waits for a
// disk.
#pragma once

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
  sbx::async::Task<sbx::Result<Balance>> balance(std::string account) override;

 private:
  Book& book_;
  sbx::async::WorkPool& pool_;
};

}  // namespace agentd::ledger
