// Files as bodies, in constant memory: disk work on a pool, 256 KiB at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "http/async/work_pool.h"
#include "http/handler.h"
#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"

namespace sbx::http {

inline constexpr std::size_t kFilePieceBytes = 256U << 10;

// Sends `length` bytes of `file` from its start: begin(head, length), the bytes, finish(). True
// when all were sent; a file that turns out shorter cuts the answer. For HEAD only the head is
// sent.
[[nodiscard]] async::Task<bool> send_file(Responder& responder, async::WorkPool& pool,
                                          UniqueFd file, std::uint64_t length, Response head);

// Writes the request's streamed body to `file`. The bytes written; or the body's Problem; or the
// Error of write(2) (sys_errno ENOSPC, EDQUOT, EFBIG are the caller's to name). After a failure the
// file holds a part. `file` is borrowed; it is duplicated for the pool. `stop`: as
// BodySource::read().
using ReceivedFile = std::variant<std::uint64_t, Problem, Error>;
[[nodiscard]] async::Task<ReceivedFile> receive_file(Request& request, async::WorkPool& pool,
                                                     int file, const async::Cancellation* stop);

}  // namespace sbx::http
