// What sessions refuse, as clients see it. Stage: daemon. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http/problem.h"
#include "runtime/base/result.h"
#include "runtime/daemon/session_record.h"

namespace sbx::daemon {

class Session;

// 404 `session_not_found`: no session of this peer has that id.
[[nodiscard]] http::Problem session_not_found(std::string_view id);
// 410 `session_expired`, with `expired_at` and `reason` ("idle", "age").
[[nodiscard]] http::Problem session_expired(const Tombstone& tombstone);
// 410 `session_deleted`: while the request waited.
[[nodiscard]] http::Problem session_deleted(std::string_view id);
// 429 `too_many_requests`: of a request that would wait, or has waited; worth another try.
[[nodiscard]] http::Problem session_queue_full(const Session& session);
[[nodiscard]] http::Problem session_wait_over(const Session& session);
// 409 `session_busy`: with what.
[[nodiscard]] http::Problem session_busy(const Session& session);
// 429 `too_many_uploads`.
[[nodiscard]] http::Problem too_many_uploads(std::uint32_t most);
// 429 `too_many_sessions`: of all users (`budget` "sessions.max") or of this one.
[[nodiscard]] http::Problem too_many_sessions(std::string_view budget, std::uint32_t most,
                                              std::chrono::seconds retry_after);
// 413 `quota_exceeded`: `what` "work" or "work_inodes".
[[nodiscard]] http::Problem quota_exceeded(std::string_view what, std::uint64_t quota,
                                           std::uint64_t used, std::uint64_t needed);
// 400 `invalid_path`.
[[nodiscard]] http::Problem invalid_path();
// An error of workspace/edit.h about `path`: 404 `file_not_found`, 409 `not_a_file`,
// `not_a_directory`, `is_a_directory`, 400 `invalid_path`; of the store (kHost, a full disk), as
// store_problem().
[[nodiscard]] http::Problem path_problem(const Error& error, std::string_view path);
// Any other failure of the store: 507 `disk_full`, 503 `host_lacks`, 500 `internal`.
[[nodiscard]] http::Problem store_problem(const Error& error);

// "2024-05-01T12:00:00Z".
[[nodiscard]] std::string session_time_text(SessionTime time);

}  // namespace sbx::daemon
