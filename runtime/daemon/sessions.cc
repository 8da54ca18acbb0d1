#include "runtime/daemon/sessions.h"

#include <algorithm>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/scope_exit.h"
#include "runtime/daemon/retry_after.h"
#include "runtime/daemon/run_service.h"
#include "runtime/daemon/session_directory.h"
#include "runtime/daemon/session_problems.h"
#include "runtime/spawn/records.h"

namespace sbx::daemon {

using async::Task;
using http::Problem;
using std::chrono::seconds;

namespace {

// How late an expiry can be, and how much of a last use a SIGKILL can cost.
constexpr seconds kTendPeriod{1};
// What a deletion waits for whoever uses its session: a run whose spawner is silent, a reader who
// does not read and a large upload take longer.
constexpr seconds kUsersEndTime{5};

template <typename Container>
std::uint32_t count_of(const Container& owners, const std::optional<uid_t>& owner) {
  return static_cast<std::uint32_t>(std::count(owners.begin(), owners.end(), owner));
}

}  // namespace

Sessions::Sessions(async::Loop& loop, async::WorkPool& pool, async::WorkPool& transfers,
                   SessionStore store, SessionBounds bounds, LeaseId lease, SessionClock now)
    : loop_(loop),
      pool_(pool),
      transfers_(transfers),
      store_(std::make_shared<const SessionStore>(std::move(store))),
      bounds_(bounds),
      lease_(std::move(lease)),
      now_(std::move(now)),
      tasks_(loop) {}

Result<void> Sessions::load() {
  SBX_ASSIGN(auto loaded, store_->load());
  for (const std::string& complaint : loaded.complaints) {
    log::warning("not a session", {{"what", complaint}});
  }
  for (Tombstone& tombstone : loaded.tombstones) {
    tombstones_.emplace(tombstone.id, std::move(tombstone));
  }
  for (StoredSession& stored : loaded.sessions) {
    const std::string id = stored.record.id;
    if (auto adopted = adopt(std::move(stored)); !adopted) {
      // Its files stay where they are, for a start with more ids.
      log::error("a session is left alone", {{"session", id}, {"why", to_string(adopted.error())}});
    }
  }
  log::info("sessions", {{"loaded", std::uint64_t{sessions_.size()}},
                         {"expired", std::uint64_t{tombstones_.size()}},
                         {"leftovers", std::uint64_t{loaded.leftovers.size()}}});
  for (Leftover& leftover : loaded.leftovers) remove_later(std::move(leftover));
  return {};
}

// On disk nothing belongs to the payload's id, so another one is as good when somebody else has it.
Result<void> Sessions::adopt(StoredSession stored) {
  SBX_ASSIGN(SessionId id, lease_(stored.record.payload_id));
  if (id.index != stored.record.payload_id) {
    stored.record.payload_id = id.index;
    SBX_TRY(store_->rewrite(stored.directory.get(), stored.record));
  }
  stored.record.work = std::min(stored.record.work, bounds_.work);
  stored.record.work_inodes = std::min(stored.record.work_inodes, bounds_.work_inodes);
  const std::string name = stored.record.id;
  sessions_.emplace(name, std::make_shared<Session>(loop_, now_, std::move(stored), std::move(id)));
  return {};
}

// A use under way is let finish; past the greatest age nothing new begins.
std::optional<Expiry> Sessions::expiry_of(const Session& session) const {
  if (session.is_aged()) return Expiry::kAge;
  if (now_() >= session.idle_end() && !session.in_use()) return Expiry::kIdle;
  return std::nullopt;
}

OrProblem<SessionPtr> Sessions::find(const http::Peer& peer, const std::string& id) const {
  const auto tombstone = tombstones_.find(id);
  if (tombstone != tombstones_.end() && may_see(peer, tombstone->second.owner)) {
    return session_expired(tombstone->second);
  }
  const auto found = sessions_.find(id);
  if (found == sessions_.end() || !may_see(peer, found->second->record().owner)) {
    return session_not_found(id);
  }
  const Session& session = *found->second;
  const auto why = session.ending() ? session.expiry() : expiry_of(session);
  if (why) {
    const bool idle = *why == Expiry::kIdle;
    return session_expired({.id = id,
                            .owner = session.record().owner,
                            .expired = idle ? session.idle_end() : session.age_end(),
                            .why = *why});
  }
  if (session.ending()) return session_not_found(id);
  return found->second;
}

std::vector<SessionPtr> Sessions::all_of(const http::Peer& peer) const {
  std::vector<SessionPtr> all;
  for (const auto& [id, session] : sessions_) {
    if (may_see(peer, session->record().owner) && !session->ending() && !expiry_of(*session)) {
      all.push_back(session);
    }
  }
  return all;
}

std::optional<Problem> Sessions::refuse_more(const std::optional<uid_t>& owner) const {
  std::vector<std::optional<uid_t>> owners = making_;
  SessionTime next = SessionTime::max();
  for (const auto& [id, session] : sessions_) {
    owners.push_back(session->record().owner);
    if (session->record().owner != owner) continue;
    next = std::min({next, session->idle_end(), session->age_end()});
  }
  const auto wait =
      next == SessionTime::max()
          ? seconds(60)
          : std::chrono::ceil<seconds>(std::max(next - now_(), SessionTime::duration(1)));
  if (count_of(owners, owner) >= bounds_.max_per_peer) {
    return too_many_sessions("sessions.max_per_peer", bounds_.max_per_peer, wait);
  }
  if (owners.size() >= bounds_.max) return too_many_sessions("sessions.max", bounds_.max, wait);
  return std::nullopt;
}

std::optional<Problem> Sessions::problem() const {
  const auto there = store_->check_there();
  if (there) return std::nullopt;
  return Problem{.status = 503,
                 .code = "host_lacks",
                 .detail = "No session can be made: " + to_string(there.error()) + ".",
                 .fix = there.error().fix,
                 .retry_after = kRetryOfDisk};
}

Task<OrProblem<SessionPtr>> Sessions::create(http::Peer peer, SessionWish wish) {
  if (auto refused = refuse_more(peer.uid)) co_return *std::move(refused);
  making_.push_back(peer.uid);
  const ScopeExit made_or_not([this, owner = peer.uid] {
    making_.erase(std::find(making_.begin(), making_.end(), owner));
  });
  SessionRecord record{.id = spawn::new_run_id(),
                       .owner = peer.uid,
                       .work = wish.work,
                       .work_inodes = wish.work_inodes,
                       .created = std::chrono::floor<seconds>(now_()),
                       .idle = wish.idle,
                       .age = wish.age};
  auto job = [store = store_, lease = lease_, record,
              wanted = last_index_ + 1]() mutable -> Result<Made> {
    SBX_ASSIGN(SessionId id, lease(wanted));
    record.payload_id = id.index;
    SBX_ASSIGN(StoredSession stored, store->create(record, record.created));
    return Made{std::move(stored), std::move(id)};
  };
  auto made = co_await pool_.run(job);
  if (!made) co_return store_problem(made.error());
  last_index_ = made->id.index;
  auto session =
      std::make_shared<Session>(loop_, now_, std::move(made->stored), std::move(made->id));
  session->set_size({});
  sessions_.emplace(session->record().id, session);
  ++counters_.created;
  co_return session;
}

Task<OrProblem<bool>> Sessions::remove(SessionPtr session) {
  const std::string id = session->record().id;
  if (session->ending()) co_return session_not_found(id);
  if (auto away = problem()) co_return *std::move(away);  // before its run is cancelled
  const bool cancelled = session->running();
  session->end(std::nullopt);
  co_await session->wait_unused(async::after(kUsersEndTime));
  auto job = [store = store_, id] { return store->set_aside(id); };
  auto aside = co_await pool_.run(job);
  if (!aside) {
    tasks_.spawn(revive_unused(std::move(session)));
    co_return store_problem(aside.error());
  }
  sessions_.erase(id);
  ++counters_.deleted;
  tasks_.spawn(remove_unused(std::move(session), *std::move(aside)));
  co_return cancelled;
}

Task<std::optional<Problem>> Sessions::measure(SessionPtr session) {
  if (session->size_is_exact()) co_return std::nullopt;
  auto job = [directory = session->directory()] { return measure_tree(directory->get()); };
  auto size = co_await pool_.run(job);
  if (!size) co_return store_problem(size.error());
  session->set_size(*size);
  co_return std::nullopt;
}

Task<void> Sessions::tend() {
  std::vector<std::pair<SessionPtr, Expiry>> over;
  for (const auto& [id, session] : sessions_) {
    if (session->ending() || session->in_use()) continue;
    if (const auto why = expiry_of(*session)) over.emplace_back(session, *why);
  }
  if (!look_at_store()) over.clear();
  for (auto& [session, why] : over) co_await expire(session, why);
  std::vector<SessionPtr> used;
  for (const auto& [id, session] : sessions_) {
    if (session->take_used()) used.push_back(session);
  }
  for (const SessionPtr& session : used) {
    auto job = [directory = session->directory(), last = session->last_used()] {
      return touch(directory->get(), last);
    };
    const auto touched = co_await pool_.run(job);
    if (!touched) {
      log::warning("a use is not noted",
                   {{"session", session->record().id}, {"error", to_string(touched.error())}});
    }
  }
  std::vector<std::string> old;
  for (const auto& [id, tombstone] : tombstones_) {
    if (tombstone.expired + kTombstoneTime < now_()) old.push_back(id);
  }
  for (const std::string& id : old) forget(id);
}

Task<void> Sessions::tend_always() {
  for (;;) {
    (void)co_await loop_.sleep_until(async::after(kTendPeriod));
    co_await tend();
  }
}

bool Sessions::look_at_store() {
  const auto there = store_->check_there();
  const bool was_there = std::exchange(is_there_, there.has_value());
  if (!there && was_there) {
    log::error("no session can be made, or end",
               {{"error", to_string(there.error())}, {"fix", there.error().fix}});
  }
  if (there && !was_there) log::info("sessions can be made again");
  return is_there_;
}

// The tombstone first: from then on the session is gone, whatever happens to this process.
Task<void> Sessions::expire(SessionPtr session, Expiry why) {
  if (session->ending() || session->in_use()) co_return;  // since it was looked at
  Tombstone tombstone{.id = session->record().id,
                      .owner = session->record().owner,
                      .expired = why == Expiry::kIdle ? session->idle_end() : session->age_end(),
                      .why = why};
  session->end(why);
  auto job = [store = store_, tombstone]() -> Result<Leftover> {
    SBX_TRY(store->bury(tombstone));
    return store->set_aside(tombstone.id);
  };
  auto aside = co_await pool_.run(job);
  if (!aside) {
    log::error("a session cannot be ended",
               {{"session", tombstone.id}, {"error", to_string(aside.error())}});
    session->revive();  // for the next time; find() says meanwhile that it has expired
    co_return;
  }
  log::info("session expired", {{"session", tombstone.id}, {"reason", expiry_name(why)}});
  ++(why == Expiry::kIdle ? counters_.expired_idle : counters_.expired_age);
  sessions_.erase(tombstone.id);
  remove_later(*std::move(aside));
  remember(std::move(tombstone));
}

void Sessions::remember(Tombstone tombstone) {
  const std::optional<uid_t> owner = tombstone.owner;
  tombstones_.insert_or_assign(tombstone.id, std::move(tombstone));
  prune(owner);
}

// The oldest go: of one owner, so that he cannot push out those of others, and of all.
void Sessions::prune(const std::optional<uid_t>& owner) {
  std::size_t of_owner = 0;
  const Tombstone* oldest_of_owner = nullptr;
  const Tombstone* oldest = nullptr;
  for (const auto& [id, tombstone] : tombstones_) {
    if (oldest == nullptr || tombstone.expired < oldest->expired) oldest = &tombstone;
    if (tombstone.owner != owner) continue;
    ++of_owner;
    if (oldest_of_owner == nullptr || tombstone.expired < oldest_of_owner->expired) {
      oldest_of_owner = &tombstone;
    }
  }
  if (of_owner > kMaxTombstonesPerOwner) {
    forget(oldest_of_owner->id);
  } else if (tombstones_.size() > kMaxTombstones) {
    forget(oldest->id);
  }
}

void Sessions::forget(const std::string& id) {
  tasks_.spawn(run_job("expired/" + id, [store = store_, id] { return store->forget(id); }));
  tombstones_.erase(id);
}

void Sessions::remove_later(const Session& session, std::string name) {
  std::string what = session.record().id + "/" + name;
  tasks_.spawn(run_job(std::move(what), [directory = session.directory(), name = std::move(name)] {
    return remove_beside(directory->get(), name);
  }));
}

// What a run has left works on the directory still, wherever that is.
Task<void> Sessions::remove_unused(SessionPtr session, Leftover leftover) {
  co_await session->wait_unused();
  remove_later(std::move(leftover));
}

// Whoever uses it has the cancellation that revive() replaces.
Task<void> Sessions::revive_unused(SessionPtr session) {
  co_await session->wait_unused();
  session->revive();
}

void Sessions::remove_later(Leftover leftover) {
  std::string what =
      leftover.session.empty() ? leftover.name : leftover.session + "/" + leftover.name;
  tasks_.spawn(run_job(std::move(what), [store = store_, leftover = std::move(leftover)] {
    return store->remove(leftover);
  }));
}

Task<void> Sessions::run_job(std::string what, std::function<Result<void>()> job) {
  const auto done = co_await pool_.run(job);
  if (!done) {
    log::warning("not removed, left for the next start",
                 {{"what", what}, {"error", to_string(done.error())}});
  }
}

}  // namespace sbx::daemon
