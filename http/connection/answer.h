// Answer: the Responder of one request on a connection. Internal to the server.
#pragma once

#include <cstdint>
#include <optional>

#include "http/connection/body_reader.h"
#include "http/connection/output.h"
#include "http/connection/response_head.h"
#include "http/handler.h"

namespace sbx::http {

class Answer final : public Responder {
 public:
  struct Terms {
    bool head_only = false;
    bool http10 = false;
    bool keep_alive = false;                        // as far as client and server want it
    std::size_t queue_bytes = 0;                    // ServerLimits::queue_bytes
    const async::Cancellation* draining = nullptr;  // raised: this is the last answer
  };
  // `body` null: the request has none that could be left unread. Borrowed.
  Answer(Output& output, const BodyReader* body, Terms terms)
      : output_(output), body_(body), terms_(terms) {}

  [[nodiscard]] async::Task<void> send(Response response) override;
  void begin(Response head, std::optional<std::uint64_t> length) override;
  [[nodiscard]] async::Task<bool> write(std::string bytes) override;
  [[nodiscard]] bool try_write(std::string_view bytes) override;
  [[nodiscard]] async::Task<bool> finish(std::string last = std::string()) override;
  [[nodiscard]] std::chrono::steady_clock::duration behind() const override {
    return output_.behind();
  }
  void leave() override { output_.break_off(); }
  [[nodiscard]] bool head_only() const override { return terms_.head_only; }
  [[nodiscard]] bool begun() const override { return status_ != 0; }

  // Everything that was promised is in the socket.
  [[nodiscard]] bool complete() const { return complete_; }
  // Another request may follow.
  [[nodiscard]] bool keeps_alive() const { return complete_ && terms_.keep_alive; }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::uint64_t body_bytes() const { return body_bytes_; }

 private:
  void queue_head(const Response& head, std::optional<std::uint64_t> length);
  // One piece with its framing. False: more than the length that was announced.
  [[nodiscard]] bool queue_piece(std::string bytes);
  // The same once there is room. False: broken.
  [[nodiscard]] async::Task<bool> queue_in_turn(std::string bytes);
  [[nodiscard]] bool drops_body() const { return terms_.head_only || is_bodiless(status_); }

  Output& output_;
  const BodyReader* body_;
  Terms terms_;
  int status_ = 0;
  bool chunked_ = false;
  std::optional<std::uint64_t> left_;  // of the length that was announced
  std::uint64_t body_bytes_ = 0;
  bool complete_ = false;
};

}  // namespace sbx::http
