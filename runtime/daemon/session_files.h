// The calls on a session's files, while no run is on. Stage: daemon, the loop's thread.
//
// Streamed in both directions, in constant memory. A file is replaced whole or not at all, and is
// durable before the answer says so. Of two writers of one file each is whole, and the one that
// ended last stays.
#pragma once

#include "http/handler.h"
#include "http/router.h"
#include "runtime/daemon/sessions.h"

namespace sbx::daemon {

class SessionFiles {
 public:
  // Borrowed; outlives the router.
  explicit SessionFiles(Sessions& sessions) : sessions_(sessions) {}

  // GET …/files?after=PATH&limit=N: a page of all entries, in byte order.
  [[nodiscard]] async::Task<void> list(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> get(http::Request& request, http::Responder& responder);
  [[nodiscard]] async::Task<void> put(http::Request& request, http::Responder& responder);
  // A directory goes with everything in it.
  [[nodiscard]] async::Task<void> remove(http::Request& request, http::Responder& responder);

 private:
  struct Begun;
  // What a call is about.
  struct Subject {
    SessionPtr session;
    std::string path;
  };
  [[nodiscard]] OrProblem<Subject> subject(const http::Request& request) const;
  [[nodiscard]] async::Task<OrProblem<http::Response>> store(Subject subject,
                                                             http::Request& request);
  [[nodiscard]] async::Task<OrProblem<Begun>> begin(Subject subject);
  [[nodiscard]] async::Task<OrProblem<http::Response>> settle(Subject subject, Begun begun,
                                                              std::uint64_t size);
  [[nodiscard]] async::Task<OrProblem<http::Response>> take_away(Subject subject);

  Sessions& sessions_;
};

inline constexpr std::size_t kMaxListed = 1000;           // entries of a page, and the default
inline constexpr std::size_t kMaxListedBytes = 1U << 20;  // of names in a page

void add_session_file_routes(http::Router& router, SessionFiles& files);

}  // namespace sbx::daemon
