// The parts of HTTP messages as values: methods, header fields, whole responses, peers.
//
// Plain data of the library `http`; no thread rules, nothing blocks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sbx::http {

enum class Method : std::uint8_t { kGet, kHead, kPost, kPut, kDelete, kOther };
[[nodiscard]] std::string_view to_string(Method method);  // "GET"; kOther: ""

// Header fields in order of arrival. Names compare without case. Values carry no line ends (the
// parser refuses them, and the serializer of responses as well).
class Headers {
 public:
  struct Field {
    std::string name;
    std::string value;
  };

  Headers() = default;
  Headers(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first field of that name.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view name) const;
  [[nodiscard]] std::size_t count(std::string_view name) const;
  // True when a field of that name holds `token` in its comma-separated list, without case.
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;
  // Adds a field, also beside one of the same name.
  void add(std::string name, std::string value);
  // Replaces every field of that name.
  void set(std::string name, std::string value);

  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }

 private:
  std::vector<Field> fields_;
};

// A response whose body is at hand. The server adds Content-Length, Date and Connection.
struct Response {
  int status = 200;
  Headers headers{};
  std::string content_type{};  // empty: none, and then no body
  std::string body{};
};
[[nodiscard]] Response json_response(std::string body, int status = 200);
[[nodiscard]] Response text_response(std::string body, int status = 200);  // text/plain, UTF-8
[[nodiscard]] Response no_content();                                       // 204

// "Not Found"; "" for a status that RFC 9110 does not have.
[[nodiscard]] std::string_view reason_phrase(int status);

// Who is at the other end, as the kernel says (SO_PEERCRED at connect time). For TCP: none.
struct Peer {
  std::optional<uid_t> uid;
  std::optional<gid_t> gid;
  std::optional<pid_t> pid;
};

}  // namespace sbx::http
