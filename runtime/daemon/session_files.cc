#include "runtime/daemon/session_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>
#include <utility>

#include "http/file_body.h"
#include "runtime/base/scope_exit.h"
#include "runtime/collect/names.h"
#include "runtime/daemon/json_fields.h"
#include "runtime/daemon/json_parts.h"
#include "runtime/daemon/routes.h"
#include "runtime/daemon/session_directory.h"
#include "runtime/daemon/session_problems.h"
#include "runtime/workspace/edit.h"
#include "runtime/workspace/listing.h"

namespace sbx::daemon {
namespace {

using async::Task;
using http::BodyPiece;
using http::Problem;
using http::Request;
using http::Responder;
using http::Response;

constexpr std::uint64_t kPage = 4096;
// Segments before those of the path: "v1", "sessions", the id, "files".
constexpr std::size_t kSegmentsBefore = 4;

// What a file of that length costs: uploads have no holes.
std::uint64_t cost_of(std::uint64_t length) {
  return length / kPage * kPage + (length % kPage == 0 ? 0 : kPage);
}

// The path as the client wrote it: a "/" that was encoded is part of no name.
std::optional<std::string> path_of(const http::Target& target) {
  std::string path;
  for (std::size_t i = kSegmentsBefore; i < target.segments.size(); ++i) {
    const std::string& segment = target.segments[i];
    if (segment.find('/') != std::string::npos) return std::nullopt;
    if (i > kSegmentsBefore) path += '/';
    path += segment;
  }
  if (!workspace::is_valid_path(path)) return std::nullopt;
  return path;
}

// A program sets times as it likes; beyond what the clock can hold (1678 to 2262) they are shown as
// its end.
SessionTime time_of(timespec time) {
  constexpr time_t kFurthest = time_t{1} << 33;
  time.tv_sec = std::clamp(time.tv_sec, -kFurthest, kFurthest);
  return SessionTime(std::chrono::seconds(time.tv_sec)) +
         std::chrono::duration_cast<SessionTime::duration>(std::chrono::nanoseconds(time.tv_nsec));
}

std::string entry_json(const workspace::ListedEntry& entry) {
  std::string json =
      fmt::format(R"({{"path":{},"type":"{}","mode":"{:04o}","modified_at":"{}")",
                  json_string(collect::render_path(entry.path)), kind_name(entry.kind), entry.mode,
                  session_time_text(time_of(entry.modified)));
  if (entry.kind == workspace::EntryKind::kFile) json += fmt::format(R"(,"size":{})", entry.size);
  if (entry.kind == workspace::EntryKind::kSymlink) {
    json += fmt::format(R"(,"target":{})", json_string(collect::render_path(entry.target)));
  }
  return json + "}";
}

std::string listing_json(const workspace::Listing& listing) {
  std::string json;
  for (const workspace::ListedEntry& entry : listing.entries) {
    json += (json.empty() ? "" : ",") + entry_json(entry);
  }
  const std::string next =
      listing.more ? json_string(http::percent_encode(listing.entries.back().path, "/")) : "null";
  return fmt::format(R"({{"files":[{}],"next":{}}})", json, next);
}

struct PageWish {
  std::string after;
  std::size_t limit = kMaxListed;
};

OrProblem<PageWish> read_page(const http::Query& query) {
  PageWish wish;
  for (const auto& [name, value] : query.all()) {  // the route has no others
    if (name == "after") {
      wish.after = value;
      continue;
    }
    const char* const end = value.data() + value.size();
    const auto [at, error] = std::from_chars(value.data(), end, wish.limit);
    if (error != std::errc() || at != end || wish.limit < 1 || wish.limit > kMaxListed) {
      return invalid_value("limit", fmt::format("limit is 1 to {}.", kMaxListed));
    }
  }
  return wish;
}

// The body of an upload, cut off as soon as the quota does not hold it.
class QuotaBody final : public http::BodySource {
 public:
  QuotaBody(http::BodySource& source, const Session& session, UploadHold& hold,
            std::uint64_t replaces)
      : source_(source), session_(session), hold_(hold), replaces_(replaces) {}

  Task<BodyPiece> read(const async::Cancellation* stop) override {
    BodyPiece piece = co_await source_.read(stop);
    if (session_.ending()) {
      co_return BodyPiece{.kind = BodyPiece::Kind::kFailed,
                          .data = {},
                          .problem = session_deleted(session_.record().id)};
    }
    if (piece.kind != BodyPiece::Kind::kData) co_return std::move(piece);
    length_ += piece.data.size();
    if (auto problem = reserve(length_)) {
      co_return BodyPiece{
          .kind = BodyPiece::Kind::kFailed, .data = {}, .problem = *std::move(problem)};
    }
    co_return std::move(piece);
  }

  // Room for a file of that length in place of what it replaces.
  std::optional<Problem> reserve(std::uint64_t length) {
    const std::uint64_t cost = cost_of(length);
    const std::uint64_t more = cost > replaces_ ? cost - replaces_ : 0;
    if (hold_.reserve(more)) return std::nullopt;
    return quota_exceeded("work", session_.record().work,
                          session_.size()->bytes + session_.reserved() - hold_.reserved(), more);
  }

 private:
  http::BodySource& source_;
  const Session& session_;
  UploadHold& hold_;
  std::uint64_t replaces_;
  std::uint64_t length_ = 0;
};

bool is_quota(const Error& error) {
  return error.sys_errno == EDQUOT &&
         (error.operation == workspace::kByteQuota || error.operation == workspace::kInodeQuota);
}

// Of `used`, what the upload was held against.
Problem no_room(const SessionRecord& record, const plan::WorkspaceSize& used, const Error& error) {
  std::uint64_t needed = 0;
  const std::string& text = error.detail;
  (void)std::from_chars(text.data(), text.data() + text.size(), needed);  // put_file() wrote it
  if (error.operation == workspace::kInodeQuota) {
    return quota_exceeded("work_inodes", record.work_inodes, used.inodes, needed);
  }
  return quota_exceeded("work", record.work, used.bytes, needed);
}

Task<void> answer(Responder& responder, OrProblem<Response> answer) {
  if (auto* problem = std::get_if<Problem>(&answer)) {
    co_await responder.send(to_response(*problem));
  } else {
    co_await responder.send(std::get<Response>(std::move(answer)));
  }
}

}  // namespace

OrProblem<SessionFiles::Subject> SessionFiles::subject(const Request& request) const {
  auto found = sessions_.find(request.peer, request.parameters.at("id"));
  if (auto* problem = std::get_if<Problem>(&found)) return std::move(*problem);
  auto path = path_of(request.target);
  if (!path) return invalid_path();
  return Subject{std::get<SessionPtr>(std::move(found)), *std::move(path)};
}

Task<void> SessionFiles::list(Request& request, Responder& responder) {
  auto found = sessions_.find(request.peer, request.parameters.at("id"));
  if (const auto* problem = std::get_if<Problem>(&found)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  const auto wish = read_page(request.target.query);
  if (const auto* problem = std::get_if<Problem>(&wish)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  const SessionPtr session = std::get<SessionPtr>(std::move(found));
  std::optional<Hold> hold;
  {
    auto held = co_await hold_for_reading(session);
    if (const auto* problem = std::get_if<Problem>(&held)) {
      co_await responder.send(to_response(*problem));
      co_return;
    }
    hold.emplace(std::get<Hold>(std::move(held)));
  }
  auto job = [directory = session->directory(),
              page = std::get<PageWish>(wish)]() -> Result<std::string> {
    SBX_ASSIGN(const UniqueFd tree, open_tree(directory->get()));
    SBX_ASSIGN(const workspace::Listing listing,
               workspace::list_entries(tree.get(), page.after, page.limit, kMaxListedBytes));
    return listing_json(listing);
  };
  auto json = co_await sessions_.pool().run(job);
  hold.reset();  // the client may read as slowly as it likes
  if (!json) {
    co_await responder.send(to_response(store_problem(json.error())));
    co_return;
  }
  co_await responder.send(http::json_response(*std::move(json)));
}

Task<void> SessionFiles::get(Request& request, Responder& responder) {
  const auto about = subject(request);
  if (const auto* problem = std::get_if<Problem>(&about)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  const Subject& wanted = std::get<Subject>(about);
  std::optional<Hold> hold;
  {
    auto held = co_await hold_for_reading(wanted.session);
    if (const auto* problem = std::get_if<Problem>(&held)) {
      co_await responder.send(to_response(*problem));
      co_return;
    }
    hold.emplace(std::get<Hold>(std::move(held)));
  }
  auto job = [directory = wanted.session->directory(),
              path = wanted.path]() -> Result<workspace::OpenedFile> {
    SBX_ASSIGN(const UniqueFd tree, open_tree(directory->get()));
    return workspace::open_file(tree.get(), path);
  };
  auto opened = co_await sessions_.pool().run(job);
  hold.reset();  // what is open stays as it is, whatever runs and calls do meanwhile
  if (!opened) {
    co_await responder.send(to_response(path_problem(opened.error(), wanted.path)));
    co_return;
  }
  Response head;
  head.content_type = collect::media_type(wanted.path);
  head.headers.set("X-Content-Type-Options", "nosniff");
  const auto length = static_cast<std::uint64_t>(opened->info.st_size);
  (void)co_await http::send_file(responder, sessions_.pool(), std::move(opened->fd), length,
                                 std::move(head));
}

Task<void> SessionFiles::put(Request& request, Responder& responder) {
  auto about = subject(request);
  if (const auto* problem = std::get_if<Problem>(&about)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  auto stored = co_await store(std::get<Subject>(std::move(about)), request);
  co_await answer(responder, std::move(stored));
}

// What an upload starts from.
struct SessionFiles::Begun {
  std::shared_ptr<UniqueFd> file;
  std::string staged;
  std::uint64_t replaces = 0;  // bytes that the file of that name costs now
};

Task<OrProblem<SessionFiles::Begun>> SessionFiles::begin(Subject subject) {
  auto held = co_await hold_for_reading(subject.session);
  if (auto* problem = std::get_if<Problem>(&held)) co_return std::move(*problem);
  auto failed = co_await sessions_.measure(subject.session);
  if (failed) co_return *std::move(failed);
  auto job = [directory = subject.session->directory(), path = subject.path]() -> Result<Begun> {
    SBX_ASSIGN(const UniqueFd tree, open_tree(directory->get()));
    SBX_ASSIGN(const std::uint64_t replaces, workspace::replaceable_bytes(tree.get(), path));
    SBX_ASSIGN(Upload upload, begin_upload(directory->get()));
    return Begun{std::make_shared<UniqueFd>(std::move(upload.file)), std::move(upload.name),
                 replaces};
  };
  auto begun = co_await sessions_.pool().run(job);
  if (!begun) co_return path_problem(begun.error(), subject.path);
  co_return *std::move(begun);
}

Task<OrProblem<Response>> SessionFiles::store(Subject subject, Request& request) {
  const SessionPtr session = subject.session;
  auto held = UploadHold::take(session);
  if (auto* problem = std::get_if<Problem>(&held)) co_return std::move(*problem);
  UploadHold hold = std::get<UploadHold>(std::move(held));
  auto started = co_await begin(subject);
  if (auto* problem = std::get_if<Problem>(&started)) co_return std::move(*problem);
  const Begun begun = std::get<Begun>(std::move(started));
  // Once it was put in place it is there no more.
  const ScopeExit drop([&] { sessions_.remove_later(*session, begun.staged); });
  QuotaBody body(*request.stream, *session, hold, begun.replaces);
  if (request.content_length) {
    if (auto problem = body.reserve(*request.content_length)) co_return *std::move(problem);
  }
  request.stream = &body;
  // Ends with the session, whose deletion waits for it.
  auto received = co_await http::receive_file(request, sessions_.pool(), begun.file->get(),
                                              &session->deleted());
  if (auto* problem = std::get_if<Problem>(&received)) co_return std::move(*problem);
  if (const auto* error = std::get_if<Error>(&received)) co_return store_problem(*error);
  auto settled = co_await settle(std::move(subject), begun, std::get<std::uint64_t>(received));
  co_return std::move(settled);
}

Task<OrProblem<Response>> SessionFiles::settle(Subject subject, Begun begun, std::uint64_t size) {
  const SessionPtr session = subject.session;
  auto held = co_await hold_for_change(session);
  if (auto* problem = std::get_if<Problem>(&held)) co_return std::move(*problem);
  auto failed = co_await sessions_.measure(session);
  if (failed) co_return *std::move(failed);
  const SessionRecord& record = session->record();
  const plan::WorkspaceSize used = *session->size();
  auto finish = [directory = session->directory(), begun, path = subject.path,
                 room_bytes = record.work - std::min(record.work, used.bytes),
                 room_inodes = record.work_inodes - std::min(record.work_inodes, used.inodes)] {
    return finish_upload(directory->get(), begun.file->get(), begun.staged, path, room_bytes,
                         room_inodes);
  };
  auto change = co_await sessions_.pool().run(finish);
  if (!change) {
    if (is_quota(change.error())) co_return no_room(record, used, change.error());
    co_return path_problem(change.error(), subject.path);
  }
  session->add_to_size(*change);
  std::string json = fmt::format(R"({{"path":{},"size":{}}})",
                                 json_string(collect::render_path(subject.path)), size);
  co_return http::json_response(std::move(json), change->replaced ? 200 : 201);
}

Task<void> SessionFiles::remove(Request& request, Responder& responder) {
  auto about = subject(request);
  if (const auto* problem = std::get_if<Problem>(&about)) {
    co_await responder.send(to_response(*problem));
    co_return;
  }
  auto removed = co_await take_away(std::get<Subject>(std::move(about)));
  co_await answer(responder, std::move(removed));
}

Task<OrProblem<Response>> SessionFiles::take_away(Subject subject) {
  const SessionPtr session = subject.session;
  auto held = co_await hold_for_change(session);
  if (auto* problem = std::get_if<Problem>(&held)) co_return std::move(*problem);
  auto job = [directory = session->directory(), path = subject.path] {
    return delete_entry(directory->get(), path);
  };
  auto deleted = co_await sessions_.pool().run(job);
  if (!deleted) co_return path_problem(deleted.error(), subject.path);
  session->add_to_size(deleted->change);
  sessions_.remove_later(*session, std::move(deleted->old_name));
  co_return http::no_content();
}

void add_session_file_routes(http::Router& router, SessionFiles& files) {
  const auto add = [&](http::Method method, const char* path,
                       Task<void> (SessionFiles::*handler)(Request&, Responder&)) {
    http::Route route;
    route.method = method;
    route.path = path;
    route.query = kNoParameters;
    if (std::string_view(path).ends_with("/files")) route.query = {"after", "limit"};
    route.handler = [&files, handler](Request& request, Responder& responder) {
      return (files.*handler)(request, responder);
    };
    if (method == http::Method::kPut) {
      route.body = http::BodyMode::kStream;
      route.body_limit = std::numeric_limits<std::uint64_t>::max();  // the quota is the limit
    }
    router.add(std::move(route));
  };
  add(http::Method::kGet, "/v1/sessions/{id}/files", &SessionFiles::list);
  add(http::Method::kGet, "/v1/sessions/{id}/files/{path...}", &SessionFiles::get);
  add(http::Method::kPut, "/v1/sessions/{id}/files/{path...}", &SessionFiles::put);
  add(http::Method::kDelete, "/v1/sessions/{id}/files/{path...}", &SessionFiles::remove);
}

}  // namespace sbx::daemon
