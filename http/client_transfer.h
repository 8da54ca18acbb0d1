#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/client.h"

struct curl_slist;

namespace sbx::http {

// Without curl's header, in which a handle is a void.
struct FreeCurlHandle {
  void operator()(void* handle) const;
};
struct FreeCurlList {
  void operator()(curl_slist* list) const;
};
using CurlHandle = std::unique_ptr<void, FreeCurlHandle>;
using CurlList = std::unique_ptr<curl_slist, FreeCurlList>;

// One exchange on a handle: the options that the request means, and what comes back.
class Transfer {
 public:
  Transfer(void* handle, const ClientRequest& request) : handle_(handle), request_(request) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets all options. False: `handle` or memory is missing, or curl knows an option not.
  [[nodiscard]] bool prepare();

  [[nodiscard]] ClientResult result(int code);  // a CURLcode

 private:
  bool set_target();
  bool set_method();
  bool set_body();
  bool set_fields();
  bool add_field(const std::string& line);
  bool set_limits();
  bool set_callbacks();

  // Returning another number than was given makes curl end the exchange.
  static std::size_t on_header(char* bytes, std::size_t, std::size_t size, void* self);
  static std::size_t on_body(char* bytes, std::size_t, std::size_t size, void* self);
  bool refuse(ClientError::Kind kind);

  // One line with its end; a status line begins the head anew (after "100 Continue").
  bool take_header(std::string_view line);
  bool take_body(std::string_view bytes);

  void* handle_;
  const ClientRequest& request_;
  CurlList fields_;
  ClientResponse response_;
  std::size_t header_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  std::optional<ClientError::Kind> refusal_;  // why a callback ended the exchange
  std::array<char, 256> error_{};             // CURL_ERROR_SIZE
};

}  // namespace sbx::http
