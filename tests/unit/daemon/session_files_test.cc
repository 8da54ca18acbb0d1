// The calls on a session's files, without a server: what each answers, and what it leaves on disk.
#include "runtime/daemon/session_files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "http/file_body.h"
#include "http/uri.h"
#include "runtime/base/sys.h"
#include "tests/unit/daemon/session_ground.h"

namespace sbx::daemon {
namespace {

using async::Task;
using http::BodyPiece;
using http::Response;
using Json = nlohmann::json;
using ::testing::HasSubstr;

// Gives pieces, and runs something before one of them.
class Pieces final : public http::BodySource {
 public:
  std::vector<std::string> pieces;
  std::optional<http::Problem> failure;  // at the end, instead of the end
  std::function<Task<void>()> before_last;
  async::Loop* stalls = nullptr;  // at the end, instead of the end, until it is told to stop
  bool stalled = false;

  Task<BodyPiece> read(const async::Cancellation* stop) override {
    if (stalls != nullptr && at_ == pieces.size()) {
      stalled = true;
      (void)co_await stalls->sleep_until(async::test::soon(), stop);
      failure = http::Problem{.status = 400, .code = "cut_off"};
    }
    if (at_ + 1 == pieces.size() && before_last) {
      const auto action = std::exchange(before_last, nullptr);
      co_await action();
    }
    BodyPiece piece;
    if (at_ < pieces.size()) {
      piece.kind = BodyPiece::Kind::kData;
      piece.data = pieces[at_++];
    } else if (failure) {
      piece.kind = BodyPiece::Kind::kFailed;
      piece.problem = *failure;
    }
    co_return piece;
  }

 private:
  std::size_t at_ = 0;
};

class Answer final : public http::Responder {
 public:
  Task<void> send(Response response) override {
    status = response.status;
    body = std::move(response.body);
    co_return;
  }
  void begin(Response head, std::optional<std::uint64_t> length) override {
    status = head.status;
    type = head.content_type;
    announced = length;
  }
  Task<bool> write(std::string bytes) override {
    largest = std::max(largest, bytes.size());
    body += bytes;
    co_return true;
  }
  bool try_write(std::string_view) override { return false; }
  Task<bool> finish(std::string /*last*/) override { co_return true; }
  std::chrono::steady_clock::duration behind() const override { return {}; }
  void leave() override {}
  bool head_only() const override { return false; }
  bool begun() const override { return status != 0; }

  [[nodiscard]] Json json() const { return Json::parse(body); }
  [[nodiscard]] std::string code() const { return status < 400 ? "" : json().at("code"); }

  int status = 0;
  std::string type, body;
  std::optional<std::uint64_t> announced;
  std::size_t largest = 0;
};

class Files : public ::testing::Test {
 public:  // for coroutines of the tests
  using Handler = Task<void> (SessionFiles::*)(http::Request&, http::Responder&);

  Answer call(Handler handler, const std::string& path, Pieces* body = nullptr,
              std::optional<std::uint64_t> length = std::nullopt, uid_t uid = 1000) {
    http::Request request;
    const auto target = http::parse_target("/v1/sessions/" + id() + "/files" + path);
    EXPECT_TRUE(target) << path;
    if (target) request.target = *target;
    request.parameters["id"] = id();
    request.peer = test::SessionGround::peer(uid);
    request.stream = body;
    request.content_length = length;
    Answer answer;
    ground_.run(((*files_).*handler)(request, answer));
    return answer;
  }
  Answer get(const std::string& path) { return call(&SessionFiles::get, path); }
  Answer remove(const std::string& path) { return call(&SessionFiles::remove, path); }
  Answer list(const std::string& query = "") { return call(&SessionFiles::list, query); }
  Answer put(const std::string& path, const std::string& content, bool with_length = true) {
    Pieces body;
    for (std::size_t at = 0; at < content.size(); at += 60'000) {
      body.pieces.push_back(content.substr(at, 60'000));
    }
    return call(&SessionFiles::put, path, &body,
                with_length ? std::optional<std::uint64_t>(content.size()) : std::nullopt);
  }

  [[nodiscard]] const std::string& id() const { return session_->record().id; }
  [[nodiscard]] std::string at(const std::string& name) const {
    return ground_.path() + "/" + id() + "/tree/" + name;
  }
  // Entries beside the tree: leftovers.
  [[nodiscard]] int leftovers() const {
    int count = -2;  // tree, session.json
    const std::filesystem::directory_iterator all(ground_.path() + "/" + id());
    for ([[maybe_unused]] const auto& entry : all) ++count;
    return count;
  }
  void expect_exact_size() {
    const auto kept = session_->size();
    session_->add_to_size({.exact = false});
    EXPECT_FALSE(ground_.result(ground_.sessions().measure(session_)));
    EXPECT_EQ(kept->bytes, session_->size()->bytes);
    EXPECT_EQ(kept->inodes, session_->size()->inodes);
  }
  void TearDown() override { EXPECT_EQ(leftovers(), 0); }

  test::SessionGround ground_;
  SessionPtr session_ = ground_.create();  // a quota of 1M and 50 inodes
  std::optional<SessionFiles> files_{ground_.sessions()};
};

TEST_F(Files, GoInAndComeOutByteForByte) {
  std::string content(300'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 7);
  const Answer made = put("/a/b/data.csv", content);
  EXPECT_EQ(made.status, 201);
  EXPECT_EQ(made.json(), (Json{{"path", "a/b/data.csv"}, {"size", 300'000}}));
  const Answer got = get("/a/b/data.csv");
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.announced, content.size());
  EXPECT_EQ(got.type, "text/csv");
  EXPECT_EQ(got.body, content);
  EXPECT_EQ(put("/a/b/data.csv", "new", false).status, 200);
  EXPECT_EQ(get("/a/b/data.csv").body, "new");
  EXPECT_EQ(put("/empty", "").status, 201);
  EXPECT_EQ(get("/empty").announced, 0U);
  expect_exact_size();
}

TEST_F(Files, HaveNamesOfAnyBytes) {
  EXPECT_EQ(put("/new%0aline", "1").status, 201);
  EXPECT_EQ(put("/%ff%fe", "2").json().at("path"), "\\xff\\xfe");
  EXPECT_EQ(put("/-rf", "3").status, 201);
  EXPECT_EQ(get("/%ff%fe").body, "2");
  EXPECT_TRUE(std::filesystem::exists(at("new\nline")));
  const Json listed = list().json();
  ASSERT_EQ(listed.at("files").size(), 3U);
  EXPECT_EQ(listed.at("files")[2].at("path"), "\\xff\\xfe");
}

TEST_F(Files, WithPathsThatLeaveTheTreeAreRefused) {
  for (const char* path : {"/..", "/a/../b", "/a//b", "/a/", "/", "/.", "/%2e%2e/x", "/a%2fb",
                           "/%2fetc%2fpasswd", "/..%2f..%2fsession.json"}) {
    EXPECT_EQ(get(path).code(), "invalid_path") << path;
    EXPECT_EQ(put(path, "x").code(), "invalid_path") << path;
    EXPECT_EQ(remove(path).code(), "invalid_path") << path;
  }
  EXPECT_EQ(put("/" + std::string(256, 'n'), "x").code(), "invalid_path");
  EXPECT_EQ(get("/session.json").code(), "file_not_found") << "the record lies beside the tree";
}

TEST_F(Files, AreNotReachedThroughLinks) {
  ASSERT_EQ(::symlink("/etc", at("etc").c_str()), 0);
  ASSERT_EQ(::symlink("/etc/passwd", at("passwd").c_str()), 0);
  EXPECT_EQ(get("/etc/passwd").code(), "not_a_file");
  EXPECT_EQ(get("/passwd").code(), "not_a_file");
  EXPECT_EQ(put("/etc/sbx-test", "x").code(), "not_a_file");
  EXPECT_EQ(remove("/etc/passwd").code(), "not_a_file");
  EXPECT_FALSE(std::filesystem::exists("/etc/sbx-test"));
  EXPECT_EQ(put("/passwd", "mine").status, 200) << "the link itself is replaced";
  EXPECT_EQ(get("/passwd").body, "mine");
  EXPECT_EQ(remove("/etc").status, 204) << "and removed";
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
}

TEST_F(Files, ThatConflictSayHow) {
  EXPECT_EQ(put("/d/f", "x").status, 201);
  EXPECT_EQ(put("/d", "x").code(), "is_a_directory");
  EXPECT_EQ(put("/d/f/g", "x").code(), "not_a_directory");
  EXPECT_EQ(get("/d").code(), "is_a_directory");
  EXPECT_EQ(get("/d/nothing").status, 404);
  EXPECT_EQ(get("/nothing/f").code(), "file_not_found");
  EXPECT_EQ(remove("/nothing").code(), "file_not_found");
}

TEST_F(Files, AreDeletedOneByOneAndAsWholeDirectories) {
  for (const char* path : {"/d/a", "/d/deep/b", "/c"}) EXPECT_EQ(put(path, "x").status, 201);
  EXPECT_EQ(remove("/c").status, 204);
  EXPECT_EQ(get("/c").status, 404);
  EXPECT_EQ(remove("/d").status, 204);
  EXPECT_EQ(list().json().at("files").size(), 0U);
  EXPECT_EQ(session_->size_is_exact(), false) << "a directory is measured when it matters";
  EXPECT_EQ(put("/e", "x").status, 201);
  expect_exact_size();
}

TEST_F(Files, AreShownWithTheirTimeAlsoBefore1970) {
  EXPECT_EQ(put("/old", "x").status, 201);
  const timespec times[2] = {{-2, 500'000'000}, {-2, 500'000'000}};
  ASSERT_EQ(::utimensat(AT_FDCWD, at("old").c_str(), times, 0), 0);
  EXPECT_EQ(list().json().at("files")[0].at("modified_at"), "1969-12-31T23:59:58.500Z");
}

TEST_F(Files, AreBoundToTheQuotaAtTheLimitAndPastIt) {
  const std::string whole(1U << 20, 'x');
  EXPECT_EQ(put("/full", whole).status, 201);
  const Answer past = put("/more", "x");
  EXPECT_EQ(past.status, 413);
  EXPECT_EQ(past.code(), "quota_exceeded");
  EXPECT_EQ(past.json().at("field"), "work");
  EXPECT_THAT(past.json().at("detail"), HasSubstr("(work) is 1M, of which 1M are used"));
  EXPECT_EQ(put("/full", whole).status, 200) << "what is replaced makes room";
  EXPECT_EQ(put("/full", whole, false).status, 200);
  EXPECT_EQ(put("/full", whole + "x").status, 413);
  EXPECT_EQ(get("/full").body, whole) << "the old file stays";
  EXPECT_EQ(put("/full", "small").status, 200);
  EXPECT_EQ(put("/more", "x").status, 201);
  expect_exact_size();
}

TEST_F(Files, ThatDoNotSayTheirLengthAreCutAtTheQuota) {
  Pieces body;
  body.pieces.assign(100, std::string(60'000, 'x'));
  const Answer answer = call(&SessionFiles::put, "/endless", &body);
  EXPECT_EQ(answer.code(), "quota_exceeded");
  EXPECT_EQ(get("/endless").status, 404);
  EXPECT_EQ(session_->reserved(), 0U);
}

TEST_F(Files, AreBoundToTheInodesWithTheDirectoriesOnTheWay) {
  for (int i = 0; i < 46; ++i) EXPECT_EQ(put("/f" + std::to_string(i), "").status, 201);
  // 47 with the top: three are left.
  const Answer past = put("/a/b/c/d", "x");
  EXPECT_EQ(past.code(), "quota_exceeded");
  EXPECT_EQ(past.json().at("field"), "work_inodes");
  EXPECT_THAT(past.json().at("detail"), HasSubstr("47 are used, and this needs 4 more"));
  EXPECT_FALSE(std::filesystem::exists(at("a")));
  EXPECT_EQ(put("/a/b/c", "x").status, 201);
  const Answer full = put("/g", "");
  EXPECT_EQ(full.json().at("field"), "work_inodes");
  EXPECT_THAT(full.json().at("detail"), HasSubstr("(work_inodes) is 50, of which 50 are used"));
  EXPECT_EQ(put("/f0", "again").status, 200);
  expect_exact_size();
}

TEST_F(Files, OfABodyThatFailsAreNotThereAndTheOldOneStays) {
  EXPECT_EQ(put("/f", "old").status, 201);
  Pieces body;
  body.pieces = {"half of"};
  body.failure = http::Problem{.status = 408, .code = "request_timeout"};
  EXPECT_EQ(call(&SessionFiles::put, "/f", &body, 1000).code(), "request_timeout");
  EXPECT_EQ(get("/f").body, "old");
}

TEST_F(Files, OfTwoWritersAreWholeAndTheLastToEndStays) {
  Pieces slow;
  slow.pieces = {std::string(60'000, 's'), std::string(60'000, 's')};
  const auto quick = [](Files& t) -> Task<void> {
    http::Request request;
    request.target = *http::parse_target("/v1/sessions/" + t.id() + "/files/f");
    request.parameters["id"] = t.id();
    request.peer = test::SessionGround::peer(1000);
    Pieces body;
    body.pieces = {"quick"};
    request.stream = &body;
    Answer answer;
    co_await t.files_->put(request, answer);
    EXPECT_EQ(answer.status, 201);
    EXPECT_EQ(test::read_text(t.at("f")), "quick");
  };
  slow.before_last = [&] { return quick(*this); };
  EXPECT_EQ(call(&SessionFiles::put, "/f", &slow).status, 200) << "the second replaces the first";
  EXPECT_EQ(get("/f").body, std::string(120'000, 's'));
  expect_exact_size();
}

TEST_F(Files, OfASessionThatIsDeletedMeanwhileAreRefused) {
  Pieces body;
  body.pieces = {"a", "b", "c"};
  std::optional<async::TaskGroup> deleting(std::in_place, ground_.loop);
  const auto remove = [](Files& t) -> Task<void> {
    auto gone = co_await t.ground_.sessions().remove(t.session_);
    EXPECT_TRUE(std::holds_alternative<bool>(gone));
  };
  const auto begin = [](async::TaskGroup& group, Task<void> task, Files& t) -> Task<void> {
    group.spawn(std::move(task));
    co_await test::turns(t.ground_.loop);
  };
  body.before_last = [&] { return begin(*deleting, remove(*this), *this); };
  EXPECT_EQ(call(&SessionFiles::put, "/f", &body).code(), "session_deleted");
  const auto join = [](async::TaskGroup& group) -> Task<void> {
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(join(*deleting));
  deleting.reset();
  EXPECT_EQ(ground_.find(1000, id()), "session_not_found");
  session_ = ground_.create();  // for TearDown
}

TEST_F(Files, AnUploadThatStallsEndsWithItsSession) {
  Pieces body;
  body.pieces = {"a"};
  body.stalls = &ground_.loop;
  std::optional<async::TaskGroup> deleting(std::in_place, ground_.loop);
  const auto remove = [](Files& t, const Pieces& upload) -> Task<void> {
    while (!upload.stalled) co_await test::turns(t.ground_.loop);
    const auto gone = co_await t.ground_.sessions().remove(t.session_);
    EXPECT_TRUE(std::holds_alternative<bool>(gone));
  };
  deleting->spawn(remove(*this, body));
  EXPECT_EQ(call(&SessionFiles::put, "/f", &body).code(), "session_deleted");
  const auto join = [](async::TaskGroup& group) -> Task<void> {
    (void)co_await group.join(async::test::soon());
  };
  ground_.run(join(*deleting));
  deleting.reset();
  EXPECT_EQ(ground_.find(1000, id()), "session_not_found");
  session_ = ground_.create();  // for TearDown
}

TEST_F(Files, WhileARunIsOnAreRefused) {
  const auto scenario = [](Files& t) -> Task<void> {
    auto held = co_await hold_for_run(t.session_, false, async::kNoDeadline, nullptr);
    for (const Handler handler :
         {&SessionFiles::list, &SessionFiles::get, &SessionFiles::put, &SessionFiles::remove}) {
      http::Request request;
      request.target = *http::parse_target("/v1/sessions/" + t.id() + "/files/f");
      request.parameters["id"] = t.id();
      request.peer = test::SessionGround::peer(1000);
      Pieces body;
      request.stream = &body;
      Answer answer;
      co_await ((*t.files_).*handler)(request, answer);
      EXPECT_EQ(answer.status, 409);
      EXPECT_EQ(answer.code(), "session_busy");
    }
  };
  ground_.run(scenario(*this));
}

TEST_F(Files, OfSomebodyElsesSessionAreNotThere) {
  EXPECT_EQ(put("/f", "x").status, 201);
  EXPECT_EQ(call(&SessionFiles::get, "/f", nullptr, std::nullopt, 1001).code(),
            "session_not_found");
  EXPECT_EQ(call(&SessionFiles::remove, "/f", nullptr, std::nullopt, 1001).status, 404);
  EXPECT_EQ(call(&SessionFiles::list, "", nullptr, std::nullopt, 1001).status, 404);
  EXPECT_EQ(call(&SessionFiles::get, "/f", nullptr, std::nullopt, 0).body, "x");
}

TEST_F(Files, AreListedInPagesWithWhatTheyAre) {
  EXPECT_EQ(put("/a", "12345").status, 201);
  EXPECT_EQ(put("/d%20e/%ff", "x").status, 201);
  ASSERT_EQ(::symlink("a", at("link").c_str()), 0);
  const timespec far[2] = {{0, UTIME_OMIT}, {std::numeric_limits<time_t>::max() / 2, 0}};
  (void)::utimensat(AT_FDCWD, at("a").c_str(), far, 0);
  Json all = Json::array();
  std::string query = "?limit=1";
  for (int page = 0; page < 4; ++page) {
    const Json json = list(query).json();
    ASSERT_EQ(json.at("files").size(), 1U);
    all.push_back(json.at("files")[0]);
    if (json.at("next").is_null()) break;
    query = "?limit=1&after=" + json.at("next").get<std::string>();
  }
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].at("size"), 5);
  EXPECT_EQ(all[0].at("mode"), "0644");
  EXPECT_EQ(all[1].at("type"), "directory");
  EXPECT_EQ(all[2].at("path"), "d e/\\xff");
  EXPECT_EQ(all[3].at("target"), "a");
}

TEST_F(Files, AreListedWithParametersThatMakeSense) {
  EXPECT_EQ(list("?limit=0").code(), "invalid_value");
  EXPECT_EQ(list("?limit=1001").code(), "invalid_value");
  EXPECT_EQ(list("?limit=x").code(), "invalid_value");
}

TEST_F(Files, ThatAreSparseComeOutWithTheirHoles) {
  const auto file = sys::open(at("sparse"), O_WRONLY | O_CREAT, 0644);
  ASSERT_TRUE(file);
  ASSERT_EQ(::ftruncate(file->get(), 3 << 20), 0);
  const Answer got = get("/sparse");
  EXPECT_EQ(got.body, std::string(3 << 20, '\0'));
  EXPECT_LE(got.largest, http::kFilePieceBytes);
}

}  // namespace
}  // namespace sbx::daemon
