// sbx-bench-soak: the long form of the soak test, and what was there before and after it.
// bench/soak builds and runs it; README.md says what it prints.
//
// Exit: 0 each run ended as it must and nothing is left; 1 not so; 2 usage; 77 this host cannot run
// a sandbox for that caller.
#include <fmt/core.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string_view>

#include "bench/src/noise.h"
#include "tests/integration/fixture.h"
#include "tests/integration/soak.h"

namespace sbx::bench {
namespace {

using nlohmann::ordered_json;
using test::Things;

constexpr const char* kUsage =
    "usage: sbx-bench-soak [--runs N] [--killed N] [--at-once N] [--seed N] [--as-user] "
    "[--json FILE]\n";
constexpr int kSkipped = 77;
constexpr const char* kThings[] = {"process",    "cgroup", "mount", "namespace",
                                   "descriptor", "file",   "key"};
// Of the kernel's own: freed a little later than what they belong to, and rounded up to whole
// slabs.
constexpr const char* kCaches[] = {"net_namespace", "pid_namespace", "user_namespace",
                                   "uts_namespace", "nsproxy"};
constexpr long kMaxGrowth = 200;

struct Options {
  test::SoakOptions soak{.runs = 10'000, .killed = 500};
  bool as_user = false;
  std::string json;
};

template <typename T>
bool read_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number > 0;
}

bool set_option(Options& options, std::string_view name, std::string_view value) {
  if (name == "--runs") return read_number(value, options.soak.runs);
  if (name == "--killed") return read_number(value, options.soak.killed);
  if (name == "--at-once") return read_number(value, options.soak.at_once);
  if (name == "--seed") return read_number(value, options.soak.seed);
  if (name == "--json") options.json = value;
  return name == "--json";
}

std::optional<Options> parse_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--as-user") {
      options.as_user = true;
    } else if (i + 1 == argc || !set_option(options, name, argv[++i])) {
      return std::nullopt;
    }
  }
  if (options.soak.killed >= options.soak.runs) return std::nullopt;
  return options;
}

// How many there are of each kind, by the first word of each line.
std::map<std::string, long> counted(const Things& things) {
  std::map<std::string, long> counts;
  for (const char* const name : kThings) counts[name] = 0;
  for (const std::string& thing : things) ++counts[thing.substr(0, thing.find(' '))];
  return counts;
}

// Objects in use by cache, where the kernel lets us read it (root), and groups that are dying: in
// no directory any more, and still held by pages.
std::map<std::string, long> kernel_objects() {
  std::map<std::string, long> objects;
  std::ifstream slabs("/proc/slabinfo");
  for (std::string line; std::getline(slabs, line);) {
    std::istringstream words(line);
    std::string name;
    long active = 0;
    words >> name >> active;
    if (std::find(std::begin(kCaches), std::end(kCaches), name) != std::end(kCaches)) {
      objects[name] = active;
    }
  }
  std::ifstream groups("/proc/cgroups");
  for (std::string line; std::getline(groups, line);) {
    std::istringstream words(line);
    std::string name;
    long hierarchy = 0;
    long count = 0;
    words >> name >> hierarchy >> count;
    if (name == "memory") objects["memory groups, the dying too"] = count;
  }
  return objects;
}

// One difference in counts.
struct Row {
  std::string name;
  long before = 0;
  long after = 0;
};

std::vector<Row> rows_of(const std::map<std::string, long>& before,
                         const std::map<std::string, long>& after) {
  std::vector<Row> rows;
  for (const auto& [name, count] : after) {
    const auto found = before.find(name);
    rows.push_back({name, found == before.end() ? 0 : found->second, count});
  }
  return rows;
}

ordered_json to_json(const std::vector<Row>& rows) {
  ordered_json json = ordered_json::object();
  for (const Row& row : rows) json[row.name] = {{"before", row.before}, {"after", row.after}};
  return json;
}

void print_rows(const char* title, const std::vector<Row>& rows) {
  std::printf("\n| %s | before | after |\n|---|--:|--:|\n", title);
  for (const Row& row : rows)
    std::printf("| %s | %ld | %ld |\n", row.name.c_str(), row.before, row.after);
}

struct Report {
  test::SoakResult soak;
  std::vector<Row> things;
  std::vector<Row> objects;
  Things left;
  [[nodiscard]] bool is_good() const {
    return soak.unexpected() == 0 && left.empty() &&
           std::all_of(objects.begin(), objects.end(),
                       [](const Row& row) { return row.after - row.before <= kMaxGrowth; });
  }
};

void print_report(const Report& report, const Options& options) {
  const test::SoakResult& soak = report.soak;
  std::printf("%d runs, %d more with sbx-run killed, in %.0f s, %zu at once, seed %u, as %s\n\n",
              soak.finished, soak.killed, soak.seconds, options.soak.at_once, options.soak.seed,
              options.as_user ? "a user" : "the caller");
  std::printf("| kind | runs | not as expected | mean s |\n|---|--:|--:|--:|\n");
  for (const test::SoakKind& kind : soak.kinds) {
    std::printf("| %s | %d | %d | %.3f |\n", kind.name.c_str(), kind.runs, kind.unexpected,
                kind.runs == 0 ? 0 : kind.seconds / kind.runs);
  }
  print_rows("what is there", report.things);
  print_rows("objects of the kernel", report.objects);
  for (const std::string& complaint : soak.complaints) std::printf("\n%s\n", complaint.c_str());
  if (!report.left.empty()) std::printf("\nleft over:\n%s", test::to_text(report.left).c_str());
  std::printf("\n%s\n", report.is_good() ? "nothing is left, and every run ended as it must"
                                         : "FAILED: see above");
}

void write_json(const Report& report, const Options& options) {
  ordered_json kinds = ordered_json::array();
  for (const test::SoakKind& kind : report.soak.kinds) {
    kinds.push_back({{"name", kind.name},
                     {"runs", kind.runs},
                     {"unexpected", kind.unexpected},
                     {"seconds", kind.seconds}});
  }
  const Machine machine = read_machine();
  const ordered_json document = {{"ok", report.is_good()},
                                 {"runs", report.soak.finished},
                                 {"killed", report.soak.killed},
                                 {"seconds", report.soak.seconds},
                                 {"at_once", options.soak.at_once},
                                 {"seed", options.soak.seed},
                                 {"as_user", options.as_user},
                                 {"kinds", kinds},
                                 {"things", to_json(report.things)},
                                 {"kernel_objects", to_json(report.objects)},
                                 {"left", report.left},
                                 {"complaints", report.soak.complaints},
                                 {"kernel", machine.kernel},
                                 {"cpu", machine.cpu}};
  std::ofstream(options.json) << document.dump(2, ' ', false,
                                               ordered_json::error_handler_t::replace)
                              << "\n";
}

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {
    options_.soak.directory = directory_.path();
  }

  int run() {
    if (options_.as_user) user_.emplace();
    if (user_ && !user_->trouble().empty()) {
      std::fprintf(stderr, "soak: %s\n", user_->trouble().c_str());
      return kSkipped;
    }
    const test::Finished first = start({"--", "/bin/true"})->finish();
    if (first.exit_code != 0) {
      std::fprintf(stderr, "soak: this host runs no sandbox: %s", first.err.c_str());
      return kSkipped;
    }
    const Report report = measure();
    print_report(report, options_);
    if (!options_.json.empty()) write_json(report, options_);
    return report.is_good() ? 0 : 1;
  }

 private:
  [[nodiscard]] std::unique_ptr<test::Process> start(std::vector<std::string> words) const {
    words.insert(words.begin(), user_ ? user_->program() : SBX_RUN_PATH);
    return std::make_unique<test::Process>(
        words, user_ ? test::user_options(directory_) : test::ProcessOptions{});
  }

  Report measure() {
    const unsigned uid = user_ ? test::kTestUser : ::geteuid();
    const Things before = test::snapshot(uid);
    const auto objects = kernel_objects();
    const test::LeakCheck check(uid);
    Report report;
    report.soak = test::soak([this](const std::vector<std::string>& words) { return start(words); },
                             options_.soak,
                             [this](int done) {
                               if (done % 1000 == 0)
                                 std::fprintf(stderr, "soak: %d of %d\n", done, options_.soak.runs);
                             });
    // Finds and removes what the dead left.
    (void)start({"--", "/bin/true"})->finish();
    report.left = check.leaked(std::chrono::seconds(10));
    report.things = rows_of(counted(before), counted(test::snapshot(uid)));
    report.objects = rows_of(objects, kernel_objects());
    return report;
  }

  Options options_;
  test::TemporaryDirectory directory_;
  std::optional<test::UserGround> user_;
};

}  // namespace
}  // namespace sbx::bench

int main(int argc, char** argv) {
  try {
    auto options = sbx::bench::parse_options(argc, argv);
    if (!options) {
      (void)std::fputs(sbx::bench::kUsage, stderr);
      return 2;
    }
    return sbx::bench::Bench(*std::move(options)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 1;
  }
}
