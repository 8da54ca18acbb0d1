#include "runtime/daemon/session_problems.h"

#include <fmt/core.h>

#include <cerrno>

#include "runtime/base/log.h"
#include "runtime/base/places.h"
#include "runtime/base/sys.h"
#include "runtime/collect/names.h"
#include "runtime/daemon/retry_after.h"
#include "runtime/daemon/session.h"
#include "runtime/policy/limits.h"
#include "runtime/workspace/edit.h"
#include "runtime/workspace/tree.h"

namespace sbx::daemon {
namespace {

using http::Problem;
using std::chrono::seconds;

// Of what a client wrote, in our answer.
constexpr std::size_t kMaxShown = 256;

std::string shown(std::string_view text) {
  const std::string rendered = collect::render_path(text.substr(0, kMaxShown));
  return rendered + (text.size() > kMaxShown ? "…" : "");
}

const char* use_of(const Session& session) {
  return session.running() ? "a run is on" : "files are being uploaded";
}

Problem no_turn(std::string detail) {
  return {.status = 429,
          .code = "too_many_requests",
          .detail = std::move(detail),
          .fix = "ask again later, or use another session",
          .retry_after = kRetrySoon,
          .more = {{"budget", "session"}}};
}

Problem disk_full() {
  return {.status = 507,
          .code = "disk_full",
          .detail = "The disk that sbxd keeps sessions on is full; nothing was changed.",
          .fix = "tell the operator of sbxd",
          .retry_after = kRetryOfDisk};
}

}  // namespace

std::string session_time_text(SessionTime time) {
  const auto whole = std::chrono::floor<std::chrono::milliseconds>(time).time_since_epoch();
  return log::utc_time(whole.count());
}

Problem session_not_found(std::string_view id) {
  return {.status = 404,
          .code = "session_not_found",
          .detail = fmt::format("There is no session {} of yours.", shown(id))};
}

Problem session_expired(const Tombstone& tombstone) {
  const bool idle = tombstone.why == Expiry::kIdle;
  return {.status = 410,
          .code = "session_expired",
          .detail = fmt::format(
              "Session {} has expired: {}. Its files are gone.", tombstone.id,
              idle ? "it was not used for its idle time" : "it reached its greatest age"),
          .fix = "make a new session",
          .more = {{"expired_at", session_time_text(tombstone.expired)},
                   {"reason", std::string(expiry_name(tombstone.why))}}};
}

Problem session_deleted(std::string_view id) {
  return {.status = 410,
          .code = "session_deleted",
          .detail = fmt::format("Session {} was deleted meanwhile.", id)};
}

Problem session_queue_full(const Session& session) {
  return no_turn(fmt::format("{} requests wait for session {}, the most there may be.",
                             Session::kMaxWaiting, session.record().id));
}

Problem session_wait_over(const Session& session) {
  return no_turn(
      fmt::format("Session {} is in use ({}), and the turn of this request did not come "
                  "within queue_seconds of sbxd's configuration.",
                  session.record().id, use_of(session)));
}

Problem session_busy(const Session& session) {
  return {.status = 409,
          .code = "session_busy",
          .detail = fmt::format("Session {} is in use: {}.", session.record().id, use_of(session)),
          .fix = "wait for it; a run can be queued with \"wait\": true",
          .retry_after = kRetrySoon};
}

Problem too_many_uploads(std::uint32_t most) {
  return {.status = 429,
          .code = "too_many_uploads",
          .detail =
              fmt::format("{} uploads are under way in this session, the most there may be.", most),
          .retry_after = kRetrySoon};
}

Problem too_many_sessions(std::string_view budget, std::uint32_t most, seconds retry_after) {
  return {.status = 429,
          .code = "too_many_sessions",
          .detail = fmt::format("There are {} sessions, and {} of sbxd's configuration allows no "
                                "more.",
                                most, budget),
          .fix = "delete a session that is not needed any more",
          .retry_after = retry_after,
          .more = {{"budget", std::string(budget)}}};
}

Problem quota_exceeded(std::string_view what, std::uint64_t quota, std::uint64_t used,
                       std::uint64_t needed) {
  const auto text = [&](std::uint64_t value) {
    return what == "work" ? policy::size_text(value) : std::to_string(value);
  };
  return {.status = 413,
          .code = "quota_exceeded",
          .detail = fmt::format("The session's quota ({}) is {}, of which {} are used, and this "
                                "needs {} more.",
                                what, text(quota), text(used), text(needed)),
          .field = std::string(what),
          .fix = "delete files of the session, or make one with a larger quota"};
}

Problem invalid_path() {
  return {.status = 400,
          .code = "invalid_path",
          .detail =
              fmt::format("A path is relative, up to {} bytes, of up to {} components of 1 to {} "
                          "bytes that are not '.' or '..', without NUL.",
                          workspace::kMaxPathBytes, workspace::kMaxDepth, workspace::kMaxNameBytes),
          .field = "path"};
}

Problem path_problem(const Error& error, std::string_view path) {
  const auto conflict = [&](const char* code, const char* what) {
    return Problem{.status = 409,
                   .code = code,
                   .detail = fmt::format("{}: {}.", shown(path), what),
                   .field = "path"};
  };
  if (error.code == ErrorCode::kHost) return store_problem(error);  // not about the path
  switch (error.sys_errno) {
    case ENOENT:
      return {.status = 404,
              .code = "file_not_found",
              .detail = fmt::format("There is no {} in the session.", shown(path)),
              .field = "path"};
    case ELOOP:
      return conflict("not_a_file", "a symbolic link, or below one; links are not followed");
    case ENOTDIR:
      return conflict("not_a_directory", "below something that is no directory");
    case EISDIR:
      return conflict("is_a_directory", "a directory");
    case ENAMETOOLONG:
      return invalid_path();
    default:
      return store_problem(error);
  }
}

Problem store_problem(const Error& failure) {
  if (sys::is_full(failure.sys_errno)) return disk_full();
  const Error error = name_disk_failure(failure);
  log::error("session store", {{"error", to_string(error)}});
  if (error.code == ErrorCode::kHost) {
    return {.status = 503,
            .code = "host_lacks",
            .detail = to_string(error),
            .fix = error.fix,
            .retry_after = kRetryOfDisk};
  }
  return {.status = 500,
          .code = http::problem_code::kInternal,
          .detail = "The session's files could not be worked on: " + to_string(error)};
}

}  // namespace sbx::daemon
