#include "http/client.h"

#include <curl/curl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "http/async/event.h"
#include "http/async/fd_watch.h"
#include "http/async/task_group.h"
#include "runtime/base/unique_fd.h"

namespace sbx::http {
namespace {

using Kind = ClientError::Kind;

void initialize_curl() {
  // Once, before any thread uses it; cleaned up by the end of the process.
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)initialized;  // when it failed, no handle can be made, and that is reported
}

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;
using List = std::unique_ptr<curl_slist, FreeList>;

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

// One exchange on a handle: the options that the request means, and what comes back.
class Transfer {
 public:
  Transfer(CURL* handle, const ClientRequest& request) : handle_(handle), request_(request) {}
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  // Sets all options. False: `handle` or memory is missing, or curl knows an option not.
  [[nodiscard]] bool prepare() {
    if (handle_ == nullptr) return false;
    curl_easy_reset(handle_);  // keeps the connections
    return set_target() && set_method() && set_fields() && set_limits() && set_callbacks();
  }

  [[nodiscard]] ClientResult result(CURLcode code) {
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
    if (kind == Kind::kTooLarge) detail = "the answer is larger than allowed";
    if (kind == Kind::kStopped) detail = "stopped by its reader";
    return ClientError{kind, std::move(detail),
                       kind == Kind::kUnreachable ? static_cast<int>(os_errno) : 0};
  }

 private:
  template <typename Value>
  [[nodiscard]] bool set(CURLoption option, Value value) {
    return curl_easy_setopt(handle_, option, value) == CURLE_OK;
  }

  bool set_target() {
    bool all = set(CURLOPT_URL, request_.url.c_str()) && set(CURLOPT_PROTOCOLS_STR, "http,https") &&
               set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1});
    // SECURITY: what is not encrypted is for this machine, and may hold a key: no http_proxy and no
    // all_proxy hears it. Curl does not except loopback from them.
    if (!request_.url.starts_with("https://")) all = all && set(CURLOPT_PROXY, "");
    if (request_.unix_socket.empty()) return all;
    return all && set(CURLOPT_UNIX_SOCKET_PATH, request_.unix_socket.c_str()) &&
           set(CURLOPT_PROXY, "");
  }

  bool set_method() {
    switch (request_.method) {
      case Method::kGet:
        return request_.body.empty() && set(CURLOPT_HTTPGET, 1L);
      case Method::kHead:
        return request_.body.empty() && set(CURLOPT_NOBODY, 1L);
      case Method::kDelete:
        return request_.body.empty() && set(CURLOPT_CUSTOMREQUEST, "DELETE");
      case Method::kPost:
        return set_body();
      case Method::kPut:
        return set_body() && set(CURLOPT_CUSTOMREQUEST, "PUT");
      case Method::kOther:
        return false;
    }
    return false;
  }

  bool set_body() {
    return set(CURLOPT_POST, 1L) && set(CURLOPT_POSTFIELDS, request_.body.data()) &&
           set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  }

  bool set_fields() {
    // Curl waits a second for "100 Continue", which our bodies are too small for.
    if (!add_field("Expect:")) return false;
    if (!request_.headers.find("Content-Type") && !add_field("Content-Type:")) return false;
    for (const auto& [name, value] : request_.headers.fields()) {
      const bool one_line = (name + value).find_first_of("\r\n") == std::string::npos;
      // "name;" is how curl is told of an empty value.
      if (!one_line || !add_field(value.empty() ? name + ";" : name + ": " + value)) return false;
    }
    return set(CURLOPT_HTTPHEADER, fields_.get());
  }

  bool add_field(const std::string& line) {
    curl_slist* longer = curl_slist_append(fields_.get(), line.c_str());
    if (longer == nullptr) return false;
    (void)fields_.release();  // is part of `longer`
    fields_.reset(longer);
    return true;
  }

  bool set_limits() {
    return set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.connect_timeout.count())) &&
           set(CURLOPT_TIMEOUT_MS, static_cast<long>(request_.timeout.count())) &&
           set(CURLOPT_NOSIGNAL, 1L) && set(CURLOPT_FOLLOWLOCATION, 0L) &&
           set(CURLOPT_SSL_VERIFYPEER, 1L) && set(CURLOPT_SSL_VERIFYHOST, 2L);
  }

  bool set_callbacks() {
    return set(CURLOPT_ERRORBUFFER, error_.data()) && set(CURLOPT_PRIVATE, this) &&
           set(CURLOPT_HEADERFUNCTION, &Transfer::on_header) && set(CURLOPT_HEADERDATA, this) &&
           set(CURLOPT_WRITEFUNCTION, &Transfer::on_body) && set(CURLOPT_WRITEDATA, this);
  }

  // Returning another number than was given makes curl end the exchange.
  static std::size_t on_header(char* bytes, std::size_t, std::size_t size, void* self) {
    return static_cast<Transfer*>(self)->take_header({bytes, size}) ? size : 0;
  }
  static std::size_t on_body(char* bytes, std::size_t, std::size_t size, void* self) {
    return static_cast<Transfer*>(self)->take_body({bytes, size}) ? size : 0;
  }

  bool refuse(Kind kind) {
    refusal_ = kind;
    return false;
  }

  // One line with its end; a status line begins the head anew (after "100 Continue").
  bool take_header(std::string_view line) {
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

  bool take_body(std::string_view bytes) {
    body_bytes_ += bytes.size();
    if (body_bytes_ > request_.body_bytes) return refuse(Kind::kTooLarge);
    if (!request_.on_data) {
      response_.body += bytes;
    } else if (!request_.on_data(response_, bytes)) {
      return refuse(Kind::kStopped);
    }
    return true;
  }

  CURL* handle_;
  const ClientRequest& request_;
  List fields_;
  ClientResponse response_;
  std::size_t header_bytes_ = 0;
  std::size_t body_bytes_ = 0;
  std::optional<Kind> refusal_;  // why a callback ended the exchange
  std::array<char, CURL_ERROR_SIZE> error_{};
};

ClientError not_prepared() {
  return {Kind::kBadRequest, "the request's method, body, header fields or URL cannot be sent"};
}

ClientError cancelled() {
  return {Kind::kCancelled, "cancelled"};
}

}  // namespace

std::string_view to_string(Kind kind) {
  constexpr std::array<std::string_view, 8> kNames{"bad request", "unreachable", "TLS failure",
                                                   "timeout",     "cancelled",   "stopped",
                                                   "too large",   "broken"};
  return kNames.at(static_cast<std::size_t>(kind));
}

struct Client::State {
  Handle handle;
};

Client::Client() : state_(std::make_unique<State>()) {
  initialize_curl();
  state_->handle.reset(curl_easy_init());
}

Client::Client(Client&&) noexcept = default;

Client& Client::operator=(Client&&) noexcept = default;

Client::~Client() = default;

ClientResult Client::perform(const ClientRequest& request) {
  Transfer transfer(state_->handle.get(), request);
  if (!transfer.prepare()) return not_prepared();
  return transfer.result(curl_easy_perform(state_->handle.get()));
}

// Curl's descriptors are in an epoll of our own, which alone the loop watches: curl opens and
// closes them as it likes, and epoll forgets what is closed.
struct AsyncClient::State {
  explicit State(async::Loop& its_loop)
      : loop(its_loop), timer_changed(its_loop), tasks(its_loop) {}
  ~State() { (void)curl_multi_cleanup(multi); }  // of no handle too

  [[nodiscard]] bool start();
  [[nodiscard]] async::Task<void> watch_sockets(async::FdWatch watch);
  [[nodiscard]] async::Task<void> watch_timer();
  void act(curl_socket_t socket, int events);

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int on_timer(CURLM*, long milliseconds, void* self);

  async::Loop& loop;
  CURLM* multi = nullptr;
  bool usable = false;
  UniqueFd epoll;
  async::Deadline timer = async::kNoDeadline;
  async::Event timer_changed;
  std::map<CURL*, Exchange*> exchanges;
  async::TaskGroup tasks;  // last: its tasks use the others
};

// One request in flight. Owned by the coroutine that performs it.
struct AsyncClient::Exchange {
  Exchange(State& its_state, const ClientRequest& request)
      : state(its_state),
        handle(curl_easy_init()),
        transfer(handle.get(), request),
        ended(its_state.loop) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    if (state.exchanges.erase(handle.get()) == 0) return;
    (void)curl_multi_remove_handle(state.multi, handle.get());  // is in it
  }

  [[nodiscard]] bool start() {
    if (!state.usable || !transfer.prepare()) return false;
    if (curl_multi_add_handle(state.multi, handle.get()) != CURLM_OK) return false;
    state.exchanges.emplace(handle.get(), this);
    return true;
  }

  State& state;
  Handle handle;
  Transfer transfer;
  async::Event ended;
  std::optional<CURLcode> code;
};

bool AsyncClient::State::start() {
  multi = curl_multi_init();
  epoll.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (multi == nullptr || !epoll) return false;
  auto watch = async::FdWatch::watch(loop, epoll.get());
  if (!watch) return false;
  const auto set = [this](CURLMoption option, auto value) {
    return curl_multi_setopt(multi, option, value) == CURLM_OK;
  };
  if (!set(CURLMOPT_SOCKETFUNCTION, &State::on_socket) || !set(CURLMOPT_SOCKETDATA, this) ||
      !set(CURLMOPT_TIMERFUNCTION, &State::on_timer) || !set(CURLMOPT_TIMERDATA, this)) {
    return false;
  }
  tasks.spawn(watch_sockets(*std::move(watch)));
  tasks.spawn(watch_timer());
  return true;
}

int AsyncClient::State::on_socket(CURL*, curl_socket_t socket, int what, void* self, void*) {
  const int epoll = static_cast<State*>(self)->epoll.get();
  epoll_event event{};
  event.data.fd = socket;
  if (what == CURL_POLL_REMOVE) {
    (void)::epoll_ctl(epoll, EPOLL_CTL_DEL, socket, &event);  // closed: gone already
    return 0;
  }
  if ((what & CURL_POLL_IN) != 0) event.events |= EPOLLIN;
  if ((what & CURL_POLL_OUT) != 0) event.events |= EPOLLOUT;
  if (::epoll_ctl(epoll, EPOLL_CTL_MOD, socket, &event) == 0) return 0;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : -1;
}

int AsyncClient::State::on_timer(CURLM*, long milliseconds, void* self) {
  auto& state = *static_cast<State*>(self);
  state.timer =
      milliseconds < 0 ? async::kNoDeadline : async::after(std::chrono::milliseconds(milliseconds));
  state.timer_changed.notify_all();
  return 0;
}

// Both tasks end with the client, which owns them.
async::Task<void> AsyncClient::State::watch_timer() {
  for (;;) {
    const async::Wake wake = co_await timer_changed.wait(timer);
    if (wake != async::Wake::kDeadline) continue;
    timer = async::kNoDeadline;
    act(CURL_SOCKET_TIMEOUT, 0);
  }
}

async::Task<void> AsyncClient::State::watch_sockets(async::FdWatch watch) {
  for (;;) {
    (void)co_await watch.readable();
    std::array<epoll_event, 16> events;
    const int count = ::epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events.at(static_cast<std::size_t>(i));
      int ready = (event.events & EPOLLIN) != 0 ? CURL_CSELECT_IN : 0;
      if ((event.events & EPOLLOUT) != 0) ready |= CURL_CSELECT_OUT;
      if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) ready |= CURL_CSELECT_ERR;
      act(event.data.fd, ready);
    }
  }
}

// Lets curl do what it can, and wakes those whose exchange has ended by it.
void AsyncClient::State::act(curl_socket_t socket, int events) {
  int running = 0;
  (void)curl_multi_socket_action(multi, socket, events, &running);  // failures end exchanges
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    const auto ended = exchanges.find(message->easy_handle);
    if (message->msg != CURLMSG_DONE || ended == exchanges.end()) continue;
    ended->second->code = message->data.result;
    ended->second->ended.notify_all();
  }
}

AsyncClient::AsyncClient(async::Loop& loop) : state_(std::make_unique<State>(loop)) {
  initialize_curl();
  state_->usable = state_->start();
}

AsyncClient::~AsyncClient() = default;

// Curl's own time-outs end every exchange.
async::Task<ClientResult> AsyncClient::perform(ClientRequest request,
                                               const async::Cancellation* cancellation) {
  Exchange exchange(*state_, request);
  if (!exchange.start()) co_return not_prepared();
  while (!exchange.code) {
    const async::Wake wake = co_await exchange.ended.wait(async::kNoDeadline, cancellation);
    if (wake == async::Wake::kCancelled) co_return cancelled();
  }
  co_return exchange.transfer.result(*exchange.code);
}

}  // namespace sbx::http
