// Book: the ledger in SQLite. Blocking; from one thread at a time. Any number of processes may have
// the same file open.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agentd/ledger/ledger.h"
#include "agentd/store/database.h"
#include "runtime/base/result.h"

namespace agentd::ledger {

struct BookOptions {
  std::string owner;                                 // own_identity()
  std::function<bool(const std::string&)> is_alive;  // of an owner
  // Milliseconds since the epoch; kept with each reservation for people to read. Nothing is decided
  // by it, so a clock that jumps breaks nothing.
  std::function<std::int64_t()> now;
};

// A line of a reservation, as it is kept.
struct Held {
  std::string account;
  std::int64_t reserved = 0;
  std::int64_t settled = 0;
  bool flagged = false;
};

// As the functions of Ledger, which see.
class Book {
 public:
  // Makes the tables when there are none, and makes those of an earlier agentd into them.
  [[nodiscard]] static sbx::Result<Book> open(store::Database database, BookOptions options);

  [[nodiscard]] sbx::Result<Grant> reserve(const Reservation& reservation,
                                           const Reservation* ahead = nullptr);
  [[nodiscard]] sbx::Result<Settlement> settle(const std::string& id,
                                               const std::vector<Actual>& actual);
  [[nodiscard]] sbx::Result<void> release(const std::string& id, const std::string& reason);
  [[nodiscard]] sbx::Result<int> release_dead_owners();
  // All zero for an account that was never used.
  [[nodiscard]] sbx::Result<Balance> balance(const std::string& account);
  // Drops settled and released reservations, and the accounts, whose names start with `prefix`, of
  // something that is over. What is still reserved stays.
  [[nodiscard]] sbx::Result<void> forget(const std::string& prefix);

 private:
  Book(store::Database database, BookOptions options)
      : database_(std::move(database)), options_(std::move(options)) {}

  enum class Standing : std::uint8_t { kReserved, kSettled, kReleased };
  struct Known {
    Standing standing = Standing::kReserved;
    std::vector<Held> lines;
  };
  [[nodiscard]] sbx::Result<void> make_tables();
  [[nodiscard]] sbx::Result<void> use_plain_check();
  [[nodiscard]] sbx::Result<void> add_owner();
  [[nodiscard]] sbx::Result<Grant> reserve_inside(const Reservation& reservation);
  [[nodiscard]] sbx::Result<Grant> again_or(const std::string& id, sbx::Result<Grant> otherwise);
  [[nodiscard]] sbx::Result<Grant> room_for(const Line& line);
  [[nodiscard]] sbx::Result<void> hold(const Line& line);
  [[nodiscard]] sbx::Result<std::optional<Known>> find(const std::string& id);
  [[nodiscard]] sbx::Result<void> close(const std::string& id, Standing standing,
                                        std::string_view note, const std::vector<Held>& lines);
  [[nodiscard]] sbx::Result<void> release_inside(const std::string& id, const std::string& reason);
  [[nodiscard]] sbx::Result<int> release_all_of(const std::string& owner);

  store::Database database_;
  BookOptions options_;
};

}  // namespace agentd::ledger
