#include "agentd/sandbox/sbxd_client.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "agentd/envelope/strict_json.h"
#include "agentd/sandbox/run_wire.h"
#include "http/async/task_group.h"
#include "http/unreachable.h"

namespace agentd::sandbox {

using sbx::async::Cancellation;
using sbx::async::Task;
using sbx::async::Wake;
using sbx::http::ClientError;
using sbx::http::ClientRequest;
using sbx::http::ClientResponse;
using sbx::http::ClientResult;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

using Kind = SandboxFailure::Kind;

constexpr std::size_t kMaxAnswerBytes = 96U << 20;  // files_bytes as base64, twice
constexpr std::size_t kPoolBytes = 128U << 10;      // larger bodies are not for the loop
constexpr milliseconds kBesideTheRun{90'000};       // queueing, set-up, collecting
// So that the last line, which is in the tail half, can be as long as an envelope may be.
constexpr std::uint64_t kStdoutBytes = 2 * envelope::kMaxJsonBytes;
constexpr int kOk = 200;

SandboxFailure cancelled() {
  return {.kind = Kind::kCancelled, .detail = "the run was cancelled"};
}

std::size_t size_of(const RunRequest& request) {
  std::size_t size = request.code.size();
  for (const InputFile& file : request.files) size += file.content_base64.size();
  return size;
}

// How long an answer is waited for: a run may be queued there for longer than there is time.
milliseconds time_for(milliseconds whole, sbx::async::Deadline deadline, milliseconds behind) {
  if (deadline == sbx::async::kNoDeadline) return whole;
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
  return std::clamp(left + behind, milliseconds(1), whole);
}

milliseconds wait_before_retry(const ClientResponse& head, milliseconds otherwise) {
  const auto value = head.headers.find("Retry-After");
  int seconds = 0;
  if (!value ||
      std::from_chars(value->data(), value->data() + value->size(), seconds).ec != std::errc()) {
    return otherwise;
  }
  return std::chrono::seconds(std::clamp(seconds, 0, 60));
}

}  // namespace

SbxdClient::SbxdClient(sbx::async::Loop& loop, sbx::async::WorkPool& pool,
                       sbx::http::AsyncClient& client, SbxdOptions options)
    : loop_(loop), pool_(pool), client_(client), options_(std::move(options)) {}

Task<RunOutcome> SbxdClient::run(RunRequest request, const Cancellation* cancellation) {
  const auto deadline = request.deadline;
  if (info_) {
    request.stdout_bytes =
        std::max(info_->stdout_bytes, std::min(kStdoutBytes, info_->stdout_most));
  }
  ClientRequest call;
  call.method = sbx::http::Method::kPost;
  call.url = "http://sbxd/v1/run";
  call.headers.add("Content-Type", "application/json");
  call.timeout = request.wall + kBesideTheRun;
  call.body_bytes = kMaxAnswerBytes;
  call.body = co_await body_of(std::move(request));
  for (int tries = 1;; ++tries) {
    ClientRequest copy = call;
    Answer answer = co_await exchange(std::move(copy), deadline, cancellation);
    if (auto* failure = std::get_if<SandboxFailure>(&answer)) co_return std::move(*failure);
    auto& response = std::get<ClientResponse>(answer);
    if (response.status == kOk) {
      RunOutcome outcome = co_await outcome_of(std::move(response.body));
      co_return outcome;
    }
    SandboxFailure failure = parse_problem(response.status, response.body);
    if (failure.kind != Kind::kBusy || tries >= options_.busy_tries) co_return failure;
    const auto again = steady_clock::now() + wait_before_retry(response, options_.busy_wait);
    if (again >= deadline) co_return failure;
    const Wake wake = co_await loop_.sleep_until(again, cancellation);
    if (wake == Wake::kCancelled) co_return cancelled();
  }
}

struct SbxdClient::Watched {
  Cancellation* given_up;
  std::optional<SandboxFailure> why{};
};

// One that was started again takes connections after a moment.
Task<InfoOutcome> SbxdClient::come_back(sbx::async::Deadline deadline,
                                        const Cancellation* cancellation) {
  const auto last = std::min(deadline, sbx::async::after(options_.restart_time));
  for (;;) {
    InfoOutcome outcome = co_await ask_info(cancellation);
    const auto* failure = std::get_if<SandboxFailure>(&outcome);
    if (failure == nullptr || failure->kind != Kind::kUnreachable) co_return outcome;
    const auto again = sbx::async::after(options_.restart_look);
    if (again >= last) co_return outcome;
    const Wake wake = co_await loop_.sleep_until(again, cancellation);
    if (wake == Wake::kCancelled) co_return cancelled();
  }
}

Task<SbxdClient::Answer> SbxdClient::exchange(ClientRequest call, sbx::async::Deadline deadline,
                                              const Cancellation* cancellation) {
  if (in_doubt_) {  // nothing is sent to one that is still down
    InfoOutcome outcome = co_await come_back(deadline, cancellation);
    auto* failure = std::get_if<SandboxFailure>(&outcome);
    if (failure != nullptr && in_doubt_) {
      failure->not_sent = true;
      co_return std::move(*failure);
    }
  }
  call.unix_socket = options_.socket();
  call.timeout = time_for(call.timeout, deadline, options_.behind_deadline);
  const Cancellation nobodys;
  Cancellation given_up({cancellation == nullptr ? &nobodys : cancellation});
  Watched watched{.given_up = &given_up};
  sbx::async::TaskGroup looks(loop_);
  looks.spawn(look_after(&watched));
  ClientResult result = co_await client_.perform(std::move(call), &given_up);
  if (auto* response = std::get_if<ClientResponse>(&result)) {
    heard();
    co_return std::move(*response);
  }
  if (watched.why) co_return *std::move(watched.why);
  const auto& error = std::get<ClientError>(result);
  SandboxFailure failure = failure_of(error);
  if (failure.kind == Kind::kCancelled) co_return failure;
  doubt();
  if (error.kind == ClientError::Kind::kTimeout) {  // the run's doing, or its own?
    InfoOutcome outcome = co_await ask_info(cancellation);
    const auto* down = std::get_if<SandboxFailure>(&outcome);
    if (down != nullptr && down->kind == Kind::kSilent) co_return *down;
  }
  co_return failure;
}

// One that cannot be reached any more may be about to end, and lets its runs end before. One late
// answer may be a busy host's.
Task<void> SbxdClient::look_after(Watched* watched) {
  bool missed = false;
  for (;;) {
    const auto next = sbx::async::after(options_.look_every);
    const Wake wake = co_await loop_.sleep_until(next, watched->given_up);
    if (wake == Wake::kCancelled) co_return;
    InfoOutcome outcome = co_await ask_info(watched->given_up);
    auto* failure = std::get_if<SandboxFailure>(&outcome);
    const bool missed_before =
        std::exchange(missed, failure != nullptr && failure->kind == Kind::kSilent);
    if (!missed || !missed_before) continue;
    watched->why = std::move(*failure);
    watched->given_up->cancel();
    co_return;
  }
}

void SbxdClient::heard() {
  heard_at_ = steady_clock::now();
  in_doubt_ = false;
}

void SbxdClient::doubt() {
  in_doubt_ = true;
  if (options_.on_doubt) options_.on_doubt();
}

Task<std::string> SbxdClient::body_of(RunRequest request) {
  if (size_of(request) <= kPoolBytes) co_return run_body(request);
  auto job = [request = std::move(request)] { return run_body(request); };
  std::string body = co_await pool_.run(job);
  co_return body;
}

Task<RunOutcome> SbxdClient::outcome_of(std::string body) {
  if (body.size() <= kPoolBytes) co_return parse_run(body);
  auto job = [body = std::move(body)] { return parse_run(body); };
  RunOutcome outcome = co_await pool_.run(job);
  co_return outcome;
}

Task<InfoOutcome> SbxdClient::info(const Cancellation* cancellation) {
  const auto now = steady_clock::now();
  const bool answers = !in_doubt_ && heard_at_ && now - *heard_at_ < options_.heard_age;
  if (answers && info_ && now - info_at_ < options_.info_age) co_return info_;
  InfoOutcome outcome = co_await ask_info(cancellation);
  const auto* failure = std::get_if<SandboxFailure>(&outcome);
  const bool busy = failure != nullptr && failure->kind == Kind::kBusy;
  if (busy && info_ && now - info_at_ < options_.info_age) co_return info_;  // it is there
  co_return outcome;
}

Task<InfoOutcome> SbxdClient::ask_info(const Cancellation* cancellation) {
  ClientRequest call;
  call.url = "http://sbxd/v1/info";
  call.unix_socket = options_.socket();
  call.timeout = options_.answer_time;
  ClientResult result = co_await client_.perform(std::move(call), cancellation);
  if (const auto* error = std::get_if<ClientError>(&result)) {
    if (error->kind == ClientError::Kind::kCancelled) co_return cancelled();
    doubt();
    if (error->kind == ClientError::Kind::kTimeout) co_return silence(heard_at_);
    co_return failure_of(*error);
  }
  heard();
  const auto& response = std::get<ClientResponse>(result);
  if (response.status != kOk) co_return parse_problem(response.status, response.body);
  auto parsed = parse_info(response.body);
  if (!parsed) {
    co_return SandboxFailure{
        .kind = Kind::kLost, .detail = parsed.error().detail, .fix = parsed.error().fix};
  }
  info_ = std::make_shared<const SandboxInfo>(*std::move(parsed));
  info_at_ = steady_clock::now();
  co_return info_;
}

SandboxFailure SbxdClient::failure_of(const ClientError& error) const {
  if (error.kind == ClientError::Kind::kCancelled) return cancelled();
  if (error.kind == ClientError::Kind::kUnreachable) {
    auto why = sbx::http::explain_unreachable("sbxd", options_.socket(), error, "--sbxd-socket");
    return {.kind = Kind::kUnreachable, .detail = std::move(why.text), .fix = std::move(why.fix)};
  }
  return {.kind = Kind::kLost, .detail = "the connection to sbxd: " + error.detail};
}

}  // namespace agentd::sandbox
