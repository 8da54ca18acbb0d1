// The head of a response, byte for byte.
#include "http/connection/response_head.h"

namespace sbx::http {
namespace {

TEST(ResponseHead, HasEverythingInItsPlace) {
  const Response response{201, {{"Sbx-Run-Id", "r1"}}, "application/json", "{}"};
  EXPECT_EQ(response_head(response, {.length = 2}, 784111777),
            "HTTP/1.1 201 Created\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Content-Type: application/json\r\n"
            "Sbx-Run-Id: r1\r\n"
            "Content-Length: 2\r\n"
            "\r\n");
  EXPECT_EQ(response_head({299}, {.chunked = true, .close = true, .say_keep_alive = true}, 0),
            "HTTP/1.1 299 \r\n"
            "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
            "Transfer-Encoding: chunked\r\n"
            "Connection: close\r\n"
            "\r\n");
}

TEST(ResponseHead, AValueCannotBeginAnotherField) {
  const Response response{200, {{"X-Name\r\nEvil", "a\r\nSet-Cookie: b\0c"}}, "text\n/plain", ""};
  const std::string head = response_head(response, {}, 0);
  EXPECT_NE(head.find("X-Name  Evil: a  Set-Cookie: b\r\n"), std::string::npos) << head;
  EXPECT_NE(head.find("Content-Type: text /plain\r\n"), std::string::npos) << head;
}

}  // namespace
}  // namespace sbx::http
