#include "runtime/supervise/pumps.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sbx::supervise {
namespace {

constexpr std::size_t kStdinChunk = 64 * 1024;

enum class Written { kSome, kBlocked, kReaderGone };

Written write_part(int fd, std::string_view& bytes) {
  const ssize_t put = ::write(fd, bytes.data(), bytes.size());
  if (put >= 0) {
    bytes.remove_prefix(static_cast<std::size_t>(put));
    return Written::kSome;
  }
  if (errno == EAGAIN) return Written::kBlocked;
  return errno == EINTR ? Written::kSome : Written::kReaderGone;
}

}  // namespace

FillPump::FillPump(UniqueFd pipe, const std::vector<plan::FillEntry>* entries, FillRest rest)
    : pipe_(std::move(pipe)), entries_(entries), rest_(std::move(rest)) {}

void FillPump::prepare_next() {
  plan::FillHeader header;
  std::string_view path;
  if (next_ < entries_->size()) {
    const plan::FillEntry& entry = (*entries_)[next_++];
    header.kind = entry.kind;
    header.tmpfs = entry.tmpfs;
    header.mode = entry.mode;
    header.path_size = static_cast<std::uint32_t>(entry.path.size());
    header.size = entry.content.size();
    path = entry.path;
    content_rest_ = entry.content;
  } else {
    ended_ = true;  // the default header says kEnd
  }
  head_.resize(sizeof header);
  std::memcpy(head_.data(), &header, sizeof header);
  head_ += path;
  head_rest_ = head_;
}

bool FillPump::write_some(std::string_view& bytes) {
  while (!bytes.empty()) {
    switch (write_part(pipe_.get(), bytes)) {
      case Written::kSome:
        break;
      case Written::kBlocked:
        return false;
      case Written::kReaderGone:
        pipe_.reset();
        return false;
    }
  }
  return true;
}

void FillPump::end() {
  if (rest_) return rest_(std::move(pipe_));
  prepare_next();  // past the last entry: the end
}

void FillPump::step() {
  while (pipe_) {
    if (!write_some(head_rest_) || !write_some(content_rest_)) return;
    if (ended_) {
      pipe_.reset();
    } else if (next_ == entries_->size()) {
      end();
    } else {
      prepare_next();
    }
  }
}

StdinPump::StdinPump(UniqueFd pipe, std::optional<std::string> text, int source)
    : pipe_(std::move(pipe)),
      buffer_(std::move(text).value_or("")),
      rest_(buffer_),
      source_(source) {
  finish_if_done();
}

void StdinPump::finish_if_done() {
  if (rest_.empty() && source_ < 0) pipe_.reset();  // end of file for the payload
}

void StdinPump::write_some() {
  while (!rest_.empty()) {
    switch (write_part(pipe_.get(), rest_)) {
      case Written::kSome:
        break;
      case Written::kBlocked:
        return;
      case Written::kReaderGone:
        pipe_.reset();
        rest_ = {};
        source_ = -1;
        return;
    }
  }
  finish_if_done();
}

void StdinPump::read_some() {
  std::array<char, kStdinChunk> chunk;  // not initialised, as in Supervision::drain_output
  const ssize_t got = ::read(source_, chunk.data(), chunk.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) source_ = -1;  // end of file, or a source that cannot be read on
  buffer_.assign(chunk.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  rest_ = buffer_;
  write_some();
}

}  // namespace sbx::supervise
