#include "http/client_transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace sbx::http {
namespace {

using Kind = ClientError::Kind;

Kind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Kind::kBadRequest;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return Kind::kUnreachable;
    case CURLE_OPERATION_TIMEDOUT:
      return Kind::kTimeout;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return Kind::kTls;
    default:
      return Kind::kBroken;
  }
}

template <typename Value>
bool set(void* handle, CURLoption option, Value value) {
  return curl_easy_setopt(handle, option, value) == CURLE_OK;
}

}  // namespace

void FreeCurlHandle::operator()(void* handle) const {
  curl_easy_cleanup(handle);
}

void FreeCurlList::operator()(curl_slist* list) const {
  curl_slist_free_all(list);
}

bool Transfer::prepare() {
  if (handle_ == nullptr) return false;
  curl_easy_reset(handle_);  // keeps the connections
  return set_target() && set_method() && set_fields() && set_limits() && set_callbacks();
}

ClientResult Transfer::result(int code_number) {
  const auto code = static_cast<CURLcode>(code_number);
  if (code == CURLE_OK) return std::move(response_);
  long os_errno = 0;
  (void)curl_easy_getinfo(handle_, CURLINFO_OS_ERRNO, &os_errno);  // stays 0
  Kind kind = refusal_.value_or(kind_of(code));
  long sent = 0;
  (void)curl_easy_getinfo(handle_, CURLINFO_REQUEST_SIZE, &sent);  // stays 0
  // An answer that is no HTTP is "unsupported protocol" to curl, as a URL of another scheme is.
  if (kind == Kind::kBadRequest && sent > 0) kind = Kind::kBroken;
  // While connecting, or in the handshake.
  if (kind == Kind::kTimeout && sent == 0) kind = Kind::kUnreachable;
  std::string detail = error_.front() != '\0' ? error_.data() : curl_easy_strerror(code);
  // Curl speaks of the host and the port of a URL that has none.
  if (kind == Kind::kUnreachable && !request_.unix_socket.empty() && os_errno != 0) {
    detail =
        request_.unix_socket + ": " + std::generic_category().message(static_cast<int>(os_errno));
  }
  if (kind == Kind::kTooLarge) detail = "the answer is larger than allowed";
  if (kind == Kind::kStopped) detail = "stopped by its reader";
  return ClientError{kind, std::move(detail),
                     kind == Kind::kUnreachable ? static_cast<int>(os_errno) : 0};
}

bool Transfer::set_target() {
  bool all = set(handle_, CURLOPT_URL, request_.url.c_str()) &&
             set(handle_, CURLOPT_PROTOCOLS_STR, "http,https") &&
             set(handle_, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
  // SECURITY: what is not encrypted is for this machine, and may hold a key: no http_proxy and no
  // all_proxy hears it. Curl does not except loopback from them.
  if (!request_.url.starts_with("https://")) all = all && set(handle_, CURLOPT_PROXY, "");
  if (request_.unix_socket.empty()) return all;
  return all && set(handle_, CURLOPT_UNIX_SOCKET_PATH, request_.unix_socket.c_str()) &&
         set(handle_, CURLOPT_PROXY, "");
}

bool Transfer::set_method() {
  switch (request_.method) {
    case Method::kGet:
      return request_.body.empty() && set(handle_, CURLOPT_HTTPGET, 1L);
    case Method::kHead:
      return request_.body.empty() && set(handle_, CURLOPT_NOBODY, 1L);
    case Method::kDelete:
      return request_.body.empty() && set(handle_, CURLOPT_CUSTOMREQUEST, "DELETE");
    case Method::kPost:
      return set_body();
    case Method::kPut:
      return set_body() && set(handle_, CURLOPT_CUSTOMREQUEST, "PUT");
    case Method::kOther:
      return false;
  }
  return false;
}

bool Transfer::set_body() {
  return set(handle_, CURLOPT_POST, 1L) && set(handle_, CURLOPT_POSTFIELDS, request_.body.data()) &&
         set(handle_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
}

bool Transfer::set_fields() {
  // Curl waits a second for "100 Continue", which our bodies are too small for.
  if (!add_field("Expect:")) return false;
  if (!request_.headers.find("Content-Type") && !add_field("Content-Type:")) return false;
  for (const auto& [name, value] : request_.headers.fields()) {
    const bool one_line = (name + value).find_first_of("\r\n") == std::string::npos;
    // "name;" is how curl is told of an empty value.
    if (!one_line || !add_field(value.empty() ? name + ";" : name + ": " + value)) return false;
  }
  return set(handle_, CURLOPT_HTTPHEADER, fields_.get());
}

bool Transfer::add_field(const std::string& line) {
  curl_slist* longer = curl_slist_append(fields_.get(), line.c_str());
  if (longer == nullptr) return false;
  (void)fields_.release();  // is part of `longer`
  fields_.reset(longer);
  return true;
}

bool Transfer::set_limits() {
  return set(handle_, CURLOPT_CONNECTTIMEOUT_MS,
             static_cast<long>(request_.connect_timeout.count())) &&
         set(handle_, CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count())) &&
         set(handle_, CURLOPT_NOSIGNAL, 1L) && set(handle_, CURLOPT_FOLLOWLOCATION, 0L) &&
         set(handle_, CURLOPT_SSL_VERIFYPEER, 1L) && set(handle_, CURLOPT_SSL_VERIFYHOST, 2L);
}

bool Transfer::set_callbacks() {
  static_assert(sizeof error_ == CURL_ERROR_SIZE);
  return set(handle_, CURLOPT_ERRORBUFFER, error_.data()) && set(handle_, CURLOPT_PRIVATE, this) &&
         set(handle_, CURLOPT_HEADERFUNCTION, &Transfer::on_header) &&
         set(handle_, CURLOPT_HEADERDATA, this) &&
         set(handle_, CURLOPT_WRITEFUNCTION, &Transfer::on_body) &&
         set(handle_, CURLOPT_WRITEDATA, this);
}

std::size_t Transfer::on_header(char* bytes, std::size_t, std::size_t size, void* self) {
  return static_cast<Transfer*>(self)->take_header({bytes, size}) ? size : 0;
}

std::size_t Transfer::on_body(char* bytes, std::size_t, std::size_t size, void* self) {
  return static_cast<Transfer*>(self)->take_body({bytes, size}) ? size : 0;
}

bool Transfer::refuse(Kind kind) {
  refusal_ = kind;
  return false;
}

bool Transfer::take_header(std::string_view line) {
  header_bytes_ += line.size();
  if (header_bytes_ > request_.header_bytes) return refuse(Kind::kTooLarge);
  if (line.starts_with("HTTP/")) {
    long status = 0;
    (void)curl_easy_getinfo(handle_, CURLINFO_RESPONSE_CODE, &status);  // is known by now
    response_ = {static_cast<int>(status), {}, {}};
    return true;
  }
  while (!line.empty() && (line.back() == '\r' || line.back() == '\n')) line.remove_suffix(1);
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return true;
  std::string_view value = line.substr(colon + 1);
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  response_.headers.add(std::string(line.substr(0, colon)), std::string(value));
  return true;
}

bool Transfer::take_body(std::string_view bytes) {
  body_bytes_ += bytes.size();
  if (body_bytes_ > request_.body_bytes) return refuse(Kind::kTooLarge);
  if (!request_.on_data) {
    response_.body += bytes;
  } else if (!request_.on_data(response_, bytes)) {
    return refuse(Kind::kStopped);
  }
  return true;
}

}  // namespace sbx::http
