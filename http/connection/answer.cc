#include "http/connection/answer.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace sbx::http {
namespace {

std::string chunk_header(std::size_t size) {
  std::array<char, 16> digits;
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), size, 16);
  return std::string(digits.data(), written.ptr) + "\r\n";
}

// Up to here a piece is copied into one string with its framing; beyond, three are queued.
constexpr std::size_t kCopiedBytes = 4096;
// Up to here an answer is sent whatever else waits: errors must reach those who caused them.
constexpr std::size_t kSmallBytes = 16U << 10;
// What a writer who waits leaves in the queue: enough to keep the socket busy.
constexpr std::size_t kMark = 64U << 10;

Problem too_many_unread(PeerLedger::Verdict verdict) {
  return not_granted(verdict, problem_code::kAnswersTooLarge,
                     "you have left as many answers unread as you may",
                     "the server holds as many unread answers as it may");
}

}  // namespace

async::Task<void> Answer::send(Response response) {
  if (const PeerLedger::Verdict verdict = output_.room(response.body.size());
      verdict != PeerLedger::Verdict::kGranted && response.body.size() > kSmallBytes &&
      !terms_.head_only) {
    response = to_response(too_many_unread(verdict));
  }
  const std::uint64_t size = response.body.size();
  queue_head(response, size);
  (void)queue_piece(std::move(response.body));  // has the length that was announced
  (void)co_await finish();                      // a client that left needs no answer
}

void Answer::begin(Response head, std::optional<std::uint64_t> length) {
  queue_head(head, length);
  if (!head.body.empty() && !queue_piece(std::move(head.body))) output_.break_off();
  output_.flush();
}

void Answer::queue_head(const Response& head, std::optional<std::uint64_t> length) {
  status_ = head.status;
  const bool bodiless = is_bodiless(status_);
  chunked_ = !length && !terms_.http10 && !bodiless;
  left_ = length;
  const bool ends_with_connection = !length && terms_.http10 && !bodiless;
  // A body that was not read to its end would be taken for the next request.
  const bool unread = body_ != nullptr && !body_->ended();
  const bool last = terms_.draining != nullptr && terms_.draining->cancelled();
  if (ends_with_connection || unread || last) terms_.keep_alive = false;
  const Framing framing{.length = bodiless ? std::nullopt : length,
                        .chunked = chunked_,
                        .close = !terms_.keep_alive,
                        .say_keep_alive = terms_.http10};
  output_.queue(response_head(head, framing, std::time(nullptr)));
}

bool Answer::queue_piece(std::string bytes) {
  if (left_) {
    if (bytes.size() > *left_) return false;
    *left_ -= bytes.size();
  }
  if (bytes.empty() || drops_body()) return true;
  body_bytes_ += bytes.size();
  if (!chunked_) {
    output_.queue(std::move(bytes));
  } else if (bytes.size() <= kCopiedBytes) {
    output_.queue(chunk_header(bytes.size()) + bytes + "\r\n");
  } else {
    output_.queue(chunk_header(bytes.size()));
    output_.queue(std::move(bytes));
    output_.queue("\r\n");
  }
  return true;
}

async::Task<bool> Answer::queue_in_turn(std::string bytes) {
  if (output_.room(bytes.size()) != PeerLedger::Verdict::kGranted) {
    const bool alone = co_await output_.drained(0);
    if (!alone) co_return false;
  }
  const bool fits = queue_piece(std::move(bytes));
  if (!fits) output_.break_off();
  co_return fits;
}

async::Task<bool> Answer::write(std::string bytes) {
  const bool queued = co_await queue_in_turn(std::move(bytes));
  if (!queued) co_return false;
  output_.flush();
  const bool delivered = co_await output_.drained(std::min(terms_.queue_bytes, kMark));
  co_return delivered;
}

bool Answer::try_write(std::string_view bytes) {
  if (output_.broken() || output_.queued() + bytes.size() > terms_.queue_bytes) return false;
  if (output_.room(bytes.size()) != PeerLedger::Verdict::kGranted) return false;
  if (!queue_piece(std::string(bytes))) return false;
  output_.flush();
  return !output_.broken();
}

async::Task<bool> Answer::finish(std::string last) {
  if (!last.empty()) {
    const bool queued = co_await queue_in_turn(std::move(last));
    if (!queued) co_return false;
  }
  if (left_.value_or(0) > 0 && !drops_body()) output_.break_off();
  if (chunked_ && !drops_body()) output_.queue("0\r\n\r\n");
  output_.flush();
  complete_ = co_await output_.drained(0);
  co_return complete_;
}

}  // namespace sbx::http
