// Files as bodies, with a source and a sink of the tests' own.
#include "http/file_body.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/sys.h"
#include "tests/unit/http/on_loop.h"

namespace sbx::http {
namespace {

using async::Task;
using async::test::run_on;

class Pieces final : public BodySource {
 public:
  Pieces(std::size_t count, std::size_t size, BodyPiece last)
      : left_(count), size_(size), last_(std::move(last)) {}
  Task<BodyPiece> read(const async::Cancellation*) override {
    if (left_ == 0) co_return last_;
    --left_;
    co_return BodyPiece{
        BodyPiece::Kind::kData, std::string(size_, static_cast<char>('a' + left_ % 26)), {}};
  }

 private:
  std::size_t left_;
  std::size_t size_;
  BodyPiece last_;
};

class Recorder final : public Responder {
 public:
  Task<void> send(Response) override { co_return; }
  void begin(Response head, std::optional<std::uint64_t> length) override {
    status = head.status;
    announced = length;
  }
  Task<bool> write(std::string bytes) override {
    largest = std::max(largest, bytes.size());
    body += bytes;
    co_return body.size() < leaves_after;
  }
  bool try_write(std::string_view) override { return false; }
  Task<bool> finish(std::string /*last*/) override {
    finished = true;
    co_return announced == body.size() || head_only();
  }
  std::chrono::steady_clock::duration behind() const override { return {}; }
  void leave() override {}
  bool head_only() const override { return only_head; }
  bool begun() const override { return status != 0; }

  int status = 0;
  std::optional<std::uint64_t> announced;
  std::string body;
  std::size_t largest = 0;
  std::size_t leaves_after = SIZE_MAX;
  bool finished = false;
  bool only_head = false;
};

UniqueFd file_of(std::string_view bytes) {
  UniqueFd file(::memfd_create("file_body_test", MFD_CLOEXEC));
  EXPECT_TRUE(sys::write_all(file.get(), bytes));
  return file;
}

class FileBody : public ::testing::Test {
 protected:
  bool send(UniqueFd file, std::uint64_t length) {
    bool sent = false;
    run_on(loop_,
           [](Responder& to, async::WorkPool& pool, UniqueFd from, std::uint64_t size,
              bool& out) -> Task<void> {
             Response head{200, {}, "text/plain", {}};
             out = co_await send_file(to, pool, std::move(from), size, std::move(head));
           }(recorder_, pool_, std::move(file), length, sent));
    return sent;
  }
  ReceivedFile receive(BodySource& source, int file, const async::Cancellation* stop = nullptr) {
    Request request;
    request.stream = &source;
    ReceivedFile received;
    run_on(loop_,
           [](Request& from, async::WorkPool& pool, int to, const async::Cancellation* until,
              ReceivedFile& out) -> Task<void> {
             out = co_await receive_file(from, pool, to, until);
           }(request, pool_, file, stop, received));
    return received;
  }

  async::Loop loop_;
  async::WorkPool pool_{loop_, 1};
  Recorder recorder_;
};

TEST_F(FileBody, SendsAFileInBoundedPieces) {
  std::string bytes;
  for (int i = 0; i < 1'000'000; ++i) bytes += static_cast<char>(i * 31);
  EXPECT_TRUE(send(file_of(bytes), bytes.size()));
  EXPECT_TRUE(recorder_.body == bytes);
  EXPECT_EQ(recorder_.announced, bytes.size());
  EXPECT_LE(recorder_.largest, kFilePieceBytes);
}

TEST_F(FileBody, SendsAnEmptyFileAndOnlyTheHeadToHead) {
  EXPECT_TRUE(send(file_of(""), 0));
  EXPECT_TRUE(recorder_.finished);
  recorder_.only_head = true;
  EXPECT_TRUE(send(file_of("abc"), 3));
  EXPECT_EQ(recorder_.body, "");
  EXPECT_EQ(recorder_.announced, 3U);
}

TEST_F(FileBody, AFileThatShrankIsNotSentAsWhole) {
  EXPECT_FALSE(send(file_of("abc"), 4));
  EXPECT_EQ(recorder_.body, "abc");
}

TEST_F(FileBody, StopsWhenTheClientIsGone) {
  recorder_.leaves_after = 1;
  EXPECT_FALSE(send(file_of(std::string(2 * kFilePieceBytes, 'x')), 2 * kFilePieceBytes));
  EXPECT_EQ(recorder_.body.size(), kFilePieceBytes);
  EXPECT_FALSE(recorder_.finished);
}

TEST_F(FileBody, ReceivesABodyIntoAFile) {
  const UniqueFd file(::memfd_create("file_body_test", MFD_CLOEXEC));
  Pieces pieces(100, 10'007, {});
  const ReceivedFile received = receive(pieces, file.get());
  ASSERT_TRUE(std::holds_alternative<std::uint64_t>(received));
  EXPECT_EQ(std::get<std::uint64_t>(received), 100U * 10'007U);
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  const auto bytes = sys::read_all(file.get(), 1U << 24);
  ASSERT_TRUE(bytes);
  ASSERT_EQ(bytes->size(), 100U * 10'007U);
  EXPECT_EQ(bytes->front(), static_cast<char>('a' + 99 % 26));
  EXPECT_EQ(bytes->back(), 'a');
}

TEST_F(FileBody, HandsOnTheProblemOfTheBody) {
  const UniqueFd file(::memfd_create("file_body_test", MFD_CLOEXEC));
  Pieces pieces(1, 10, {BodyPiece::Kind::kFailed, {}, {.status = 413, .code = "body_too_large"}});
  const ReceivedFile received = receive(pieces, file.get());
  ASSERT_TRUE(std::holds_alternative<Problem>(received));
  EXPECT_EQ(std::get<Problem>(received).status, 413);
}

TEST_F(FileBody, EndsABodyThatStallsWhenItIsStopped) {
  class Stalled final : public BodySource {
   public:
    explicit Stalled(async::Loop& loop) : loop_(loop) {}
    Task<BodyPiece> read(const async::Cancellation* stop) override {
      const auto wake = co_await loop_.sleep_until(async::test::soon(), stop);
      co_return BodyPiece{BodyPiece::Kind::kFailed,
                          {},
                          {.code = wake == async::Wake::kCancelled ? "stopped" : "late"}};
    }

   private:
    async::Loop& loop_;
  };
  Stalled body(loop_);
  async::Cancellation stop;
  loop_.post([&stop] { stop.cancel(); });
  const UniqueFd file(::memfd_create("file_body_test", MFD_CLOEXEC));
  const ReceivedFile received = receive(body, file.get(), &stop);
  ASSERT_TRUE(std::holds_alternative<Problem>(received));
  EXPECT_EQ(std::get<Problem>(received).code, "stopped");
}

TEST_F(FileBody, HandsOnTheErrorOfTheFile) {
  const auto full = sys::open("/dev/full", O_WRONLY);
  ASSERT_TRUE(full);
  Pieces pieces(3, 10, {});
  const ReceivedFile received = receive(pieces, full->get());
  ASSERT_TRUE(std::holds_alternative<Error>(received));
  EXPECT_EQ(std::get<Error>(received).sys_errno, ENOSPC);
}

}  // namespace
}  // namespace sbx::http
