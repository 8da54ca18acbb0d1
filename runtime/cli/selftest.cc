// sbx-run selftest: attacks this host's own sandbox, and scores it.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/cli/cancel.h"
#include "runtime/cli/report.h"
#include "runtime/cli/request.h"
#include "runtime/cli/selftest_cases.h"
#include "runtime/cli/selftest_control.h"
#include "runtime/cli/selftest_runs.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/plan/host_facts.h"
#include "runtime/plan/image.h"
#include "runtime/sandbox.h"

namespace sbx::cli {
namespace {

using namespace std::string_literals;

struct CaseResult {
  AttackClass attack_class{};
  std::string_view name, layer;
  CaseState state = CaseState::kFail;
  std::string inside;
  std::string control;
};

Observation observe_inside(Sandbox& sandbox, const AttackCase& attack, const std::string& argument,
                           int cancel_fd) {
  RunHooks hooks;
  hooks.cancel_fd = cancel_fd;
  hooks.collect = collect::CollectMode::kNone;
  const Result<collect::Outcome> outcome = sandbox.run(probe_request(attack.act, argument), hooks);
  if (outcome) return observe(*outcome);
  Observation seen;
  seen.trouble = to_string(outcome.error());
  return seen;
}

// Where each program has a directory of its own; a HOME of /tmp says nothing of the caller.
bool is_inside_too(std::string_view directory) {
  constexpr std::string_view kInside[] = {"/tmp/",  "/work/", "/input/", "/output/",
                                          "/code/", "/dev/",  "/proc/",  "/usr/"};
  return std::find(std::begin(kInside), std::end(kInside), directory) != std::end(kInside);
}

// What nothing inside may read of the caller. An image that is kept in his home shows where it
// lies.
std::vector<std::string> callers_words(const plan::Image& image,
                                       const policy::RuntimeConfig& config) {
  std::vector<std::string> words;
  const char* const home = std::getenv("HOME");
  if (home != nullptr && std::string_view(home).size() > 1) words.push_back(home + "/"s);
  if (!config.runtime_dir.empty()) words.push_back(config.runtime_dir + "/");
  std::erase_if(words, [&](const std::string& word) {
    return image.rootfs.starts_with(word) || is_inside_too(word);
  });
  return words;
}

// A program that does nothing must run to its end: where it cannot, there is nothing to attack.
Result<collect::Outcome> run_nothing(Sandbox& sandbox, int cancel_fd) {
  RunHooks hooks;
  hooks.cancel_fd = cancel_fd;
  hooks.collect = collect::CollectMode::kNone;
  return sandbox.run(probe_request("nothing", ""), hooks);
}

// Until the caller wishes to stop; then what is returned is not all.
std::vector<CaseResult> attack(Sandbox& sandbox, const policy::Policy& policy,
                               const Ceilings& ceilings, const ControlGround& ground,
                               const std::vector<std::string>& missing, int cancel_fd) {
  std::vector<CaseResult> results;
  for (const AttackCase& attack : attack_cases()) {
    if (is_cancelled(cancel_fd)) return results;
    const Observation inside =
        observe_inside(sandbox, attack, ground.resolve(attack.argument), cancel_fd);
    const std::optional<Observation> control = run_control(attack, ground, cancel_fd);
    results.push_back({attack.attack_class, attack.name, attack.layer,
                       judge(attack, inside, control, &policy.seccomp), describe(inside),
                       control ? describe(*control) : "needs root"});
  }
  for (RunCaseResult& result :
       attack_by_runs(sandbox, policy, ceilings, ground, missing, cancel_fd)) {
    const RunCase& attack = *result.attack;
    results.push_back({attack.attack_class, attack.name, attack.layer, result.state,
                       std::move(result.inside), std::move(result.control)});
  }
  return results;
}

// What was attacked, or why there was nothing to attack.
struct Attacked {
  std::vector<CaseResult> results;
  std::optional<collect::Outcome> failed;  // the run of nothing, where that failed
  bool cancelled = false;                  // by the caller: the rest means nothing
};

Result<Attacked> attack_sandbox(const Arguments& arguments, int cancel_fd) {
  SandboxOptions options;
  SBX_ASSIGN(options.config, policy::load_runtime_config());
  SBX_ASSIGN(options.policy, make_policy(arguments));
  options.rootfs = arguments.rootfs;
  SBX_ASSIGN(const plan::Image image, plan::find_image(options.rootfs, options.config));
  const std::vector<std::string> words = callers_words(image, options.config);
  const plan::HostFacts host = plan::read_host_facts(options.config, 0);
  const Ceilings ceilings{options.config, plan::bounds_of_host(host)};
  ceilings.lower(options.policy.limits);  // as open() does: the run cases start from the same
  const policy::Policy policy = options.policy;
  SBX_ASSIGN(Sandbox sandbox, Sandbox::open(std::move(options)));
  SBX_ASSIGN(collect::Outcome nothing, run_nothing(sandbox, cancel_fd));
  if (!nothing.ok()) return Attacked{{}, std::move(nothing), false};
  SBX_ASSIGN(const ControlGround ground, ControlGround::prepare(words));
  return Attacked{
      attack(sandbox, policy, ceilings, ground, missing_layers(nothing), cancel_fd), {}, false};
}

// Everything of it is gone when this returns. Signals are ours only in here.
Result<Attacked> attack_unless_cancelled(const Arguments& arguments) {
  SBX_ASSIGN(CancelSignals signals, CancelSignals::block());
  Result<Attacked> attacked = attack_sandbox(arguments, signals.fd());
  bool cancelled = false;
  while (signals.take()) cancelled = true;
  if (cancelled) return Attacked{{}, {}, true};
  return attacked;
}

std::size_t count(const std::vector<CaseResult>& results, CaseState state) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(),
                    [state](const CaseResult& result) { return result.state == state; }));
}

struct Score {
  std::size_t passed = 0;
  std::size_t applicable = 0;
  [[nodiscard]] bool good() const { return passed == applicable; }
};

Score score_of(const std::vector<CaseResult>& results) {
  return {count(results, CaseState::kPass),
          results.size() - count(results, CaseState::kNotApplicable)};
}

// A cell of the table; JSON has all of it.
std::string cell(std::string_view text) {
  constexpr std::size_t kWidth = 40;
  return text.size() <= kWidth ? std::string(text) : std::string(text.substr(0, kWidth)) + "…";
}

std::string to_table(const std::vector<CaseResult>& results) {
  constexpr auto kRow = "{:<14}  {:<12}  {:<38}  {:<16}  {:<26}  {}\n";
  std::string text =
      fmt::format(kRow, "", "class", "attack", "layer", "inside", "control (outside)");
  for (const CaseResult& result : results) {
    text += fmt::format(kRow, case_state_name(result.state), attack_class_name(result.attack_class),
                        result.name, result.layer, cell(result.inside), cell(result.control));
  }
  const Score score = score_of(results);
  return text + fmt::format("score: {} of {}, {} not applicable here\n", score.passed,
                            score.applicable, results.size() - score.applicable);
}

std::string to_json_text(const std::vector<CaseResult>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const CaseResult& result : results) {
    list.push_back({{"class", attack_class_name(result.attack_class)},
                    {"name", result.name},
                    {"layer", result.layer},
                    {"state", case_state_name(result.state)},
                    {"inside", result.inside},
                    {"control", result.control}});
  }
  const Score score = score_of(results);
  const nlohmann::json document = {{"ok", score.good()},
                                   {"passed", score.passed},
                                   {"applicable", score.applicable},
                                   {"cases", list}};
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

int selftest(const Arguments& arguments) {
  const Result<Attacked> attacked = attack_unless_cancelled(arguments);
  if (attacked && attacked->cancelled) {
    print_lines({"cancelled"});
    return kExitCancelled;
  }
  if (!attacked && attacked.error().code == ErrorCode::kInvalid) {
    print_lines(error_lines(attacked.error()));
    return kExitUsage;
  }
  if (!attacked || attacked->failed) {
    Lines lines{"there is no sandbox to attack: not even a program that does nothing runs here"};
    const Lines why =
        attacked ? outcome_lines(*attacked->failed, false) : error_lines(attacked.error());
    lines.insert(lines.end(), why.begin(), why.end());
    print_lines(lines);
    return kExitSandboxError;
  }
  const std::vector<CaseResult>& results = attacked->results;
  const std::string text = arguments.json ? to_json_text(results) : to_table(results);
  if (!deliver(text)) return kExitSandboxError;
  return score_of(results).good() ? 0 : 1;
}

}  // namespace sbx::cli
