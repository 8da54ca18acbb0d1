#include "agentd/render/record_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "agentd/render/display_width.h"
#include "agentd/render/json_view.h"
#include "agentd/render/text_table.h"
#include "runtime/base/escape.h"

namespace agentd::render {
namespace {

using Json = nlohmann::ordered_json;
using sbx::escape_for_terminal;
using sbx::Keep;

std::string with_line_end(std::string text) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

std::string money(double dollars) {
  return dollars == 0 ? "$0" : fmt::format("${:.5f}", dollars);
}

// "2026-01-02T03:04:05.678Z" without the fraction.
std::string whole_seconds(const std::string& time) {
  constexpr std::size_t kUntilTheFraction = 19;
  if (time.size() <= kUntilTheFraction) return time;
  const bool utc = time.ends_with('Z');
  return time.substr(0, kUntilTheFraction) + (utc ? "Z" : "");
}

std::string body_text(const Json& result) {
  const std::string type = text_at(result, "type");
  const Json& data = member(result, "data");
  if (type == "table" && data.is_object()) return draw_table(data);
  if ((type == "text" || type == "raw") && data.is_string()) {
    return with_line_end(escape_for_terminal(data.get<std::string>(), Keep::kNewlinesAndTabs));
  }
  return {};
}

std::string word_of(const std::string& outcome) {
  if (outcome == "passed" || outcome == "done") return "ok";
  return outcome == "not_run" ? "not run" : outcome;
}

// Of the run that the files of the result are from: the last one that ended well; with tools, of
// those that left files, or else of those whose files were all refused.
const Json& refused_in_result(const Json& record) {
  static const Json kNone = Json::array();
  const Json* last = &kNone;
  bool with_files = false;
  const auto look_at = [&last](const Json& run) {
    if (text_at(run, "status") == "ok") last = &member(run, "refused");
  };
  if (!member(record, "result").is_object()) return kNone;
  for (const Json& attempt : member(record, "attempts")) {
    look_at(member(attempt, "run"));
    for (const Json& use : member(attempt, "tools")) {
      const Json& run = member(use, "run");
      const bool has_files = !member(run, "files").empty();
      if (!has_files && (with_files || member(run, "refused").empty())) continue;
      with_files = with_files || has_files;
      look_at(run);
    }
  }
  return *last;
}

std::string attempt_line(const Json& attempt) {
  const std::string failure = text_at(attempt, "class");
  const std::string outcome = text_at(attempt, "outcome");
  std::string line =
      fmt::format("  {} {:<9} {:6.1f} s  {:>6.0f} tokens  {}", number_at(attempt, "n"),
                  escape_for_terminal(failure.empty() ? word_of(outcome) : failure),
                  number_at(attempt, "seconds"),
                  number_at(member(attempt, "tokens"), "input") +
                      number_at(member(attempt, "tokens"), "output"),
                  money(number_at(attempt, "cost_usd")));
  const std::string detail = text_at(member(attempt, "error"), "detail");
  if (!detail.empty()) line += "  " + cut_to_width(escape_for_terminal(detail), 100);
  return line + '\n';
}

}  // namespace

bool is_under_way(std::string_view state) {
  constexpr std::array<std::string_view, 6> kWorking = {"queued",   "generate", "execute",
                                                        "evaluate", "repair",   "give_up"};
  return std::find(kWorking.begin(), kWorking.end(), state) != kWorking.end();
}

std::string result_text(const Json& record) {
  const Json& result = member(record, "result");
  std::string text;
  if (const std::string banner = text_at(result, "banner"); !banner.empty()) {
    text += "[" + escape_for_terminal(banner) + "]\n";
  }
  text += body_text(result);
  if (const std::string note = text_at(result, "note"); !note.empty()) {
    text += with_line_end(escape_for_terminal(note, Keep::kNewlinesAndTabs));
  }
  return text;
}

std::string left_out(const Json& record) {
  constexpr std::size_t kNamed = 3;
  std::size_t count = 0;
  std::string named;
  std::string unlisted;  // the sandbox names no more, and says how many they are
  for (const Json& entry : refused_in_result(record)) {
    const std::string path = text_at(entry, "path");
    const std::string reason = escape_for_terminal(text_at(entry, "reason"));
    if (path == ".") {
      unlisted += "; " + reason;
    } else if (++count <= kNamed) {
      named += fmt::format("; {}: {}", cut_to_width(escape_for_terminal(path), 60), reason);
    }
  }
  if (count > kNamed) named += "; … (--json names each)";
  if (count > 0) named = fmt::format("; {} of /output: {}", count, named.substr(2));
  const std::string all = named + unlisted;
  return all.empty() ? all : fmt::format("left out: {}\n", all.substr(2));
}

std::string attempt_lines(const Json& record) {
  std::string text;
  for (const Json& attempt : member(record, "attempts")) text += attempt_line(attempt);
  return text;
}

std::string footer(const Json& record) {
  const Json& provider = member(record, "provider");
  const auto attempts = static_cast<int>(member(record, "attempts").size());
  std::string text = fmt::format(
      "{} attempt{} · {:.1f} s · {} ({}) · provider: {}{}\n", attempts, attempts == 1 ? "" : "s",
      number_at(record, "wall_seconds"), money(number_at(record, "cost_usd")),
      escape_for_terminal(text_at(record, "cost_basis")),
      escape_for_terminal(text_at(provider, "kind")),
      flag_at(provider, "replayed") ? std::string(", recorded")
                                    : " " + escape_for_terminal(text_at(provider, "model")));
  if (const std::string id = text_at(record, "id"); !id.empty()) {
    text.insert(text.size() - 1, " · " + escape_for_terminal(id));
  }
  const std::string state = text_at(record, "state");
  if (is_under_way(state)) {
    text += state + ": it is under way; show it again later\n";
  } else if (state != "succeeded") {
    text += escape_for_terminal(state) + ": " +
            escape_for_terminal(text_at(member(record, "reason"), "text")) + '\n';
  }
  return text;
}

std::string provider_line(const Json& info) {
  const Json& provider = member(info, "provider");
  const std::string kind = escape_for_terminal(text_at(provider, "kind"));
  const std::string origin = escape_for_terminal(text_at(provider, "origin"));
  if (flag_at(provider, "replayed")) {
    return fmt::format("provider: {} (recorded replies of {}; no model is asked)\n", kind, origin);
  }
  return fmt::format("provider: {} ({} at {})\n", kind,
                     escape_for_terminal(text_at(provider, "model")), origin);
}

std::string history_lines(const Json& page) {
  std::string text;
  for (const Json& each : member(page, "requests")) {
    const std::string what = escape_for_terminal(text_at(each, "text"));
    text += fmt::format(
        "{}  {:<20}  {:<9}  {:>2}  {:>9}  {}\n", escape_for_terminal(text_at(each, "id")),
        escape_for_terminal(whole_seconds(text_at(each, "created_at"))),
        escape_for_terminal(text_at(each, "state")), number_at(each, "attempts_made"),
        money(number_at(each, "cost_usd")), cut_to_width(what, 60));
  }
  return text;
}

}  // namespace agentd::render
