// The parser by itself: what it takes, what it refuses, and that the size of the pieces that bytes
// arrive in makes no difference.
#include "http/connection/request_parser.h"

#include <algorithm>

namespace sbx::http {
namespace {

using Stage = RequestParser::Stage;

constexpr RequestParser::Limits kLimits{.header_bytes = 512, .header_fields = 10};

struct Parsed {
  Stage stage = Stage::kHead;
  RequestHead head;
  std::string body;
  std::string left;  // bytes after the request
  Problem problem;
};

// Feeds `bytes` as if they arrived `step` at a time.
Parsed parse(std::string_view bytes, std::size_t step = 1'000'000) {
  RequestParser parser(kLimits);
  Parsed parsed;
  std::string pending;
  bool more = true;
  while (more) {
    more = !bytes.empty();
    pending += bytes.substr(0, step);
    bytes.remove_prefix(std::min(step, bytes.size()));
    // Again until nothing more can be made of what is there.
    for (bool progress = true; progress;) {
      const Stage before = parser.stage();
      const std::size_t used = parser.feed(pending);
      pending.erase(0, used);
      parsed.body += parser.take_body();
      progress = used > 0 || parser.stage() != before;
    }
  }
  parsed.stage = parser.stage();
  parsed.left = pending;
  if (parsed.stage == Stage::kFailed) {
    parsed.problem = parser.problem();
  } else if (parsed.stage != Stage::kHead) {
    parsed.head = parser.head();
  }
  return parsed;
}

std::string with_fields(std::string_view fields) {
  return "POST /x HTTP/1.1\r\nHost: sbx\r\n" + std::string(fields) + "\r\n";
}

TEST(RequestParser, TakesARequestApart) {
  const Parsed parsed = parse(
      "PUT /a?b HTTP/1.1\r\nHost: sbx\r\nX: y z \r\nX:\r\n"
      "Content-Length: 4\r\n\r\nbodyGET /next");
  ASSERT_EQ(parsed.stage, Stage::kDone) << parsed.problem.detail;
  EXPECT_EQ(parsed.head.method, Method::kPut);
  EXPECT_EQ(parsed.head.target, "/a?b");
  EXPECT_EQ(parsed.head.headers.find("x"), "y z");
  EXPECT_EQ(parsed.head.headers.count("X"), 2U);
  EXPECT_EQ(parsed.head.content_length, 4U);
  EXPECT_TRUE(parsed.head.keep_alive);
  EXPECT_FALSE(parsed.head.http10);
  EXPECT_EQ(parsed.body, "body");
  EXPECT_EQ(parsed.left, "GET /next");
}

TEST(RequestParser, ChunksExtensionsAndTrailersAreReadAndTrailersDropped) {
  const Parsed parsed = parse(
      with_fields("Transfer-Encoding: Chunked\r\n") +
      "4;a=b;c=\"d;\\\"\"\r\nWiki\r\n005\r\npedia\r\n0\r\nX-Late: 1\r\nHost: evil\r\n\r\nrest");
  ASSERT_EQ(parsed.stage, Stage::kDone) << parsed.problem.detail;
  EXPECT_EQ(parsed.body, "Wikipedia");
  EXPECT_TRUE(parsed.head.chunked);
  EXPECT_FALSE(parsed.head.content_length);
  EXPECT_FALSE(parsed.head.headers.find("X-Late"));
  EXPECT_EQ(parsed.head.headers.find("Host"), "sbx");
  EXPECT_EQ(parsed.left, "rest");
}

TEST(RequestParser, ThePiecesThatBytesArriveInMakeNoDifference) {
  const std::vector<std::string> requests{
      "GET / HTTP/1.1\r\nHost: a\r\n\r\nnext",
      with_fields("Content-Length: 10\r\nConnection: close\r\n") + "0123456789next",
      with_fields("Transfer-Encoding: chunked\r\n") + "0\r\n\r\nnext",
      with_fields("Transfer-Encoding: chunked\r\n") +
          "a\r\n0123456789\r\n1;x\r\nA\r\n0\r\nT: u\r\n\r\nn",
      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      "BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n",
  };
  for (const std::string& request : requests) {
    const Parsed whole = parse(request);
    ASSERT_EQ(whole.stage, Stage::kDone) << request << whole.problem.detail;
    for (std::size_t step = 1; step < request.size(); ++step) {
      const Parsed parts = parse(request, step);
      ASSERT_EQ(parts.stage, Stage::kDone) << step << ": " << request << parts.problem.detail;
      EXPECT_EQ(parts.body, whole.body) << step;
      EXPECT_EQ(parts.left, whole.left) << step;
      EXPECT_EQ(parts.head.method, whole.head.method);
      EXPECT_EQ(parts.head.keep_alive, whole.head.keep_alive);
    }
  }
}

TEST(RequestParser, HalfARequestIsNoRequest) {
  const std::string request = with_fields("Content-Length: 3\r\n") + "abc";
  for (std::size_t size = 0; size < request.size(); ++size) {
    const Parsed parsed = parse(request.substr(0, size), 7);
    EXPECT_NE(parsed.stage, Stage::kDone) << size;
    EXPECT_NE(parsed.stage, Stage::kFailed) << size;
  }
}

TEST(RequestParser, RefusesWhatTwoReadersCouldReadDifferently) {
  for (const std::string& bad : {
           with_fields("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
           with_fields("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
           with_fields("Content-Length: 3\r\nContent-Length: 4\r\n"),
           with_fields("Content-Length: 3, 4\r\n"),
           with_fields("Content-Length: +3\r\n"),
           with_fields("Content-Length: -3\r\n"),
           with_fields("Content-Length: 0x3\r\n"),
           with_fields("Content-Length: 3 3\r\n"),
           with_fields("Content-Length:\r\n"),
           with_fields("Content-Length: 18446744073709551616\r\n"),
           with_fields("Content-Length: 99999999999999999999999999\r\n"),
           with_fields("Transfer-Encoding: gzip, chunked\r\n"),
           with_fields("Transfer-Encoding: chunked, chunked\r\n"),
           with_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
           with_fields("Transfer-Encoding: identity\r\n"),
           with_fields("Transfer-Encoding: chunked, identity\r\n"),
           with_fields("Transfer-Encoding : chunked\r\n"),
           with_fields("Transfer-Encoding:\r\n"),
           with_fields("Host: other\r\n"),
           with_fields(" folded\r\n"),
           with_fields("X: a\r\n\tfolded\r\n"),
           with_fields("Content-Length: 3\r\n Transfer-Encoding: chunked\r\n"),
           with_fields("Transfer-Encoding:\r\n chunked\r\n"),
           std::string("POST /x HTTP/1.1\r\n Host: sbx\r\n\r\n"),
           std::string("POST /x HTTP/1.1\r\n\r\n"),
           std::string("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
       }) {
    const Parsed parsed = parse(bad);
    EXPECT_EQ(parsed.stage, Stage::kFailed) << bad;
    EXPECT_EQ(parsed.problem.status, 400) << bad;
    EXPECT_EQ(parse(bad, 1).stage, Stage::kFailed) << "byte by byte: " << bad;
  }
}

TEST(RequestParser, RefusesWhatIsNoHttp) {
  using namespace std::string_literals;
  for (const std::string& bad : {
           "hello\r\n\r\n"s,
           "GET /x\r\n\r\n"s,
           "GET  /x HTTP/1.1\r\nHost: a\r\n\r\n"s,
           "GET /x HTTP/2.0\r\nHost: a\r\n\r\n"s,
           "GET /x HTTP/1.2\r\nHost: a\r\n\r\n"s,
           "GET /x HTTP/1.1\nHost: a\n\n\r\n\r\n"s,
           "GET /x HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n"s,
           "GET /x HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"s,
           "GET /x HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n"s,
           "GET /x HTTP/1.1\r\nHost: a\0b\r\n\r\n"s,
           "GET /x\0y HTTP/1.1\r\nHost: a\r\n\r\n"s,
           "GET /x HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"s,
           "G\x01T /x HTTP/1.1\r\nHost: a\r\n\r\n"s,
           "\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03\r\n\r\n"s,
       }) {
    const Parsed parsed = parse(bad);
    EXPECT_EQ(parsed.stage, Stage::kFailed) << bad;
    EXPECT_EQ(parsed.problem.status, 400) << bad;
  }
}

TEST(RequestParser, RefusesBadChunks) {
  for (const char* bad : {"x\r\n", "\r\n", "-1\r\n", "5\r\nabcdefgh\r\n", "5 \r\nabcde\r\n",
                          "5;\r\nabcde\r\n", "10000000000000000\r\n", "5\nabcde\r\n0\r\n\r\n",
                          "0\r\nbad trailer\r\n\r\n", "0\r\nContent-Length: 5\r\n\r\n"}) {
    const Parsed parsed = parse(with_fields("Transfer-Encoding: chunked\r\n") + bad + "\r\n");
    EXPECT_EQ(parsed.stage, Stage::kFailed) << bad;
    EXPECT_EQ(parsed.problem.code, problem_code::kMalformedRequest) << bad;
  }
}

TEST(RequestParser, AHeadOfExactlyTheLimitIsReadAndOneByteMoreIsNot) {
  const std::string fixed = with_fields("X: \r\n");
  const std::string at =
      with_fields("X: " + std::string(kLimits.header_bytes - fixed.size(), 'a') + "\r\n");
  ASSERT_EQ(at.size(), kLimits.header_bytes);
  const std::string over =
      with_fields("X: " + std::string(kLimits.header_bytes - fixed.size() + 1, 'a') + "\r\n");
  for (const std::size_t step : {1U, 7U, 100'000U}) {
    EXPECT_EQ(parse(at, step).stage, Stage::kDone) << step;
    EXPECT_EQ(parse(over, step).problem.status, 431) << step;
  }
  const std::string endless(2 * kLimits.header_bytes, 'a');
  EXPECT_EQ(parse("GET /" + endless, 9).problem.status, 414);
  EXPECT_EQ(parse("GET / HTTP/1.1\r\n" + endless, 9).problem.status, 431);
}

TEST(RequestParser, TheNumberOfFieldsIsLimited) {
  const auto fields = [](std::size_t count) {
    std::string text;
    for (std::size_t i = 0; i < count; ++i) text += "A: b\r\n";
    return with_fields(text);
  };
  EXPECT_EQ(parse(fields(kLimits.header_fields - 1)).stage, Stage::kDone);  // Host is one
  EXPECT_EQ(parse(fields(kLimits.header_fields)).problem.status, 431);
}

TEST(RequestParser, ChunkExtensionsAndTrailersAreLimited) {
  const std::string endless(2 * kLimits.header_bytes, 'a');
  const std::string chunked = with_fields("Transfer-Encoding: chunked\r\n");
  EXPECT_EQ(parse(chunked + "5;" + endless, 50).stage, Stage::kFailed);
  EXPECT_EQ(parse(chunked + "0\r\nX: " + endless, 50).stage, Stage::kFailed);
  EXPECT_EQ(parse(chunked + "0\r\n" + endless, 50).stage, Stage::kFailed);
}

TEST(RequestParser, ContinueIsTheOnlyExpectation) {
  EXPECT_TRUE(
      parse(with_fields("Content-Length: 3\r\nExpect: 100-Continue\r\n")).head.expects_continue);
  EXPECT_EQ(parse(with_fields("Expect: coffee\r\n")).problem.status, 417);
  EXPECT_FALSE(parse("POST / HTTP/1.0\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
                   .head.expects_continue);
}

TEST(RequestParser, KeepAliveIsTheDefaultOf11AndTheExceptionOf10) {
  const auto keeps = [](std::string_view version, std::string_view connection) {
    return parse("GET / HTTP/" + std::string(version) + "\r\nHost: a\r\n" +
                 std::string(connection) + "\r\n")
        .head.keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_FALSE(keeps("1.1", "Connection: close\r\n"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "Connection: Keep-Alive\r\n"));
}

}  // namespace
}  // namespace sbx::http
