// sbx-run selftest: attacks this host's own sandbox in the default profile, and scores it.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/cli/probe_program.h"
#include "runtime/cli/report.h"
#include "runtime/cli/request.h"
#include "runtime/cli/selftest_cases.h"
#include "runtime/cli/selftest_control.h"
#include "runtime/cli/verbs.h"
#include "runtime/cli/write_out.h"
#include "runtime/plan/image.h"
#include "runtime/sandbox.h"

namespace sbx::cli {
namespace {

using namespace std::string_literals;

struct CaseResult {
  const AttackCase* attack = nullptr;
  CaseState state = CaseState::kFail;
  std::string inside;
  std::string control;
};

// Files below /input are executable.
plan::Request probe_request(const AttackCase& attack, const std::string& argument) {
  plan::Request request;
  const auto program = probe_program();
  request.files.push_back(
      {"sbx-probe", std::string(reinterpret_cast<const char*>(program.data()), program.size())});
  request.argv = {"/input/sbx-probe", std::string(attack.act), argument};
  return request;
}

Observation observe_inside(Sandbox& sandbox, const AttackCase& attack,
                           const std::string& argument) {
  RunHooks hooks;
  hooks.collect = collect::CollectMode::kNone;
  const Result<collect::Outcome> outcome = sandbox.run(probe_request(attack, argument), hooks);
  if (outcome) return observe(*outcome);
  Observation seen;
  seen.trouble = to_string(outcome.error());
  return seen;
}

// What nothing inside may read of the caller. An image that is kept in his home shows where it
// lies.
std::vector<std::string> callers_words(const plan::Image& image,
                                       const policy::RuntimeConfig& config) {
  std::vector<std::string> words;
  const char* const home = std::getenv("HOME");
  if (home != nullptr && std::string_view(home).size() > 1) words.push_back(home + "/"s);
  if (!config.runtime_dir.empty()) words.push_back(config.runtime_dir + "/");
  std::erase_if(words, [&](const std::string& word) { return image.rootfs.starts_with(word); });
  return words;
}

Result<std::vector<CaseResult>> run_cases(const Arguments& arguments) {
  SandboxOptions options;
  SBX_ASSIGN(options.config, policy::load_runtime_config());
  SBX_ASSIGN(options.policy, make_policy(arguments));
  options.rootfs = arguments.rootfs;
  SBX_ASSIGN(const plan::Image image, plan::find_image(options.rootfs, options.config));
  const std::vector<std::string> words = callers_words(image, options.config);
  SBX_ASSIGN(Sandbox sandbox, Sandbox::open(std::move(options)));
  SBX_ASSIGN(const ControlGround ground, ControlGround::prepare(words));
  std::vector<CaseResult> results;
  for (const AttackCase& attack : attack_cases()) {
    const Observation inside = observe_inside(sandbox, attack, ground.resolve(attack.argument));
    const std::optional<Observation> control = run_control(attack, ground);
    results.push_back({&attack, judge(attack, inside, control), describe(inside),
                       control ? describe(*control) : "needs root"});
  }
  return results;
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
    text += fmt::format(kRow, case_state_name(result.state),
                        attack_class_name(result.attack->attack_class), result.attack->name,
                        result.attack->layer, cell(result.inside), cell(result.control));
  }
  const Score score = score_of(results);
  return text + fmt::format("score: {} of {}, {} not applicable here\n", score.passed,
                            score.applicable, results.size() - score.applicable);
}

std::string to_json_text(const std::vector<CaseResult>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const CaseResult& result : results) {
    list.push_back({{"class", attack_class_name(result.attack->attack_class)},
                    {"name", result.attack->name},
                    {"layer", result.attack->layer},
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
  const Result<std::vector<CaseResult>> results = run_cases(arguments);
  if (!results) {
    print_lines(error_lines(results.error()));
    return results.error().code == ErrorCode::kInvalid ? kExitUsage : kExitSandboxError;
  }
  const std::string text = arguments.json ? to_json_text(*results) : to_table(*results);
  if (!write_out(STDOUT_FILENO, text)) return kExitSandboxError;
  return score_of(*results).good() ? 0 : 1;
}

}  // namespace sbx::cli
