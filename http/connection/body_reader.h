// BodyReader: the body of one request, piece by piece, with its limits. Internal to the server.
#pragma once

#include <cstdint>

#include "http/connection/input.h"
#include "http/connection/output.h"
#include "http/connection/pace.h"
#include "http/connection/request_parser.h"
#include "http/handler.h"

namespace sbx::http {

class BodyReader final : public BodySource {
 public:
  // All borrowed. `limit` in bytes: one more is a 413. `gone` ends the reading.
  BodyReader(Input& input, Output& output, RequestParser& parser, std::uint64_t limit, Pace pace,
             const async::Cancellation& gone);

  [[nodiscard]] async::Task<BodyPiece> read(const async::Cancellation* stop) override;

  [[nodiscard]] std::uint64_t limit() const { return limit_; }
  // True when the whole body was read, or there is none: the next byte is the next request's.
  [[nodiscard]] bool ended() const;
  // True when the client still waits for "100 Continue", and will perhaps send no body at all.
  [[nodiscard]] bool awaits_continue() const { return awaits_continue_; }

 private:
  // What can be made of the bytes at hand; kEnd with empty data: more are needed.
  [[nodiscard]] std::optional<BodyPiece> parse();
  [[nodiscard]] BodyPiece fail(Problem problem);
  [[nodiscard]] async::Task<Input::Fill> fill(const async::Cancellation* stop);

  Input& input_;
  Output& output_;
  RequestParser& parser_;
  std::uint64_t limit_;
  std::uint64_t read_ = 0;
  Pace pace_;
  const async::Cancellation& gone_;
  bool awaits_continue_;
  std::optional<Problem> failure_;
};

}  // namespace sbx::http
