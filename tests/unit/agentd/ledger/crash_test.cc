// The ledger's invariant, settled + reserved ≤ cap, with eight processes that reserve, settle and
// release as fast as they can, with clocks that jump, and are killed in between.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "agentd/ledger/book.h"
#include "agentd/ledger/owner.h"
#include "runtime/base/sys.h"
#include "tests/support/process.h"

namespace agentd::ledger {
namespace {

constexpr std::uint32_t kWorkers = 8;
constexpr std::int64_t kCap = 10'000;

// The account of "today" by a clock that goes on, and jumps a day back or forth at each look.
std::string today(std::uint32_t n, std::uint_fast32_t jump) {
  return "day/" + std::to_string(n / 100 + jump % 3) + "/cost";
}

store::Database open_database(const std::string& path) {
  auto database = store::Database::open({.path = path, .busy_milliseconds = 60'000});
  if (!database) std::abort();
  return *std::move(database);
}

// What a worker says on its pipe, one byte each.
constexpr char kHolds = 'h';  // it has reserved, and not yet settled
constexpr char kIdle = 'i';

// One of the eight. Never returns; anything that goes wrong ends it with a code.
[[noreturn]] void work(const std::string& path, std::uint32_t seed, int pipe) {
  std::mt19937 random(seed);
  auto owner = own_identity();
  if (!owner) ::_exit(10);
  auto book =
      Book::open(open_database(path), {.owner = *owner, .is_alive = is_alive, .now = [&random] {
                                         return static_cast<std::int64_t>(random()) - 2'000'000'000;
                                       }});
  if (!book) ::_exit(11);
  const auto say = [pipe](char what) {
    if (::write(pipe, &what, 1) != 1) ::_exit(0);  // the test is over
  };
  for (std::uint32_t n = seed;; ++n) {
    const std::string id = std::to_string(::getpid()) + "/" + std::to_string(n);
    const std::string account = today(n, random());
    const auto amount = static_cast<std::int64_t>(random() % 3000);
    const auto grant = book->reserve({.id = id, .lines = {{account, amount, kCap}}});
    if (!grant) ::_exit(12);
    if (!grant->granted) {
      if (grant->available >= amount) ::_exit(13);
      say(kIdle);
      continue;
    }
    say(kHolds);
    // Some figures lie, and are billed as reserved.
    const auto figure = random() % 8 == 0 ? -5 : static_cast<std::int64_t>(random() % 2);
    const bool done = random() % 3 == 0 ? book->release(id, "changed its mind").has_value()
                                        : book->settle(id, {{account, figure}}).has_value();
    if (!done) ::_exit(14);
    if (random() % 64 == 0 && !book->release_dead_owners()) ::_exit(15);
    say(kIdle);
  }
}

class Worker {
 public:
  Worker(const std::string& path, std::uint32_t seed) {
    auto pipe = sbx::sys::pipe();
    EXPECT_TRUE(pipe);
    pid_ = ::fork();
    if (pid_ == 0) work(path, seed, pipe->second.get());
    reader_ = std::move(pipe->first);
  }
  Worker(Worker&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), reader_(std::move(other.reader_)) {}
  // Precondition: this one was killed.
  Worker& operator=(Worker&& other) noexcept {
    pid_ = std::exchange(other.pid_, -1);
    reader_ = std::move(other.reader_);
    return *this;
  }
  ~Worker() {
    if (reader_) (void)kill_now();
  }
  [[nodiscard]] int fd() const { return reader_.get(); }
  [[nodiscard]] std::optional<char> heard() const {
    char what = 0;
    return ::read(reader_.get(), &what, 1) == 1 ? std::optional(what) : std::nullopt;
  }
  // Its wait status.
  int kill_now() {
    reader_.reset();
    (void)::kill(pid_, SIGKILL);
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return status;
  }

 private:
  pid_t pid_ = -1;
  sbx::UniqueFd reader_;
};

TEST(LedgerUnderCrashes, TheCapsHoldAtEveryMomentAndNothingStaysReserved) {
  sbx::test::TemporaryDirectory directory;
  const std::string path = directory.path() + "/agentd.db";
  auto book = Book::open(open_database(path),
                         {.owner = "test", .is_alive = is_alive, .now = [] { return 0; }});
  ASSERT_TRUE(book);
  store::Database database = open_database(path);
  const auto count = [&](const char* sql) {
    auto select = database.statement(sql);
    EXPECT_TRUE(select && *select->step());
    return select->integer(0);
  };
  constexpr char kOverCap[] =
      "SELECT count(*) FROM accounts WHERE settled + reserved > 10000 OR settled < 0 OR reserved < "
      "0";
  constexpr char kLines[] =
      "CREATE TEMP TABLE lines AS SELECT reservations.id AS reservation,"
      " json_extract(value, '$[0]') AS account, json_extract(value, '$[1]') AS reserved,"
      " json_extract(value, '$[2]') AS settled FROM reservations, json_each(reservations.lines);"
      "CREATE INDEX temp.lines_of_account ON lines(account)";
  constexpr char kWrongSum[] =
      "SELECT count(*) FROM accounts WHERE"
      " settled <> (SELECT sum(l.settled) FROM lines l WHERE l.account = name) OR"
      " reserved <> (SELECT sum(iif(r.state = 'reserved', l.reserved, 0)) FROM lines l"
      "              JOIN reservations r ON r.id = l.reservation WHERE l.account = name)";

  std::mt19937 random(7);
  std::vector<Worker> workers;
  for (std::uint32_t i = 0; i < kWorkers; ++i) workers.emplace_back(path, i);
  int kills_while_holding = 0;
  int kills = 0;
  std::uint32_t words = 0;
  while (words < 20000U || kills_while_holding < 200) {
    std::vector<pollfd> polled;
    for (const Worker& worker : workers) polled.push_back({worker.fd(), POLLIN, 0});
    ASSERT_GT(::poll(polled.data(), polled.size(), 60'000), 0) << "nobody gets on";
    for (std::size_t i = 0; i < workers.size(); ++i) {
      if (polled[i].revents == 0) continue;
      const auto what = workers[i].heard();
      ++words;
      // It is killed right after it said so, between reserve and settle; or at any moment.
      const bool kill = what == kHolds ? random() % 40 == 0 : random() % 400 == 0;
      if (!kill && what) continue;
      const int status = workers[i].kill_now();
      ASSERT_TRUE(WIFSIGNALED(status)) << "a worker ended with code " << WEXITSTATUS(status);
      ++kills;
      kills_while_holding += what == kHolds ? 1 : 0;
      workers[i] = Worker(path, words / kWorkers);
    }
    ASSERT_EQ(count(kOverCap), 0);
  }
  for (Worker& worker : workers) (void)worker.kill_now();
  const auto released = book->release_dead_owners();
  ASSERT_TRUE(released);
  EXPECT_EQ(count("SELECT count(*) FROM accounts WHERE reserved <> 0"), 0);
  EXPECT_EQ(count("SELECT count(*) FROM reservations WHERE state = 'reserved'"), 0);
  EXPECT_EQ(count(kOverCap), 0);
  ASSERT_TRUE(database.execute(kLines));
  EXPECT_GT(count("SELECT count(*) FROM lines"), 0);
  EXPECT_EQ(count(kWrongSum), 0);
  std::printf("%u words, %d kills, %d while holding, %d released at the end\n", words, kills,
              kills_while_holding, *released);
}

}  // namespace
}  // namespace agentd::ledger
