// The body of POST /v1/run, from its bytes to what would be run: a request within the ceilings, or
// a problem of a known code that names no more than it should.
#include <set>
#include <string>
#include <string_view>

#include "runtime/daemon/run_request.h"
#include "tests/fuzz/entry.h"

namespace {

using namespace sbx;

const daemon::RequestRules& rules() {
  static const daemon::RequestRules made = [] {
    daemon::RequestRules all;
    all.profiles.push_back(*policy::load_policy("default"));
    all.profiles.push_back(*policy::load_policy("large"));
    all.ceilings = daemon::effective_ceilings(daemon::default_ceilings(), {},
                                              {.memory = 1024 * policy::kMiB, .cpus = 2});
    return all;
  }();
  return made;
}

void judge(const http::Problem& problem) {
  static const std::set<std::string> codes = {
      "invalid_json",  "duplicate_field",  "unknown_field",  "missing_field",
      "wrong_type",    "body_too_large",   "invalid_value",  "conflicting_fields",
      "above_ceiling", "unknown_language", "unknown_profile"};
  fuzz::require(codes.count(problem.code) == 1);
  fuzz::require(problem.status == 400 || problem.status == 413 || problem.status == 422);
  fuzz::require(!problem.detail.empty() && problem.detail.size() < 1000);
  fuzz::require(problem.field.size() < 1000);
  fuzz::require(!to_response(problem).body.empty());
}

bool is_component(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.size() <= 255 &&
         name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

void judge(const daemon::RunRequest& run) {
  fuzz::require(run.request.language.empty() != run.request.argv.empty());
  for (const std::string_view name : rules().ceilings.names()) {
    fuzz::require(!rules().ceilings.is_above(run.policy.limits, name));
  }
  std::set<std::string> names;
  for (const plan::InputFile& file : run.request.files) {
    fuzz::require(is_component(file.name) && names.insert(file.name).second);
  }
  fuzz::require(run.program_sha256.size() == 64);
  fuzz::require(run.inputs_sha256.empty() == run.request.files.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const auto place : {daemon::RunPlace::kAlone, daemon::RunPlace::kSession}) {
    const auto parsed = daemon::parse_run_request(fuzz::as_text(data, size), rules(), place);
    std::visit([](const auto& outcome) { judge(outcome); }, parsed);
  }
  return 0;
}
