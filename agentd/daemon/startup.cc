#include "agentd/daemon/startup.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <utility>

#include "agentd/config/key_fields.h"
#include "agentd/ledger/owner.h"
#include "agentd/providers/choose.h"
#include "agentd/providers/recordings.h"
#include "agentd/store/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/own_limits.h"

namespace agentd::daemon {
namespace {

using config::AgentConfig;
using sbx::Result;
using sbx::http::Listener;

struct Address {
  std::string host;
  std::uint16_t port = 0;
};

// "127.0.0.1:8765", "[::1]:0". Other hosts' addresses would show the API to a network.
Result<Address> parse_listen(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  Address address;
  if (colon != std::string::npos) {
    address.host = text.substr(0, colon);
    const char* begin = text.data() + colon + 1;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(begin, end, address.port);
    if (error == std::errc() && rest == end && begin != end) {
      if (address.host == "[::1]") address.host = "::1";
      if (address.host == "127.0.0.1" || address.host == "::1") return address;
    }
  }
  return sbx::invalid(text + " is no loopback address with a port",
                      "use 127.0.0.1:PORT or [::1]:PORT");
}

Result<void> listen_on_unix(const Started& started, std::vector<Listener>& listeners) {
  SBX_ASSIGN(auto passed, sbx::http::systemd_descriptors());
  for (sbx::UniqueFd& fd : passed) {
    SBX_ASSIGN(Listener listener, Listener::adopt(std::move(fd)));
    listeners.push_back(std::move(listener));
  }
  if (!listeners.empty()) return {};
  const std::string& path = started.places.socket;
  if (path.empty()) {
    return sbx::invalid("there is nowhere to put the socket", "give --socket PATH");
  }
  // His own, whoever started it: that of a service, with a group, is systemd's.
  SBX_ASSIGN(Listener listener, Listener::unix_socket({.path = path, .mode = 0600, .group = {}}));
  listeners.push_back(std::move(listener));
  return {};
}

Result<void> listen_on_tcp(Started& started, const redact::Secret& token) {
  SBX_ASSIGN(const Address address, parse_listen(started.configuration.listen));
  SBX_ASSIGN(Listener listener, Listener::tcp(address.host, address.port));
  const std::string host = address.host == "::1" ? "[::1]" : address.host;
  started.url = fmt::format("http://{}:{}/v1/info?token={}", host, listener.port(), token.reveal());
  started.guard.emplace(token, listener.port());
  started.listeners.push_back(std::move(listener));
  return {};
}

// SECURITY: this process holds a key: no core dump, and no other process of the same user reads its
// memory.
Result<void> keep_memory_private() {
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return sbx::sys_error("prctl");
  return {};
}

std::string database_path(const config::Places& places) {
  return places.state_dir + "/" + config::kDatabase;
}

// SQLite's errors do not say which file it is.
template <typename T>
Result<T> with_file(const config::Places& places, Result<T> result) {
  if (result || result.error().stage != "store") return result;
  return std::move(result).error().with_context(database_path(places));
}

Result<store::Database> open_database(const config::Places& places) {
  store::DatabaseOptions options;
  options.path = database_path(places);
  return with_file(places, store::Database::open(options));
}

template <typename T>
Result<T> at_key(const config::KeyLines& lines, const std::string& key, Result<T> result) {
  if (result) return result;
  return std::move(result).error().with_context(lines.place(key));
}

Result<redact::Secret> key_of(const Configuration& loaded) {
  return at_key(loaded.lines, config::set_key_field(loaded.values),
                providers::configured_key(loaded.values));
}

// One by one, so that it is said which of them is wrong.
Result<void> check_prompts(const Configuration& loaded) {
  const AgentConfig& values = loaded.values;
  for (const auto& [key, versions] :
       std::initializer_list<std::pair<const char*, prompts::PromptVersions>>{
           {"prompts.codegen", {.codegen = values.prompt_codegen}},
           {"prompts.repair", {.repair = values.prompt_repair}},
           {"prompts.tools", {.tools = values.prompt_tools}}}) {
    SBX_TRY(at_key(loaded.lines, key, prompts::Composer::make(versions)));
  }
  return {};
}

// Those that a start would load, at least where it finds no server.
Result<void> check_recordings(const AgentConfig& configuration, bool has_key) {
  const std::string& kind = configuration.provider_kind;
  if (kind != "replay" && (kind != "auto" || has_key)) return {};
  SBX_TRY(providers::Recordings::load(configuration.recordings));
  return {};
}

}  // namespace

Result<Configuration> load_configuration(const Arguments& arguments) {
  Configuration loaded;
  SBX_ASSIGN(loaded.values, config::load_config(arguments.config, &loaded.lines));
  AgentConfig& values = loaded.values;
  if (!arguments.socket.empty()) values.socket = arguments.socket;
  if (!arguments.sbxd_socket.empty()) values.sbxd_socket = arguments.sbxd_socket;
  if (!arguments.state_dir.empty()) values.state_dir = arguments.state_dir;
  if (!arguments.listen.empty()) {
    values.listen = arguments.listen;
    auto address = parse_listen(values.listen);
    if (!address) return std::move(address).error().with_context("--listen");
  } else if (!values.listen.empty()) {
    SBX_TRY(at_key(loaded.lines, "listen", parse_listen(values.listen)));
  }
  SBX_TRY(check_prompts(loaded));
  return loaded;
}

Result<bool> check_configuration(const Arguments& arguments) {
  SBX_TRY(keep_memory_private());
  SBX_ASSIGN(const Configuration loaded, load_configuration(arguments));
  const AgentConfig& configuration = loaded.values;
  SBX_TRY(config::choose_places(configuration, ::geteuid() == 0));
  if (!configuration.api_key_credential.empty() &&
      std::getenv("CREDENTIALS_DIRECTORY") == nullptr) {
    SBX_TRY(check_recordings(configuration, true));
    return false;
  }
  SBX_ASSIGN(const redact::Secret key, key_of(loaded));
  SBX_TRY(check_recordings(configuration, !key.empty()));
  return true;
}

Result<Started> start_up(const Arguments& arguments) {
  SBX_TRY(keep_memory_private());
  SBX_ASSIGN(Configuration loaded, load_configuration(arguments));
  SBX_ASSIGN(redact::Secret key, key_of(loaded));
  AgentConfig& configuration = loaded.values;
  if (const auto level = sbx::log::level_from_name(configuration.log_level)) {
    sbx::log::set_level(*level);
  }
  sbx::raise_soft_limits();
  SBX_TRY(sbx::check_own_limits(sbx::OwnWork::kDaemon));
  SBX_ASSIGN(config::Places places, config::choose_places(configuration, ::geteuid() == 0));
  SBX_TRY(config::make_places(places));
  SBX_ASSIGN(sbx::UniqueFd state_lock, config::lock_state(places.state_dir));
  SBX_ASSIGN(prompts::Composer composer,
             prompts::Composer::make({configuration.prompt_codegen, configuration.prompt_repair,
                                      configuration.prompt_tools}));
  const redact::Secret token = configuration.listen.empty() ? redact::Secret() : api::new_token();

  SBX_ASSIGN(std::string owner, ledger::own_identity());
  SBX_ASSIGN(store::Database database, open_database(places));
  SBX_ASSIGN(ledger::Book book,
             with_file(places, ledger::Book::open(
                                   database, {std::move(owner), ledger::is_alive, store::now_ms})));
  SBX_ASSIGN(history::History history, with_file(places, history::History::open(database)));
  SBX_ASSIGN(history::ArtifactFiles artifacts, history::ArtifactFiles::open(places.state_dir));
  SBX_ASSIGN(config::HeldState held_state, config::HeldState::open(places.state_dir));

  Started started{.configuration = std::move(configuration),
                  .places = std::move(places),
                  .state_lock = std::move(state_lock),
                  .held_state = std::move(held_state),
                  .record_to = arguments.out,
                  .composer = std::move(composer),
                  .key = key,
                  .redactor = redact::Redactor({key, token}),
                  .listeners = {},
                  .guard = {},
                  .url = {},
                  .database = std::move(database),
                  .book = std::move(book),
                  .history = std::move(history),
                  .artifacts = std::move(artifacts)};
  SBX_TRY(listen_on_unix(started, started.listeners));
  if (!token.empty()) SBX_TRY(listen_on_tcp(started, token));
  return started;
}

}  // namespace agentd::daemon
