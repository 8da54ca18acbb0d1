#include "http/connection/request_parser.h"

// Boost 1.74 uses std::exchange without including it.
#include <algorithm>
#include <limits>
#include <utility>

// Beast asserts that what it waits for came in one piece ("0\r\n", then "\r"), which a client
// decides. Without the assertion it waits for more, as it should.
#define BOOST_DISABLE_ASSERTS
#include <boost/beast/http/basic_parser.hpp>

namespace sbx::http {
namespace {

namespace beast = boost::beast;

// Beast's own name of a failure, as part of a sentence.
Problem malformed(const std::string& why) {
  return {.status = 400,
          .code = problem_code::kMalformedRequest,
          .detail = "this is no valid HTTP/1.1 request: " + why};
}

Problem header_too_large(const std::string& limit) {
  return {.status = 431,
          .code = problem_code::kHeaderTooLarge,
          .detail = "the request line and header fields are over the limit of " + limit};
}

Method method_of(beast::http::verb verb) {
  switch (verb) {
    case beast::http::verb::get:
      return Method::kGet;
    case beast::http::verb::head:
      return Method::kHead;
    case beast::http::verb::post:
      return Method::kPost;
    case beast::http::verb::put:
      return Method::kPut;
    case beast::http::verb::delete_:
      return Method::kDelete;
    default:
      return Method::kOther;
  }
}

std::string to_string(beast::string_view text) {
  return {text.data(), text.size()};
}

// Beast's callbacks, put into a RequestHead. An error set here ends the parsing; `problem` says
// why.
class Parser final : public beast::http::basic_parser<true> {
 public:
  using Code = beast::error_code;

  explicit Parser(std::size_t max_fields) : max_fields_(max_fields) {}

  // What no single field shows. Called with the head complete.
  void check_head() {
    if (problem) return;
    if (head.headers.count("Host") > 1 || (!head.http10 && head.headers.count("Host") == 0)) {
      problem = malformed("it needs exactly one Host field");
    } else if (head.http10 && head.headers.find("Transfer-Encoding")) {
      problem = malformed("HTTP/1.0 has no Transfer-Encoding");
    } else if (const auto expected = head.headers.find("Expect")) {
      const bool met = head.headers.has_token("Expect", "100-continue");
      head.expects_continue = met && !head.http10;
      if (!met) {
        problem = {.status = 417,
                   .code = problem_code::kExpectationFailed,
                   .detail = "the only expectation that is met is 100-continue",
                   .field = "Expect",
                   .allowed = {"100-continue"}};
      }
    }
    head.content_length = chunked() ? std::nullopt : announced_length();
    head.chunked = chunked();
    head.keep_alive = keep_alive();
  }

  RequestHead head;
  std::string body;
  std::uint64_t announced_chunks = 0;
  std::optional<Problem> problem;

 private:
  [[nodiscard]] std::optional<std::uint64_t> announced_length() const {
    const auto length = content_length();
    if (!length) return std::nullopt;
    return *length;
  }

  void on_request_impl(beast::http::verb verb, beast::string_view, beast::string_view target,
                       int version, Code&) override {
    head.method = method_of(verb);
    head.target = to_string(target);
    head.http10 = version == 10;
  }
  void on_response_impl(int, beast::string_view, int, Code&) override {}  // never: requests only

  // Called for trailers too.
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     Code& failure) override {
    if (++fields_ > max_fields_) {
      problem = header_too_large(std::to_string(max_fields_) + " fields");
    } else if (field == beast::http::field::transfer_encoding &&
               !beast::iequals(value, "chunked")) {
      // SECURITY: Beast takes "x, chunked" for chunked and "chunked, x" for no body at all. Whoever
      // stands between may see it the other way, and would see other requests than we do.
      problem = malformed("the only Transfer-Encoding is chunked");
    }
    if (problem) {
      failure = beast::http::make_error_code(beast::http::error::bad_field);
    } else if (!is_header_done_) {
      head.headers.add(to_string(name), to_string(value));
    }
  }

  void on_header_impl(Code&) override { is_header_done_ = true; }
  void on_body_init_impl(boost::optional<std::uint64_t> const&, Code&) override {}
  std::size_t on_body_impl(beast::string_view bytes, Code&) override {
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t size, beast::string_view, Code&) override {
    announced_chunks +=
        std::min(size, std::numeric_limits<std::uint64_t>::max() - announced_chunks);
  }
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes, Code&) override {
    body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_finish_impl(Code&) override {}

  std::size_t max_fields_;
  std::size_t fields_ = 0;
  bool is_header_done_ = false;
};

}  // namespace

struct RequestParser::State {
  explicit State(Limits given) : limits(given), parser(given.header_fields) {
    parser.header_limit(static_cast<std::uint32_t>(given.header_bytes));
    // None: the connection counts, for limits belong to routes. (Beast takes boost::none for zero.)
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
  }

  // One call of Beast's put(). `more` says whether it stopped for want of bytes.
  std::size_t put(std::string_view bytes, bool& more) {
    beast::error_code failure;
    const std::size_t used = parser.put({bytes.data(), bytes.size()}, failure);
    more = failure == beast::http::error::need_more;
    if (!failure || more) return used;
    if (!parser.problem) {
      parser.problem = failure == beast::http::error::header_limit ? too_large(bytes)
                                                                   : malformed(failure.message());
    }
    return used;
  }

  // `bytes` is what is left of the head: the request line still in it when even that has no end.
  [[nodiscard]] Problem too_large(std::string_view bytes) const {
    const std::string limit = std::to_string(limits.header_bytes) + " bytes";
    if (parser.head.target.empty() && bytes.find("\r\n") == std::string_view::npos) {
      return {.status = 414,
              .code = problem_code::kTargetTooLong,
              .detail = "the request line is over the limit of " + limit};
    }
    return header_too_large(limit);
  }

  // SECURITY: Beast takes a line that begins with a blank as more of the field before; others take
  // it for a field of its own (RFC 9112, 5.2). Beast reads each field with its folds at once.
  [[nodiscard]] static bool is_folded(std::string_view fields) {
    return fields.find("\r\n ") != std::string_view::npos ||
           fields.find("\r\n\t") != std::string_view::npos;
  }

  // At most the bytes that a head may have are shown to Beast.
  std::size_t feed_head(std::string_view bytes) {
    const std::size_t allowed = limits.header_bytes - head_bytes;
    bool more = false;
    const std::size_t used = put(bytes.substr(0, allowed), more);
    head_bytes += used;
    if (!parser.problem && is_folded(bytes.substr(0, used))) {
      parser.problem = malformed("a field is folded");
    }
    if (parser.is_header_done()) {
      parser.check_head();
      parser.eager(true);
    } else if (more && bytes.size() >= allowed && !parser.problem) {
      parser.problem = too_large(bytes);
    }
    return used;
  }

  // Chunk headers and trailers are what Beast wants in one piece.
  std::size_t feed_body(std::string_view bytes) {
    bool more = false;
    const std::size_t used = put(bytes, more);
    if (more && bytes.size() - used > limits.header_bytes) {
      parser.problem = malformed("a chunk header or the trailers are over the limit of " +
                                 std::to_string(limits.header_bytes) + " bytes");
    }
    return used;
  }

  Limits limits;
  std::size_t head_bytes = 0;
  Parser parser;
};

RequestParser::RequestParser(Limits limits) : state_(std::make_unique<State>(limits)) {}

RequestParser::RequestParser(RequestParser&&) noexcept = default;

RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) {
  if (bytes.empty()) return 0;
  switch (stage()) {
    case Stage::kHead:
      return state_->feed_head(bytes);
    case Stage::kBody:
      return state_->feed_body(bytes);
    default:
      return 0;
  }
}

RequestParser::Stage RequestParser::stage() const {
  if (state_->parser.problem) return Stage::kFailed;
  if (state_->parser.is_done()) return Stage::kDone;
  return state_->parser.is_header_done() ? Stage::kBody : Stage::kHead;
}

RequestHead& RequestParser::head() {
  return state_->parser.head;
}

std::uint64_t RequestParser::announced_chunks() const {
  return state_->parser.announced_chunks;
}

std::string RequestParser::take_body() {
  return std::exchange(state_->parser.body, {});
}

const Problem& RequestParser::problem() const {
  return *state_->parser.problem;
}

}  // namespace sbx::http
