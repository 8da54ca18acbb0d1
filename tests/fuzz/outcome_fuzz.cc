// Whatever a program printed and whichever calls it made, up to the result: one JSON document in
// UTF-8, lines that are safe on a terminal, and a learned profile that parses.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/escape.h"
#include "runtime/cli/report.h"
#include "runtime/collect/make_outcome.h"
#include "runtime/policy/language.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/profile.h"
#include "tests/fuzz/entry.h"
#include "tests/support/rendered_path.h"

namespace {

using sbx::fuzz::require;

sbx::supervise::Captured captured(sbx::fuzz::Bytes& input) {
  sbx::supervise::Captured text;
  text.dropped = input.value<std::uint16_t>();
  text.head = input.take(input.value<std::uint16_t>() % 1024);
  if (text.dropped > 0) text.tail = input.take(input.byte());
  text.total = text.head.size() + text.dropped + text.tail.size();
  return text;
}

// Each call once, as the supervision counts them.
void add_denied(sbx::supervise::Ending& ending, const sbx::supervise::SeenCall& call) {
  for (const sbx::supervise::SeenCall& other : ending.denied) {
    if (other.arch == call.arch && other.nr == call.nr) return;
  }
  ending.denied.push_back(call);
}

sbx::supervise::Ending make_ending(sbx::fuzz::Bytes& input) {
  sbx::supervise::Ending ending;
  const std::uint8_t flags = input.byte();
  ending.exec_reached = (flags & 1) == 0;
  ending.wall_expired = (flags & 2) != 0;
  ending.background_killed = (flags & 4) != 0;
  ending.payload_wait_status = input.value<std::uint16_t>();
  if ((flags & 8) != 0) ending.hostile = input.value<sbx::supervise::SeenCall>();
  for (int calls = flags >> 5; calls > 0; --calls) {
    add_denied(ending, input.value<sbx::supervise::SeenCall>());
  }
  ending.err = captured(input);
  ending.out = captured(input);
  return ending;
}

void require_safe(const sbx::cli::Lines& lines) {
  for (const std::string& line : lines) {
    require(sbx::escape_for_terminal(line) == line);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  fuzz::Bytes input(data, size);
  const supervise::Ending ending = make_ending(input);
  collect::OutcomeContext context;
  context.missing_module_pattern = policy::find_language("python")->missing_module_pattern;
  const collect::Outcome outcome = collect::make_outcome(ending, std::move(context));
  const std::string json = collect::to_json(outcome);
  require(test::is_utf8(json) && nlohmann::json::accept(json));
  require_safe(cli::outcome_lines(outcome, false));
  static const std::string judge = *policy::profile_source("judge");
  const std::string learned = cli::learn_profile(outcome, judge);
  require_safe(cli::learn_lines(outcome, learned));
  require(!learned.starts_with("# no profile is made"));
  require(learned.find("allow = ") == std::string::npos ||
          policy::parse_policy(learned, "learned"));
  return 0;
}
