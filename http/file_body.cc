#include "http/file_body.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "runtime/base/sys.h"

namespace sbx::http {
namespace {

// Shared with the pool's job, which may outlive the coroutine that gave it.
using SharedFd = std::shared_ptr<UniqueFd>;

// Up to `size` bytes at `offset`; empty at the end of the file, and on an error: both mean that the
// answer cannot be completed.
std::string read_piece(int file, std::uint64_t offset, std::size_t size) {
  std::string piece(size, '\0');
  ssize_t got = 0;
  do {
    got = ::pread(file, piece.data(), size, static_cast<off_t>(offset));
  } while (got < 0 && errno == EINTR);
  piece.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return piece;
}

Result<SharedFd> shared_copy(int file) {
  SBX_ASSIGN(UniqueFd copy, sys::duplicate_above(file, 0));
  return std::make_shared<UniqueFd>(std::move(copy));
}

}  // namespace

async::Task<bool> send_file(Responder& responder, async::WorkPool& pool, UniqueFd file,
                            std::uint64_t length, Response head) {
  const SharedFd shared = std::make_shared<UniqueFd>(std::move(file));
  responder.begin(std::move(head), length);
  std::uint64_t sent = 0;
  while (sent < length && !responder.head_only()) {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(kFilePieceBytes, length - sent));
    auto reading = [shared, sent, size] { return read_piece(shared->get(), sent, size); };
    std::string piece = co_await pool.run(reading);
    if (piece.empty()) break;  // finish() finds the answer too short, and cuts it
    sent += piece.size();
    const bool delivered = co_await responder.write(std::move(piece));
    if (!delivered) co_return false;
  }
  const bool whole = co_await responder.finish();
  co_return whole;
}

async::Task<ReceivedFile> receive_file(Request& request, async::WorkPool& pool, int file,
                                       const async::Cancellation* stop) {
  auto copy = shared_copy(file);
  if (!copy) co_return std::move(copy).error();
  const SharedFd shared = *std::move(copy);
  std::uint64_t written = 0;
  std::string gathered;
  for (bool ended = false; !ended;) {
    BodyPiece piece = co_await request.stream->read(stop);
    if (piece.kind == BodyPiece::Kind::kFailed) co_return std::move(piece.problem);
    ended = piece.kind == BodyPiece::Kind::kEnd;
    gathered += piece.data;
    if (gathered.empty() || (!ended && gathered.size() < kFilePieceBytes)) continue;
    const std::uint64_t size = gathered.size();
    auto writing = [shared, bytes = std::exchange(gathered, {})] {
      return sys::write_all(shared->get(), bytes);
    };
    auto put = co_await pool.run(writing);
    if (!put) co_return std::move(put).error();
    written += size;
  }
  co_return written;
}

}  // namespace sbx::http
