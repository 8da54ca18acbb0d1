#include "agentd/config/config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <variant>

#include "agentd/config/key_fields.h"
#include "runtime/base/config_file.h"
#include "runtime/base/config_template.h"
#include "runtime/base/log.h"
#include "runtime/base/toml.h"

namespace agentd::config {
namespace {

using sbx::Result;
using sbx::TomlKind;
using sbx::TomlValue;

// What a key is stored in. A number has bounds; a string may have a check.
using Member =
    std::variant<std::string AgentConfig::*, std::uint32_t AgentConfig::*, double AgentConfig::*,
                 bool AgentConfig::*, std::vector<std::string> AgentConfig::*,
                 std::vector<std::uint32_t> AgentConfig::*>;

struct Key {
  std::string_view path;
  std::string_view comment;  // lines separated by '\n'
  Member member;
  double min = 0;
  double max = 0;
  std::vector<std::string_view> allowed = {};  // empty: any
};

constexpr double kDay = 24 * 3600;
constexpr const char* kBaseUrl = "provider.base_url";

// A table: longer than a function should be.
const std::array kKeys = {
    Key{"socket",
        "Where agentd listens. Empty: /run/agentd/agentd.sock as root, else\n"
        "$XDG_RUNTIME_DIR/sbx/agentd.sock.",
        &AgentConfig::socket},
    Key{"listen",
        "An address and port of this machine for TCP as well, like \"127.0.0.1:8765\". A\n"
        "start token is printed, without which nothing is answered. Empty: no TCP.",
        &AgentConfig::listen},
    Key{"allow_uids", "Who may connect to the socket, besides root. Empty: whom its mode lets.",
        &AgentConfig::allow_uids, 0, 4294967294.0},
    Key{"sbxd_socket",
        "Where sbxd listens. Empty: the variable SBX_SOCKET, /run/sbx/sbxd.sock,\n"
        "$XDG_RUNTIME_DIR/sbx/sbxd.sock, the first that is there.",
        &AgentConfig::sbxd_socket},
    Key{"state_dir",
        "Ledger, history and artifacts. Empty: /var/lib/agentd as root, else\n"
        "$XDG_STATE_HOME/agentd.",
        &AgentConfig::state_dir},
    Key{"max_running", "Requests that are worked on at once.", &AgentConfig::max_running, 1, 1000},
    Key{"max_queued", "Requests that wait for their turn; more are refused (429).",
        &AgentConfig::max_queued, 0, 100'000},
    Key{"history_max", "Requests that are remembered; the oldest go first, with their artifacts.",
        &AgentConfig::history_max, 1, 1'000'000},
    Key{"artifacts_megabytes", "What artifacts may take on the disk, likewise.",
        &AgentConfig::artifacts_megabytes, 1, 1'000'000},
    Key{"drain_seconds", "How long requests may go on after SIGTERM, before they are cancelled.",
        &AgentConfig::drain_seconds, 0, kDay},
    Key{"log_level",
        "What is logged on stderr: debug, info, warning, error.",
        &AgentConfig::log_level,
        0,
        0,
        {"debug", "info", "warning", "error"}},

    Key{"provider.kind",
        "Who writes the programs: \"openai\" (any server that speaks its chat completions),\n"
        "\"anthropic\", \"replay\" (recordings, no network), or \"auto\": a key that is "
        "configured\n"
        "here, else a server on this machine (Ollama, llama.cpp, vLLM, LM Studio), else replay.",
        &AgentConfig::provider_kind,
        0,
        0,
        {"auto", "openai", "anthropic", "replay"}},
    Key{"provider.base_url",
        "With the version: \"https://api.groq.com/openai/v1\",\n"
        "\"https://api.anthropic.com/v1\".",
        &AgentConfig::base_url},
    Key{"provider.model", "The model's name, as the server knows it.", &AgentConfig::model},
    Key{"provider.api_key_file",
        "A file with the key, readable for agentd alone. At most one of\n"
        "these three.",
        &AgentConfig::api_key_file},
    Key{"provider.api_key_credential", "The name of a systemd credential with the key.",
        &AgentConfig::api_key_credential},
    Key{"provider.api_key_env", "The name of an environment variable with the key.",
        &AgentConfig::api_key_env},
    Key{"provider.price_in",
        "List price in dollars for a million tokens of input. Costs are notional:\n"
        "tokens times these prices.",
        &AgentConfig::price_in, 0, 10'000},
    Key{"provider.price_out", "The same of output.", &AgentConfig::price_out, 0, 10'000},
    Key{"provider.timeout_seconds", "How long one try may take.", &AgentConfig::timeout_seconds,
        0.1, 3600},
    Key{"provider.tries", "How often a busy or failing server is asked, with growing waits.",
        &AgentConfig::tries, 1, 10},
    Key{"provider.max_tokens", "The longest reply.", &AgentConfig::max_tokens, 64, 65'536},
    Key{"provider.temperature", "", &AgentConfig::temperature, 0, 2},
    Key{"provider.stream",
        "Whether replies come in pieces, so that a call can be cut in the middle.",
        &AgentConfig::stream},
    Key{"provider.token_limit_field",
        "What the field with the longest reply is called; some models of\n"
        "OpenAI want max_completion_tokens.",
        &AgentConfig::token_limit_field,
        0,
        0,
        {"max_tokens", "max_completion_tokens"}},
    Key{"provider.recordings",
        "For replay: directories with *.jsonl (bench/README.md). Empty: the demo\n"
        "that is compiled in.",
        &AgentConfig::recordings},

    Key{"prompts.codegen", "The versions of the prompts (prompts/README.md).",
        &AgentConfig::prompt_codegen},
    Key{"prompts.repair", "", &AgentConfig::prompt_repair},
    Key{"prompts.tools", "", &AgentConfig::prompt_tools},

    Key{"budget.attempts",
        "The ceilings of one request; it may ask for less. Replies of the model:",
        &AgentConfig::attempts, 1, 10},
    Key{"budget.tokens", "Tokens in and out, of all replies.", &AgentConfig::tokens, 1,
        100'000'000},
    Key{"budget.cost_usd", "Their cost in dollars.", &AgentConfig::cost_usd, 0.000001, 1'000},
    Key{"budget.sandbox_seconds", "Time in the sandbox, of all runs.",
        &AgentConfig::sandbox_seconds, 1, kDay},
    Key{"budget.wall_seconds", "Time in all.", &AgentConfig::wall_seconds, 2, kDay},
    Key{"budget.run_seconds", "Time of one run.", &AgentConfig::run_seconds, 1, kDay},
};

const Key* find_key(std::string_view path) {
  const auto* key =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& each) { return each.path == path; });
  return key == kKeys.end() ? nullptr : key;
}

// Reads one value into one member; the overload is chosen by the member's type.
struct Reader {
  AgentConfig& config;
  const Key& key;
  const TomlValue& value;
  std::string_view origin;

  [[nodiscard]] Result<double> number(const TomlValue& item) const {
    if (item.kind != TomlKind::kInteger) {
      SBX_TRY(sbx::check_kind(origin, item, TomlKind::kFloat));
    }
    const double read = std::strtod(item.text.c_str(), nullptr);
    if (!(read >= key.min && read <= key.max)) {  // NaN as well
      return sbx::toml_error(
          origin, item,
          fmt::format("{} is out of range: {:.15g} to {:.15g}", item.text, key.min, key.max));
    }
    return read;
  }
  [[nodiscard]] Result<std::string> string(const TomlValue& item) const {
    SBX_TRY(sbx::check_kind(origin, item, TomlKind::kString));
    if (item.text.find_first_of(std::string_view("\n\r\0", 3)) != std::string::npos) {
      return sbx::toml_error(origin, item, "must be one line");
    }
    if (key.allowed.size() > 0 &&
        std::find(key.allowed.begin(), key.allowed.end(), item.text) == key.allowed.end()) {
      return sbx::toml_error(origin, item,
                             fmt::format("must be one of {}", fmt::join(key.allowed, ", ")));
    }
    return item.text;
  }

  Result<void> operator()(std::string AgentConfig::* member) const {
    SBX_ASSIGN(config.*member, string(value));
    return {};
  }
  Result<void> operator()(std::uint32_t AgentConfig::* member) const {
    SBX_TRY(sbx::check_kind(origin, value, TomlKind::kInteger));
    SBX_ASSIGN(const double read, number(value));
    config.*member = static_cast<std::uint32_t>(read);
    return {};
  }
  Result<void> operator()(double AgentConfig::* member) const {
    SBX_ASSIGN(config.*member, number(value));
    return {};
  }
  Result<void> operator()(bool AgentConfig::* member) const {
    SBX_TRY(sbx::check_kind(origin, value, TomlKind::kBool));
    config.*member = value.text == "true";
    return {};
  }
  Result<void> operator()(std::vector<std::string> AgentConfig::* member) const {
    SBX_TRY(sbx::check_kind(origin, value, TomlKind::kArray));
    (config.*member).clear();
    for (const TomlValue& item : value.items) {
      SBX_ASSIGN(std::string text, string(item));
      (config.*member).push_back(std::move(text));
    }
    return {};
  }
  Result<void> operator()(std::vector<std::uint32_t> AgentConfig::* member) const {
    SBX_TRY(sbx::check_kind(origin, value, TomlKind::kArray));
    (config.*member).clear();
    for (const TomlValue& item : value.items) {
      SBX_TRY(sbx::check_kind(origin, item, TomlKind::kInteger));
      SBX_ASSIGN(const double read, number(item));
      (config.*member).push_back(static_cast<std::uint32_t>(read));
    }
    return {};
  }
};

// The value as the template shows it.
struct Writer {
  const AgentConfig& config;

  static std::string quoted(const std::string& text) { return fmt::format("\"{}\"", text); }
  std::string operator()(std::string AgentConfig::* member) const { return quoted(config.*member); }
  std::string operator()(std::uint32_t AgentConfig::* member) const {
    return std::to_string(config.*member);
  }
  std::string operator()(double AgentConfig::* member) const {
    return fmt::format("{}", config.*member);
  }
  std::string operator()(bool AgentConfig::* member) const {
    return config.*member ? "true" : "false";
  }
  std::string operator()(std::vector<std::string> AgentConfig::* member) const {
    std::vector<std::string> items;
    for (const std::string& item : config.*member) items.push_back(quoted(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
  std::string operator()(std::vector<std::uint32_t> AgentConfig::* member) const {
    return fmt::format("[{}]", fmt::join(config.*member, ", "));
  }
};

Result<void> read_table(AgentConfig& config, const TomlValue& table, std::string_view origin) {
  for (const TomlValue& item : table.items) {
    if (const Key* key = find_key(item.path)) {
      SBX_TRY(std::visit(Reader{config, *key, item, origin}, key->member));
      continue;
    }
    const std::string prefix = item.path + ".";
    const bool is_group = std::any_of(
        kKeys.begin(), kKeys.end(), [&](const Key& each) { return each.path.starts_with(prefix); });
    if (!is_group) return sbx::toml_error(origin, item, "unknown key");
    SBX_TRY(sbx::check_kind(origin, item, TomlKind::kTable));
    SBX_TRY(read_table(config, item, origin));
  }
  return {};
}

Result<void> check_provider(const AgentConfig& config, const KeyLines& lines) {
  const bool live = config.provider_kind == "openai" || config.provider_kind == "anthropic";
  const bool has_key = !set_key_field(config).empty();
  if ((live || (has_key && config.provider_kind == "auto")) &&
      (config.base_url.empty() || config.model.empty())) {
    return lines.error("provider", "base_url and model must be given");
  }
  const bool https = config.base_url.starts_with("https://");
  const bool http = config.base_url.starts_with("http://");
  if (!config.base_url.empty() && !https && !http) {
    return lines.error(kBaseUrl, "must begin with https:// or http://");
  }
  // SECURITY: the base URL is shown, in /v1/info and in errors, and no error shows what is wrong
  // with it here.
  if (config.base_url.find_first_of("@?#") != std::string::npos) {
    return lines.error(kBaseUrl, "must hold no user, password, query or fragment",
                       "a key belongs into api_key_file, api_key_credential or api_key_env");
  }
  // SECURITY: a key in the clear is a key given away.
  if (has_key && http && !is_loopback_url(config.base_url)) {
    return lines.error(kBaseUrl, "a key would be sent unencrypted to " + config.base_url,
                       "use https://, or a server on this machine");
  }
  return {};
}

Result<void> check_paths(const AgentConfig& config, const KeyLines& lines) {
  for (const auto& [name, path] :
       {std::pair("socket", &config.socket), std::pair("sbxd_socket", &config.sbxd_socket),
        std::pair("state_dir", &config.state_dir)}) {
    if (path->empty() || path->front() == '/') continue;
    return lines.error(name, "must be an absolute path, or empty");
  }
  return {};
}

}  // namespace

bool is_loopback_url(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return false;
  std::string_view host = url.substr(kScheme.size());
  host = host.substr(0, host.find_first_of("/?#"));
  if (host.find('@') != std::string_view::npos) return false;
  if (host.starts_with("[::1]")) return host.size() == 5 || host[5] == ':';
  host = host.substr(0, host.find(':'));
  return host == "localhost" || host == "127.0.0.1";
}

Result<AgentConfig> load_config(const std::string& path, KeyLines* lines) {
  SBX_ASSIGN(const auto file, sbx::find_config_file(path, "agentd.toml"));
  if (!file) return AgentConfig{};
  return parse_config(file->text, file->path, lines);
}

Result<AgentConfig> parse_config(std::string_view text, std::string_view origin, KeyLines* lines) {
  SBX_ASSIGN(const TomlValue root, sbx::parse_toml(text, origin));
  AgentConfig config;
  SBX_TRY(read_table(config, root, origin));
  const KeyLines places(root, origin);
  for (const auto& check : {check_key_fields, check_provider, check_paths}) {
    SBX_TRY(check(config, places));
  }
  if (lines != nullptr) *lines = places;
  return config;
}

std::string config_template() {
  sbx::ConfigTemplate file(
      "agentd reads this file from /etc/sbx/agentd.toml, else from "
      "$XDG_CONFIG_HOME/sbx/agentd.toml.\nThese are the defaults.");
  const AgentConfig defaults;
  for (const Key& key : kKeys) {
    file.add(key.path, key.comment, std::visit(Writer{defaults}, key.member));
  }
  return file.text();
}

}  // namespace agentd::config
