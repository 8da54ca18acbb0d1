// Database: one connection to agentd's SQLite file, with errors as values.
//
// Used by ledger/ and history/ on the thread of a Queue (or wherever blocking is allowed);
// never from two threads at once. They share one connection: what SQLite holds of the file in
// memory is void as soon as another connection has written, and reading it again cost more than the
// writing. SQLite is in database.cc and nowhere else. WAL mode: readers of other processes never
// block a writer, and what was committed survives the death of any process. Power loss: see
// Durability.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace agentd::store {

// A prepared statement in use. Its destructor ends the use: a SELECT that was not read to its end
// would keep its transaction open. One text is in use once at a time. Parameters and columns count
// as in SQLite: parameters from 1, columns from 0.
class Statement {
 public:
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  Statement(Statement&& other) noexcept
      : statement_(std::exchange(other.statement_, nullptr)), large_(other.large_) {}
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Each parameter each time: one that is not bound anew has what it had in the last use.
  Statement& bind(int parameter, std::int64_t value);
  Statement& bind(int parameter, std::string_view text);  // copied

  // True: a row is there; false: the statement is done.
  [[nodiscard]] sbx::Result<bool> step();
  // For statements that give no row.
  [[nodiscard]] sbx::Result<void> run();
  // The same; how many rows it inserted, changed or removed.
  [[nodiscard]] sbx::Result<int> run_and_count();

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] std::string text(int column) const;

 private:
  sqlite3_stmt* statement_;  // borrowed from the Database
  bool large_ = false;       // what is bound is not to be kept until the next use
};

enum class Durability : std::uint8_t {
  kProcess,  // survives the death of processes
  kPower,    // is on the disk when the commit returns
};

struct DatabaseOptions {
  std::string path;
  int busy_milliseconds = 5000;  // how long a writer waits for another process's
  std::int64_t max_pages = 0;    // for tests: the file is "full" at that many; 0: no bound
  const char* vfs = nullptr;     // for tests: SQLite's name of another file system layer
};

// A copy is the same connection, which ends with the last of them.
class Database {
 public:
  // Creates the file (0600) when there is none. kHost when it cannot be opened, is no database, or
  // lies where WAL mode is not to be had.
  [[nodiscard]] static sbx::Result<Database> open(const DatabaseOptions& options);
  Database(const Database&) = default;
  Database(Database&&) noexcept = default;
  Database& operator=(const Database&) = delete;
  Database& operator=(Database&&) = delete;
  ~Database() = default;

  // Statements without parameters, separated by ";".
  [[nodiscard]] sbx::Result<void> execute(const char* sql);
  // Whether there is such a "table" or "index".
  [[nodiscard]] sbx::Result<bool> has(std::string_view type, std::string_view name);
  // Prepared once for each text, which must be a literal that lives on. Preparing fails only for a
  // mistake in it, or when the file is broken.
  [[nodiscard]] sbx::Result<Statement> statement(const char* sql);

  // BEGIN IMMEDIATE: whoever has begun is the only writer, so reads inside see the latest state.
  [[nodiscard]] sbx::Result<void> begin(Durability durability);
  [[nodiscard]] sbx::Result<void> commit();
  void rollback();
  // How often something was rolled back: what was remembered of it in memory is void then.
  [[nodiscard]] std::uint64_t rollbacks() const;
  // Between begin() and the end of that transaction.
  [[nodiscard]] bool in_transaction() const;

 private:
  struct State;
  explicit Database(std::shared_ptr<State> state) : state_(std::move(state)) {}
  [[nodiscard]] sbx::Result<void> use_wal(const std::string& path);
  std::shared_ptr<State> state_;  // the other owners are the copies
};

// Runs `body` (Result<T>()) in a transaction: committed when it gives a value, else rolled back.
// Where one has begun already, as a part of that one, whose end is not decided here.
template <typename Body>
[[nodiscard]] auto in_transaction(Database& database, Durability durability, Body body)
    -> decltype(body()) {
  if (database.in_transaction()) return body();
  SBX_TRY(database.begin(durability));
  auto result = body();
  if (!result) {
    database.rollback();
    return result;
  }
  if (auto committed = database.commit(); !committed) {
    database.rollback();
    return sbx::unexpected(std::move(committed).error());
  }
  return result;
}

}  // namespace agentd::store
