#include "agentd/store/database.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <utility>

#include "runtime/base/sys.h"

namespace agentd::store {
namespace {

constexpr std::size_t kLargeText = 64U << 10;
constexpr const char* kMakeRoom = "make room on the file system of the state directory";
constexpr const char* kMakeWritable =
    "make the state directory writable for agentd, with room, or name another with --state-dir";

sbx::Error error_of(sqlite3* database, int result, std::string_view operation) {
  const std::string detail =
      database != nullptr ? ::sqlite3_errmsg(database) : ::sqlite3_errstr(result);
  sbx::Error error{.code = sbx::ErrorCode::kHost,
                   .stage = "store",
                   .operation = std::string(operation),
                   .sys_errno = 0,
                   .detail = detail,
                   .fix = {}};
  switch (result & 0xFF) {
    case SQLITE_FULL:
      error.sys_errno = ENOSPC;
      error.fix = kMakeRoom;
      break;
    case SQLITE_IOERR:  // also by a full disk, where it is not a page that has no room; errno is
                        // not kept for sure
      error.fix = "see whether the file system of the state directory is full, or broken";
      break;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      error.fix = "move the state directory's agentd.db away; a new one is made";
      break;
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      error.fix = kMakeWritable;
      break;
    case SQLITE_BUSY:
      error.fix = "another process holds agentd.db for long: let only agentd use it";
      break;
    default:
      break;
  }
  return error;
}

// SQLite counts the memory that it uses, under a lock at each piece of it. Nobody asks for the sum.
void count_no_memory() {
  static const int configured = ::sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  (void)configured;  // fails where SQLite is in use already, and then it counts
}

sqlite3* database_of(sqlite3_stmt* statement) {
  return ::sqlite3_db_handle(statement);
}

}  // namespace

Statement::~Statement() {
  if (statement_ == nullptr) return;
  (void)::sqlite3_reset(statement_);                       // repeats step()'s error
  if (large_) (void)::sqlite3_clear_bindings(statement_);  // never fails
}

Statement& Statement::bind(int parameter, std::int64_t value) {
  // Fails only for a parameter that the text does not have: found by the first test.
  (void)::sqlite3_bind_int64(statement_, parameter, value);
  return *this;
}

Statement& Statement::bind(int parameter, std::string_view text) {
  large_ = large_ || text.size() > kLargeText;
  // A null pointer would be NULL.
  const char* bytes = text.data() == nullptr ? "" : text.data();
  (void)::sqlite3_bind_text64(statement_, parameter, bytes, text.size(), SQLITE_TRANSIENT,
                              SQLITE_UTF8);  // as above
  return *this;
}

sbx::Result<bool> Statement::step() {
  const int result = ::sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) return false;
  return error_of(database_of(statement_), result, "sqlite3_step");
}

sbx::Result<void> Statement::run() {
  auto row = step();
  if (!row) return std::move(row).error();
  return {};
}

sbx::Result<int> Statement::run_and_count() {
  SBX_TRY(run());
  return ::sqlite3_changes(database_of(statement_));
}

std::int64_t Statement::integer(int column) const {
  return ::sqlite3_column_int64(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* bytes = static_cast<const char*>(::sqlite3_column_blob(statement_, column));
  const int size = ::sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
}

struct Database::State {
  sqlite3* database = nullptr;
  std::map<const char*, sqlite3_stmt*> statements;
  Durability durability = Durability::kProcess;
  std::uint64_t rollbacks = 0;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    for (const auto& [sql, statement] : statements) (void)::sqlite3_finalize(statement);
    (void)::sqlite3_close(database);  // nothing is open on it any more
  }
};

sbx::Result<Database> Database::open(const DatabaseOptions& options) {
  count_no_memory();
  struct stat info{};
  if (::lstat(options.path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return sbx::host_lacks("open", 0, options.path + " is not a regular file",
                           "move it away; a new one is made");
  }
  // SQLite gives -wal and -shm the mode of the file itself. Closed before SQLite opens it: to close
  // any descriptor of a file drops all the locks that this process holds of it (POSIX), and a
  // database that is not locked loses its log to the next reader that leaves.
  if (auto file = sbx::sys::open(options.path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600); !file) {
    return sbx::host_lacks("open", file.error().sys_errno, options.path,
                           sbx::sys::is_full(file.error().sys_errno) ? kMakeRoom : kMakeWritable);
  }
  auto state = std::make_shared<State>();
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  const int opened = ::sqlite3_open_v2(options.path.c_str(), &state->database, kFlags, options.vfs);
  if (opened != SQLITE_OK) return error_of(state->database, opened, "sqlite3_open_v2");
  (void)::sqlite3_busy_timeout(state->database, options.busy_milliseconds);  // never fails
  Database database(std::move(state));
  SBX_TRY(database.use_wal(options.path));
  SBX_TRY(
      database.execute("PRAGMA synchronous=NORMAL; PRAGMA journal_size_limit=4194304;"
                       "PRAGMA trusted_schema=OFF;"));
  if (options.max_pages > 0) {
    SBX_TRY(database.execute(fmt::format("PRAGMA max_page_count={}", options.max_pages).c_str()));
  }
  return database;
}

// SQLite fails not where it cannot: it says which mode there is.
sbx::Result<void> Database::use_wal(const std::string& path) {
  SBX_ASSIGN(Statement pragma, statement("PRAGMA journal_mode=WAL"));
  SBX_ASSIGN(const bool row, pragma.step());
  if (row && pragma.text(0) == "wal") return {};
  return sbx::host_lacks("journal_mode", 0, path + ": the file system has no shared memory for it",
                         "name a directory on a local file system with --state-dir");
}

sbx::Result<void> Database::execute(const char* sql) {
  const int result = ::sqlite3_exec(state_->database, sql, nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return error_of(state_->database, result, "sqlite3_exec");
  return {};
}

sbx::Result<bool> Database::has(std::string_view type, std::string_view name) {
  SBX_ASSIGN(Statement select,
             statement("SELECT 1 FROM sqlite_schema WHERE type = ?1 AND name = ?2"));
  return select.bind(1, type).bind(2, name).step();
}

sbx::Result<Statement> Database::statement(const char* sql) {
  const auto known = state_->statements.find(sql);
  if (known != state_->statements.end()) return Statement(known->second);
  sqlite3_stmt* prepared = nullptr;
  const int result = ::sqlite3_prepare_v3(state_->database, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                          &prepared, nullptr);
  if (result != SQLITE_OK) return error_of(state_->database, result, "sqlite3_prepare_v3");
  state_->statements.emplace(sql, prepared);
  return Statement(prepared);
}

sbx::Result<void> Database::begin(Durability durability) {
  if (durability != state_->durability) {
    SBX_TRY(execute(durability == Durability::kPower ? "PRAGMA synchronous=FULL"
                                                     : "PRAGMA synchronous=NORMAL"));
    state_->durability = durability;
  }
  SBX_ASSIGN(Statement begin, statement("BEGIN IMMEDIATE"));
  return begin.run();
}

sbx::Result<void> Database::commit() {
  SBX_ASSIGN(Statement commit, statement("COMMIT"));
  return commit.run();
}

bool Database::in_transaction() const {
  return ::sqlite3_get_autocommit(state_->database) == 0;
}

std::uint64_t Database::rollbacks() const {
  return state_->rollbacks;
}

void Database::rollback() {
  ++state_->rollbacks;
  // Nothing to do when SQLite has rolled back by itself, as after a full disk.
  (void)::sqlite3_exec(state_->database, "ROLLBACK", nullptr, nullptr, nullptr);
}

}  // namespace agentd::store
