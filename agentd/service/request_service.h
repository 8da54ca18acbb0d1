// RequestService: takes requests, works on a bounded number of them at once, remembers them.
//
// On the loop; SQLite and files are for the store's queue, for which everybody waits, and the
// redaction of artifacts, which can take long, for the pool. Whatever it gives out is clean.
//
// A request with a place is worked on while it is put on record, which costs nobody anything: the
// store does first what it was given first, so that it is on record before anything is reserved for
// it, and nothing is spent before that.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agentd/history/artifact_files.h"
#include "agentd/history/history.h"
#include "agentd/ledger/book.h"
#include "agentd/loop/services.h"
#include "agentd/redact/redactor.h"
#include "agentd/service/live_request.h"
#include "agentd/service/metrics.h"
#include "agentd/store/queue.h"
#include "http/async/loop.h"
#include "http/async/task.h"
#include "http/async/task_group.h"
#include "http/async/work_pool.h"
#include "http/problem.h"
#include "runtime/base/unique_fd.h"

namespace agentd::service {

class AttemptLog;

// Who asks. For others than the owner a request does not exist, but for root and whom agentd runs
// as.
struct Caller {
  history::Owner uid{};
  bool all = false;
};

// A request as it was submitted: the record without id and times.
struct Submitted {
  record::Record record{};
  loop::Submission submission{};
  std::size_t held_bytes = 0;
};

struct ServiceLimits {
  std::size_t running = 8;
  std::size_t queued = 64;
  std::size_t held_bytes = 256U << 20;  // of attached files, of all requests together
  std::int64_t history = 1000;
  std::int64_t artifact_bytes = 1LL << 30;
  std::chrono::milliseconds tend_every{60'000};
  std::chrono::milliseconds retry_every{1'000};     // what could not be stored
  std::chrono::milliseconds files_patience{5'000};  // how long files of a result wait for room
};

class RequestService {
 public:
  struct Parts {
    sbx::async::Loop& loop;
    sbx::async::WorkPool& pool;  // for redaction of artifacts
    store::Queue& store;
    const loop::Services& loop_services;
    ledger::Book& book;         // in the store's jobs only
    history::History& history;  // the same
    const history::ArtifactFiles& artifacts;
    const redact::Redactor& redactor;
    Metrics& metrics;
    ServiceLimits limits{};
    // Whether the place that the store and the files write to is there. Asked often.
    std::function<sbx::Result<void>()> check_place = [] { return sbx::Result<void>(); };
  };
  // All are borrowed and outlive it.
  explicit RequestService(Parts parts);

  // At start, before serving; blocks. Ends what an earlier process left unfinished.
  [[nodiscard]] sbx::Result<void> recover();

  // The id, or why not: 429 `queue_full`, 503 `shutting_down`, 500 `not_stored`.
  using SubmitOutcome = std::variant<std::string, sbx::http::Problem>;
  [[nodiscard]] sbx::async::Task<SubmitOutcome> submit(Submitted submitted, Caller caller);

  // nullopt: 404. Waits for the store where a request has just ended.
  [[nodiscard]] sbx::async::Task<std::optional<redact::Clean>> record(std::string id,
                                                                      Caller caller);
  // {"requests": […], "next": …}
  [[nodiscard]] sbx::async::Task<sbx::Result<redact::Clean>> list(std::string before, int limit,
                                                                  Caller caller);
  enum class Cancelled { kNow, kEndedBefore, kUnknown };
  [[nodiscard]] sbx::async::Task<Cancelled> cancel(std::string id, Caller caller);

  // For followers of events. Null: not in memory.
  [[nodiscard]] std::shared_ptr<LiveRequest> live(const std::string& id,
                                                  const Caller& caller) const;
  // The events of one that is stored: [{id, event, data}].
  [[nodiscard]] sbx::async::Task<std::optional<redact::Clean>> stored_events(std::string id,
                                                                             Caller caller);

  struct ArtifactFile {
    sbx::UniqueFd file;
    std::string name;
    std::string media_type;
    std::uint64_t size = 0;
  };
  [[nodiscard]] sbx::async::Task<std::optional<ArtifactFile>> artifact(std::string id,
                                                                       std::string name,
                                                                       Caller caller);

  // Now and then releases reservations of dead processes, and each second stores what could not be
  // stored before. Until its task is destroyed.
  [[nodiscard]] sbx::async::Task<void> tend(ledger::Ledger& ledger);
  // At the end: stores what could not be stored before, until the deadline. False: some of it is
  // lost, which the log names.
  [[nodiscard]] sbx::async::Task<bool> store_the_rest(sbx::async::Deadline deadline);

  // From here on nothing is taken (503).
  void close() { closed_ = true; }
  [[nodiscard]] bool closed() const { return closed_; }
  // Cancels whatever is left.
  void stop_all();
  // Until nothing is under way (kReady).
  [[nodiscard]] sbx::async::Task<sbx::async::Wake> idle(sbx::async::Deadline deadline);

  // Then: until those who followed a request to its end have asked for its record, too.
  [[nodiscard]] sbx::async::Task<sbx::async::Wake> told(sbx::async::Deadline deadline);

  // Whether the place of all that is stored is there, now. While it is not nothing is taken, and
  // records are kept in memory. The log says when that changes.
  [[nodiscard]] sbx::Result<void> check_place();
  // False: what was to be stored last could not be, or something still waits for being stored.
  // Requests will be refused, or lose their files.
  [[nodiscard]] bool stores() const;
  // Requests that have ended and whose records wait for room.
  [[nodiscard]] std::size_t unsaved() const;
  [[nodiscard]] static bool is_id(std::string_view text);

  [[nodiscard]] std::size_t running() const { return running_; }
  [[nodiscard]] std::size_t queued() const { return queue_.size(); }

 private:
  using Live = std::shared_ptr<LiveRequest>;

  [[nodiscard]] std::optional<sbx::http::Problem> refusal(const Submitted& submitted);
  [[nodiscard]] Live admit(Submitted submitted, const Caller& caller);
  void turn_away(const Live& live);
  void start_next();
  void start(const Live& live);
  [[nodiscard]] sbx::async::Task<void> work(Live live);
  [[nodiscard]] sbx::async::Task<void> drive(LiveRequest& live, AttemptLog& attempts);
  [[nodiscard]] sbx::async::Task<bool> seal(Live live);
  void name_lost_place(record::Record& record);
  void report(const record::Record& record);
  void take_times(LiveRequest& live) const;
  [[nodiscard]] std::optional<redact::Clean> clean_again(const std::string& stored,
                                                         bool is_list) const;
  void add_state_event(LiveRequest& live);
  void keep_attempts(LiveRequest& live);
  void has_been_told(const std::string& id);
  [[nodiscard]] LiveEvent event_of(const LiveRequest& live, std::string_view kind) const;
  [[nodiscard]] history::Entry entry_of(const LiveRequest& live,
                                        const std::vector<LiveEvent>& events) const;
  [[nodiscard]] sbx::async::Task<sbx::Result<bool>> save(history::Entry entry);
  [[nodiscard]] sbx::async::Task<void> save_what_failed();
  [[nodiscard]] sbx::async::Task<sbx::Result<void>> write_files(LiveRequest& live);
  [[nodiscard]] sbx::async::Task<void> try_files_again();
  [[nodiscard]] sbx::async::Task<void> store_artifacts(LiveRequest& live);
  [[nodiscard]] sbx::async::Task<void> prune();
  [[nodiscard]] sbx::async::Task<void> forget(std::string id);
  [[nodiscard]] sbx::async::Task<std::optional<history::Stored>> stored(std::string id,
                                                                        Caller caller);
  [[nodiscard]] sbx::Result<void> end_unfinished(const std::string& id);
  [[nodiscard]] sbx::Result<void> add_spent(const std::string& id, nlohmann::ordered_json& record);

  Parts parts_;
  std::map<std::string, Live> live_;
  std::deque<Live> queue_;
  std::size_t running_ = 0;
  std::size_t held_bytes_ = 0;
  bool closed_ = false;
  bool place_is_there_ = true;
  bool stores_records_ = true;
  bool stores_files_ = true;
  int writing_files_ = 0;
  bool saving_again_ = false;
  // Ended while closed, and followed: that their records are asked for is waited for; and of those
  // with files (true), which are asked for then, all the time that there is.
  std::map<std::string, bool> untold_;
  sbx::async::Event ended_;
  sbx::async::TaskGroup tasks_;  // last: its tasks use the others
};

}  // namespace agentd::service
