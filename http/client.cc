#include "http/client.h"

#include <curl/curl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "http/async/cancellation.h"
#include "http/async/event.h"
#include "http/async/fd_watch.h"
#include "http/async/task_group.h"
#include "http/client_transfer.h"
#include "runtime/base/unique_fd.h"

namespace sbx::http {
namespace {

using Kind = ClientError::Kind;

constexpr std::size_t kMostIdle = 8;  // handles

void initialize_curl() {
  // Once, before any thread uses it; cleaned up by the end of the process.
  static const CURLcode initialized = curl_global_init(CURL_GLOBAL_DEFAULT);
  (void)initialized;  // when it failed, no handle can be made, and that is reported
}

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
  CurlHandle handle;
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
  [[nodiscard]] CurlHandle take_handle();
  void keep(CurlHandle handle);

  static int on_socket(CURL*, curl_socket_t socket, int what, void* self, void*);
  static int on_timer(CURLM*, long milliseconds, void* self);

  async::Loop& loop;
  CURLM* multi = nullptr;
  bool usable = false;
  UniqueFd epoll;
  async::Deadline timer = async::kNoDeadline;
  async::Event timer_changed;
  std::map<CURL*, Exchange*> exchanges;
  std::vector<CurlHandle> idle;  // to be used again: making one costs more than a small request
  async::TaskGroup tasks;        // last: its tasks use the others
};

// One request in flight. Owned by the coroutine that performs it.
struct AsyncClient::Exchange {
  Exchange(State& its_state, const ClientRequest& request)
      : state(its_state),
        handle(its_state.take_handle()),
        transfer(handle.get(), request),
        ended(its_state.loop) {}
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange() {
    if (state.exchanges.erase(handle.get()) == 0) return;
    (void)curl_multi_remove_handle(state.multi, handle.get());  // is in it
    state.keep(std::move(handle));
  }

  [[nodiscard]] bool start() {
    if (!state.usable || !transfer.prepare()) return false;
    if (curl_multi_add_handle(state.multi, handle.get()) != CURLM_OK) return false;
    state.exchanges.emplace(handle.get(), this);
    return true;
  }

  State& state;
  CurlHandle handle;
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

CurlHandle AsyncClient::State::take_handle() {
  if (idle.empty()) return CurlHandle(curl_easy_init());
  CurlHandle handle = std::move(idle.back());
  idle.pop_back();
  return handle;
}

// SECURITY: nothing of this exchange is left in it that the next server would be sent, which may be
// another; what a TLS session needs to go on is kept by the server's name.
void AsyncClient::State::keep(CurlHandle handle) {
  if (idle.size() >= kMostIdle) return;
  curl_easy_reset(handle.get());
  idle.push_back(std::move(handle));
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
  if (cancellation != nullptr && cancellation->cancelled()) co_return cancelled();
  if (!exchange.start()) co_return not_prepared();
  state_->act(CURL_SOCKET_TIMEOUT, 0);  // what curl asks its timer for: begin now
  while (!exchange.code) {
    const async::Wake wake = co_await exchange.ended.wait(async::kNoDeadline, cancellation);
    if (wake == async::Wake::kCancelled) co_return cancelled();
  }
  co_return exchange.transfer.result(*exchange.code);
}

}  // namespace sbx::http
