#include "http/connection/body_reader.h"

namespace sbx::http {
namespace {

Problem too_large(std::uint64_t limit) {
  return {.status = 413,
          .code = problem_code::kBodyTooLarge,
          .detail = "the body is over the limit of " + std::to_string(limit) + " bytes"};
}

Problem cut_off() {
  return {.status = 400,
          .code = problem_code::kMalformedRequest,
          .detail = "the connection ended in the middle of the body"};
}

Problem too_slow() {
  return {.status = 408,
          .code = problem_code::kRequestTimeout,
          .detail = "the body arrives too slowly"};
}

}  // namespace

BodyReader::BodyReader(Input& input, Output& output, RequestParser& parser, std::uint64_t limit,
                       Pace pace, const async::Cancellation& gone)
    : input_(input),
      output_(output),
      parser_(parser),
      limit_(limit),
      pace_(pace),
      gone_(gone),
      awaits_continue_(parser.head().expects_continue && input.pending().empty() &&
                       parser.stage() == RequestParser::Stage::kBody) {
  if (parser.head().content_length.value_or(0) > limit) failure_ = too_large(limit);
}

bool BodyReader::ended() const {
  return parser_.stage() == RequestParser::Stage::kDone && !failure_;
}

BodyPiece BodyReader::fail(Problem problem) {
  failure_ = problem;
  return {BodyPiece::Kind::kFailed, {}, std::move(problem)};
}

std::optional<BodyPiece> BodyReader::parse() {
  input_.consume(parser_.feed(input_.pending()));
  // Told by a chunk's header: what follows need not be waited for.
  if (parser_.announced_chunks() > limit_) return fail(too_large(limit_));
  std::string data = parser_.take_body();
  if (!data.empty()) {
    read_ += data.size();
    if (read_ > limit_) return fail(too_large(limit_));
    return BodyPiece{BodyPiece::Kind::kData, std::move(data), {}};
  }
  if (parser_.stage() == RequestParser::Stage::kFailed) return fail(parser_.problem());
  if (parser_.stage() == RequestParser::Stage::kDone) return BodyPiece{};
  return std::nullopt;
}

// The pace counts only the time that is spent here, waiting for the client.
async::Task<Input::Fill> BodyReader::fill(const async::Cancellation* stop) {
  if (awaits_continue_) {
    awaits_continue_ = false;
    output_.queue("HTTP/1.1 100 Continue\r\n\r\n");
    output_.flush();
  }
  const auto began = std::chrono::steady_clock::now();
  const std::size_t before = input_.pending().size();
  const async::Cancellation either{&gone_, stop != nullptr ? stop : &gone_};
  const Input::Fill fill = co_await input_.fill(pace_.deadline(began), &either);
  pace_.waited(std::chrono::steady_clock::now() - began);
  pace_.moved(input_.pending().size() - before);
  co_return fill;
}

async::Task<BodyPiece> BodyReader::read(const async::Cancellation* stop) {
  if (failure_) co_return fail(*failure_);
  for (;;) {
    if (auto piece = parse()) co_return std::move(*piece);
    const Input::Fill got = co_await fill(stop);
    if (got == Input::Fill::kLate) co_return fail(too_slow());
    if (got != Input::Fill::kData) co_return fail(cut_off());
  }
}

}  // namespace sbx::http
