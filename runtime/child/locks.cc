#include "runtime/child/locks.h"

#include <asm-generic/errno.h>

#include "runtime/child/kernel.h"

namespace sbx::child {
namespace {

// Reading takes locks of the whole host, and some milliseconds: a program must not be able to make
// init do it all the time. So between two looks, this many calls or this long.
constexpr std::uint64_t kCallsBetweenLooks = 256;
constexpr std::uint64_t kTimeBetweenLooks = 20'000'000;
// A line is about 60 bytes. Locks of open file descriptions are shown whoever took them, so this is
// what the host may have of those.
constexpr std::size_t kMostBytes = 1U << 20;
// Calls of all processes but the first, in a run: three quarters of what may be held, so that there
// is always room.
constexpr std::uint64_t flocks_elsewhere(std::uint64_t limit) {
  return limit / 4 * 3;
}

struct Locks {
  std::uint64_t seen;       // held, at the last look
  std::uint64_t since;      // at most so many more, of calls that went on since
  std::uint64_t calls;      // those calls
  std::uint64_t elsewhere;  // flocks of other processes, from the beginning
  std::uint64_t looked_at;
};
Locks locks;

// Counts the lines of /proc/locks with a process: "1: POSIX  ADVISORY  WRITE 12 00:2d:7 0 EOF", and
// "1: -> POSIX …" for who waits. The pid is -1 for a lock of no process, 0 for one of others.
class LineCounter {
 public:
  void take(char byte) {
    if (byte == ' ' || byte == '\n') {
      in_word_ = false;
      if (byte == '\n') field_ = 0;
      return;
    }
    if (in_word_) return;
    in_word_ = true;
    if (byte == '-' && field_ == kTypeField) return;  // the arrow
    if (field_++ == kPidField && byte >= '1' && byte <= '9') ++lines_;
  }
  [[nodiscard]] std::uint64_t lines() const { return lines_; }

 private:
  static constexpr int kTypeField = 1;
  static constexpr int kPidField = 4;

  std::uint64_t lines_ = 0;
  int field_ = 0;
  bool in_word_ = false;
};

// The run's locks, `limit` when there are as many or it cannot be known.
std::uint64_t held_locks(int file, std::uint64_t limit) {
  LineCounter counter;
  for (std::size_t bytes = 0; bytes < kMostBytes;) {
    char text[4096];
    const Word got = sys(__NR_read, file, text, sizeof text);
    if (got < 0) break;
    if (got == 0) return counter.lines();
    bytes += static_cast<std::size_t>(got);
    for (Word at = 0; at < got; ++at) counter.take(text[at]);
    if (counter.lines() >= limit) break;
  }
  return limit;
}

void look(const Context& context) {
  const std::uint64_t limit = context.plan->lock_limit;
  const bool readable = context.locks >= 0 && sys(__NR_lseek, context.locks, 0, 0) == 0;
  locks.seen = readable ? held_locks(context.locks, limit) : limit;
  locks.since = locks.calls = 0;
  locks.looked_at = monotonic_now();
}

std::uint64_t at_most_left(LockCall call) {
  return call == LockCall::kRecord ? 2 : 1;
}

bool is_within(std::uint64_t limit, LockCall call) {
  return locks.seen + locks.since + locks.elsewhere + at_most_left(call) <= limit;
}

// Without a look so far nothing is held.
bool may_look() {
  return locks.calls >= kCallsBetweenLooks ||
         monotonic_now() - locks.looked_at >= kTimeBetweenLooks;
}

}  // namespace

LockCall lock_call(const Context& context, std::uint16_t action, const seccomp_notif& call) {
  const auto command = static_cast<std::uint32_t>(call.data.args[1]);  // as the kernel reads it
  if (action == plan::kRecordLockAction && plan::is_record_lock(command)) return LockCall::kRecord;
  if (action != plan::kFlockAction || !plan::is_flock(command)) return LockCall::kNone;
  // A thread of the first process, or none of it. Should the caller have died and its id be another
  // thread's by now, the answer reaches nobody.
  const Word found = sys(__NR_tgkill, context.payload_pid, call.pid, 0);
  return found == -ESRCH ? LockCall::kFlockElsewhere : LockCall::kFlock;
}

bool has_room(const Context& context, LockCall call) {
  const std::uint64_t limit = context.plan->lock_limit;
  if (call == LockCall::kFlockElsewhere && locks.elsewhere >= flocks_elsewhere(limit)) return false;
  if (is_within(limit, call)) return true;
  if (!may_look()) return false;
  look(context);
  return is_within(limit, call);
}

void count_lock(LockCall call) {
  if (call == LockCall::kFlockElsewhere) {
    ++locks.elsewhere;
    return;
  }
  locks.since += at_most_left(call);
  ++locks.calls;
}

}  // namespace sbx::child
