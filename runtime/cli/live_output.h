// LiveOutput: one stream of the program on its way to the caller. Stage: edge (sbx-run), main
// thread.
//
// `append` never blocks: a reader that does not read must not keep the deadline from being
// enforced. What waits is bounded by the stream's own head cap. To a terminal the bytes go escaped
// (collect/escape.h), else exactly as they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sbx::cli {

class LiveOutput {
 public:
  explicit LiveOutput(int fd);  // borrowed
  LiveOutput(int fd, bool escape) : fd_(fd), escape_(escape) {}

  void append(std::string_view bytes);
  // Bytes appended so far, as the program wrote them.
  [[nodiscard]] std::uint64_t appended() const { return appended_; }
  [[nodiscard]] bool at_line_start() const { return last_ == '\n'; }

  // Poll fd() for POLLOUT while true.
  [[nodiscard]] bool pending() const { return !failed_ && !waiting_.empty(); }
  [[nodiscard]] int fd() const { return fd_; }
  // Takes poll's answer for fd(): writes one piece that fits without blocking, or learns that the
  // reader has left, also while there is nothing to write.
  void serve(short revents);
  // Writes one piece. Call when fd() is ready for writing.
  void write_some();
  // Writes everything, blocking. False when the reader is gone or the write failed.
  bool flush();

  // After a failed write, or once the reader has left: the errno (EPIPE when the reader is gone),
  // else 0. Nothing is written then.
  [[nodiscard]] int error() const { return failed_ ? errno_ : 0; }

 private:
  int fd_;
  bool escape_;
  bool failed_ = false;
  int errno_ = 0;
  char last_ = '\n';
  std::uint64_t appended_ = 0;
  std::string waiting_;     // to be written, escaped already
  std::string incomplete_;  // the start of a character whose rest has not come
};

// The length of an unfinished UTF-8 character at the end of `bytes`, 0 to 3.
[[nodiscard]] std::size_t unfinished_tail(std::string_view bytes);

}  // namespace sbx::cli
