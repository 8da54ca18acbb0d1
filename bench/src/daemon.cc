// sbx-bench-daemon: starts an sbxd of its own for each part that was asked for, and measures it.
//
// Exit: 0 all as wanted; 1 not so; 2 usage; 77 this host cannot run sbxd for that caller.
#include "bench/src/daemon.h"

#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <climits>
#include <exception>
#include <fstream>
#include <optional>
#include <string_view>

#include "bench/src/noise.h"

namespace sbx::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kUsage =
    "usage: sbx-bench-daemon [--rounds N] [--runs N] [--requests N] [--connections N] [--count N]\n"
    "         [--kills N] [--as-user] [--json FILE] [latency|flat|load|sleepers|kills]...\n";
constexpr int kSkipped = 77;

struct Part {
  std::string_view name;
  DaemonPart run;
  const char* config;
};
constexpr Part kParts[] = {
    {"latency", daemon_latency, ""},
    {"flat", daemon_flat, ""},
    {"load", daemon_load, ""},
    {"sleepers", daemon_sleepers,
     "max_running = 2000\nmemory_budget = \"64G\"\nmax_connections = 4000\n"
     "max_connections_per_peer = 4000\n"},
    {"kills", daemon_kills, ""},
};

struct Command {
  DaemonOptions options;
  bool as_user = false;
  std::string json;
  std::vector<Part> parts;
};

template <typename T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool set_option(Command& command, std::string_view name, std::string_view value) {
  DaemonOptions& options = command.options;
  if (name == "--rounds") return read_number(value, options.rounds);
  if (name == "--runs") return read_number(value, options.runs);
  if (name == "--requests") return read_number(value, options.requests);
  if (name == "--connections") return read_number(value, options.connections);
  if (name == "--count") return read_number(value, options.count);
  if (name == "--kills") return read_number(value, options.kills);
  if (name == "--json") command.json = value;
  return name == "--json";
}

std::optional<Command> parse(int argc, char** argv) {
  Command command;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    bool known = word == "--as-user";
    command.as_user = command.as_user || known;
    for (const Part& part : kParts) {
      if (part.name != word) continue;
      command.parts.push_back(part);
      known = true;
    }
    if (!known && (i + 1 == argc || !set_option(command, word, argv[++i]))) return std::nullopt;
  }
  if (command.parts.empty()) command.parts.assign(std::begin(kParts), std::end(kParts));
  return command;
}

std::string own_directory() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string self(path, size > 0 ? static_cast<std::size_t>(size) : 0);
  return self.substr(0, self.rfind('/'));
}

int run(Command command) {
  command.options.programs = own_directory();
  const Machine machine = read_machine();
  Json json = {{"kernel", machine.kernel}, {"cpu", machine.cpu}, {"load_average", read_load()}};
  bool good = true;
  for (const Part& part : command.parts) {
    fmt::print("## {}\n\n", part.name);
    test::DaemonGround ground(command.as_user ? test::Caller::kUser : test::Caller::kSelf);
    if (!ground.trouble().empty()) {
      fmt::print(stderr, "daemon: {}\n", ground.trouble());
      return kSkipped;
    }
    if (!ground.start(part.config)) {
      fmt::print(stderr, "daemon: sbxd does not start:\n{}", ground.log());
      return kSkipped;
    }
    good = part.run(ground, command.options, json) && good;
    (void)ground.stop();
    fmt::print("\n");
  }
  fmt::print("{}, {} CPUs, Linux {}, load {:.1f} before\n", machine.cpu, machine.cpus,
             machine.kernel, json["load_average"].get<double>());
  json["ok"] = good;
  if (!command.json.empty()) std::ofstream(command.json) << json.dump(2) << "\n";
  return good ? 0 : 1;
}

}  // namespace
}  // namespace sbx::bench

int main(int argc, char** argv) {
  try {
    auto command = sbx::bench::parse(argc, argv);
    if (command) return sbx::bench::run(*std::move(command));
    (void)std::fputs(sbx::bench::kUsage, stderr);
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "daemon: {}\n", error.what());
    return 1;
  }
}
