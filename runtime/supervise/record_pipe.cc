#include "runtime/supervise/record_pipe.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sbx::supervise {

std::vector<plan::Record> RecordPipe::read() {
  std::vector<plan::Record> records;
  while (pipe_) {
    char buffer[64 * sizeof(plan::Record)];
    const ssize_t got = ::read(pipe_.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) break;  // EAGAIN
    if (got == 0) {
      pipe_.reset();
      break;
    }
    partial_.append(buffer, static_cast<std::size_t>(got));
    std::size_t at = 0;
    for (; partial_.size() - at >= sizeof(plan::Record); at += sizeof(plan::Record)) {
      std::memcpy(&records.emplace_back(), partial_.data() + at, sizeof(plan::Record));
    }
    partial_.erase(0, at);
  }
  return records;
}

}  // namespace sbx::supervise
