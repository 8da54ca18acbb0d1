// RequestService: what could not be stored when it was to be. It is kept in memory, where it can
// still be asked for, and stored as soon as there is room.
#include <algorithm>
#include <utility>

#include "agentd/service/request_service.h"
#include "runtime/base/log.h"
#include "runtime/base/scope_exit.h"

namespace agentd::service {

using sbx::Result;
using sbx::async::Task;

std::size_t RequestService::unsaved() const {
  return static_cast<std::size_t>(std::count_if(
      live_.begin(), live_.end(), [](const auto& each) { return each.second->sealed; }));
}

Result<void> RequestService::check_place() {
  auto there = parts_.check_place();
  if (std::exchange(place_is_there_, there.has_value()) == there.has_value()) return there;
  if (there) {
    sbx::log::info("the state directory is back");
  } else {
    sbx::log::error("the state directory is gone",
                    {{"error", to_string(there.error())}, {"fix", there.error().fix}});
  }
  return there;
}

bool RequestService::stores() const {
  return place_is_there_ && stores_records_ && stores_files_ && unsaved() == 0 &&
         parts_.loop_services.ledger.unwritten() == 0;
}

// One that is too large for the room that there is does not keep the others from it.
Task<void> RequestService::save_what_failed() {
  saving_again_ = true;
  const sbx::ScopeExit over([this] { saving_again_ = false; });
  std::vector<Live> waiting;
  for (const auto& [id, live] : live_) {
    if (live->sealed) waiting.push_back(live);
  }
  bool all = true;
  for (const Live& live : waiting) {
    const auto saved = co_await save(entry_of(*live, live->events));
    all = all && saved;
    if (!saved) continue;
    sbx::log::info("a record that could not be stored is stored now",
                   {{"request", live->record.id}});
    live_.erase(live->record.id);
  }
  stores_records_ = all;
}

Task<bool> RequestService::store_the_rest(sbx::async::Deadline deadline) {
  ledger::Ledger& ledger = parts_.loop_services.ledger;
  for (;;) {
    const bool written = co_await ledger.make_up();
    if (!saving_again_) co_await save_what_failed();
    if (check_place() && written && unsaved() == 0) co_return true;
    const auto pause = std::max(parts_.limits.retry_every / 4, std::chrono::milliseconds(1));
    const auto again = sbx::async::after(pause);
    if (again >= deadline) break;
    (void)co_await parts_.loop.sleep_until(again);
  }
  if (!place_is_there_) sbx::log::error("the state directory is still gone, with what it held");
  for (const auto& [id, live] : live_) {
    if (live->sealed) sbx::log::error("a record is lost", {{"request", id}});
  }
  if (ledger.unwritten() > 0) {
    sbx::log::error("charges are lost", {{"number", std::uint64_t{ledger.unwritten()}}});
  }
  co_return false;
}

// A disk that is full for some seconds takes no files from anybody. Who cancels waits no longer.
Task<Result<void>> RequestService::write_files(LiveRequest& live) {
  auto contents = std::make_shared<std::vector<std::string>>();  // of each job
  for (record::Artifact& artifact : live.record.artifacts) {
    contents->push_back(std::exchange(artifact.content, {}));
  }
  const auto deadline = sbx::async::after(parts_.limits.files_patience);
  ++writing_files_;
  const sbx::ScopeExit over([this] { --writing_files_; });
  for (;;) {
    auto job = [&files = parts_.artifacts, id = live.record.id, contents] {
      return files.write(id, *contents);
    };
    Result<void> written = check_place();
    if (written) written = co_await parts_.store.run(job);
    stores_files_ = written.has_value();
    const auto again = sbx::async::after(parts_.limits.retry_every);
    if (written || again >= deadline) co_return written;
    const auto wake = co_await parts_.loop.sleep_until(again, &live.stop);
    if (wake == sbx::async::Wake::kCancelled) co_return written;
  }
}

// The files that failed are given up: whether the next ones could be written is found with a byte.
Task<void> RequestService::try_files_again() {
  auto job = [&files = parts_.artifacts] {
    const std::string id = "probe";  // no request's
    files.remove(id);
    auto written = files.write(id, {"x"});
    files.remove(id);
    return written;
  };
  const auto written = co_await parts_.store.run(job);
  if (writing_files_ == 0) stores_files_ = written.has_value();
}

}  // namespace agentd::service
