#include "runtime/cli/report.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "runtime/base/escape.h"
#include "runtime/cli/write_out.h"
#include "runtime/policy/limits.h"
#include "runtime/policy/policy.h"
#include "runtime/policy/profile_parts.h"

namespace sbx::cli {
namespace {

using collect::Outcome;
using collect::Status;

std::string shown(std::string_view text) {
  return escape_for_terminal(text);
}

// One sentence for an ending that no note explained.
std::string ending_line(const Outcome& outcome) {
  switch (outcome.status) {
    case Status::kSignal: {
      const int number = outcome.signal.value_or(0);
      const char* const name = ::sigabbrev_np(number);
      return fmt::format("the program was ended by signal {} (SIG{})", number,
                         name == nullptr ? "?" : name);
    }
    case Status::kCancelled:
      return "cancelled";
    case Status::kSandboxError:
      return "the sandbox failed";
    case Status::kOk:
    case Status::kExit:
      return {};  // the program's own business
    default:
      return fmt::format("ended by the sandbox: {}", collect::status_name(outcome.status));
  }
}

// Notes for a run that went wrong; in one that did not, only what was lost is worth a line.
bool note_matters(const Outcome& outcome, const collect::Note& note) {
  if (note.code == "output_cut") return false;  // cut_line says it where the cut is
  if (outcome.ok()) return note.code == "background_killed";
  return true;
}

void add_ending(const Outcome& outcome, Lines& lines) {
  if (outcome.error) {
    const collect::ErrorInfo& error = *outcome.error;
    std::string text = "sandbox error";
    if (!error.step.empty()) text += ": " + error.step;
    if (!error.detail.empty()) text += ": " + error.detail;
    if (error.sys_errno != 0) text += std::string(": ") + std::strerror(error.sys_errno);
    lines.push_back(shown(text));
    if (!error.fix.empty()) lines.push_back("fix: " + shown(error.fix));
  }
  bool explained = outcome.error.has_value();
  for (const collect::Note& note : outcome.notes) {
    if (!note_matters(outcome, note)) continue;
    lines.push_back(shown(note.text));
    explained = explained || note.source == "kernel";
  }
  if (std::string line = ending_line(outcome); !explained && !line.empty()) {
    lines.push_back(std::move(line));
  }
}

// An isolation that a flag weakened is said every time.
void add_layers(const Outcome& outcome, Lines& lines) {
  for (const policy::LayerReport& report : outcome.layers) {
    const auto layer = policy::layer_from_name(report.name);
    const bool weak =
        report.state == policy::LayerState::kOff ||
        (report.state != policy::LayerState::kHeld && layer && policy::layer_required(*layer));
    if (!weak) continue;
    std::string line =
        fmt::format("layer {} was {}", report.name, policy::layer_state_name(report.state));
    if (!report.detail.empty()) line += ": " + shown(report.detail);
    lines.push_back(std::move(line));
  }
}

// How many entries are named one by one before the others of their kind are counted.
constexpr std::size_t kNamed = 10;

// Lines about files: the first few of each kind, then one with the number of the others.
class FileLines {
 public:
  explicit FileLines(Lines& lines) : lines_(lines) {}
  // `kind` reads as the end of "not saved: 7 more".
  void add(const std::string& kind, std::string line) {
    if (++counts_[kind] <= kNamed) lines_.push_back(std::move(line));
  }
  void add_counts(std::string_view what) {
    for (const auto& [kind, count] : std::exchange(counts_, {})) {
      if (count > kNamed)
        lines_.push_back(fmt::format("{}: {} more{}", what, count - kNamed, kind));
    }
  }

 private:
  Lines& lines_;
  std::map<std::string, std::size_t> counts_;
};

// Without the size in front, which differs from file to file ("12 bytes, over the limit of …").
std::string kind_of(const std::string& reason) {
  const std::size_t end = reason.find_first_not_of("0123456789");
  constexpr std::string_view kBytes = " bytes, ";
  const bool is_size = end != 0 && reason.compare(end, kBytes.size(), kBytes) == 0;
  return ": " + shown(is_size ? reason.substr(end + kBytes.size()) : reason);
}

void add_files(const Outcome& outcome, bool saving, Lines& lines) {
  FileLines files(lines);
  for (const collect::CollectedFile& file : outcome.files) {
    const bool saved = !file.saved_as.empty();
    files.add("", fmt::format("{} {} ({} bytes)", saved ? "saved" : "not saved:",
                              shown(saved ? file.saved_as : "/output/" + file.path), file.size));
  }
  files.add_counts(saving ? "saved" : "not saved");
  if (!saving && !outcome.files.empty()) {
    lines.push_back("to keep what is in /output: --output-dir DIR");
  }
  for (const collect::RefusedEntry& entry : outcome.refused) {
    files.add(kind_of(entry.reason),
              fmt::format("not saved: /output/{}: {}", shown(entry.path), shown(entry.reason)));
  }
  files.add_counts("not saved");
}

// What the profile itself takes away is its author's decision.
std::string why_not_offered(const std::string& syscall, const policy::ProfileParts& profile) {
  const auto& denied = profile.deny;
  const bool is_own = std::any_of(denied.begin(), denied.end(),
                                  [&](const auto& each) { return each.first == syscall; });
  if (is_own) return fmt::format("the profile {} denies it", profile.name);
  return policy::risk_of_opening(syscall);
}

}  // namespace

std::string cut_line(std::string_view stream, std::uint64_t dropped, std::uint64_t limit) {
  return fmt::format("{}: {} bytes were dropped here, in the middle; {} are kept", stream, dropped,
                     policy::size_text(limit));
}

Lines outcome_lines(const Outcome& outcome, bool saving) {
  Lines lines;
  add_ending(outcome, lines);
  add_layers(outcome, lines);
  add_files(outcome, saving, lines);
  return lines;
}

Lines lowered_lines(const policy::Limits& wanted, const policy::Limits& applied) {
  Lines lines;
  for (const policy::LimitField& field : policy::limit_fields()) {
    if (!policy::limit_is_above(wanted, applied, field.name)) continue;
    lines.push_back(
        fmt::format("{} was lowered from {} to {}, the ceiling of this host or of "
                    "runtime.toml",
                    field.name, policy::limit_text(wanted, field.name),
                    policy::limit_text(applied, field.name)));
  }
  return lines;
}

Lines loosened_lines(const policy::Policy& policy) {
  const std::string loosening = policy::loosening_text(policy.seccomp);
  if (loosening.empty()) return {};
  return {
      fmt::format("layer seccomp was loosened by the profile {}: {}", policy.profile, loosening)};
}

Lines learn_lines(const Outcome& outcome, std::string_view learned) {
  Lines lines;
  for (const collect::Denial& denial : outcome.denials) {
    lines.push_back(fmt::format("denied: {} ({}), {}{}x", shown(denial.syscall), denial.tier,
                                denial.at_least ? "at least " : "", denial.count));
  }
  if (outcome.denials_unlisted > 0) {
    lines.push_back(fmt::format("denied: {} calls more, of numbers that are not listed",
                                outcome.denials_unlisted));
  }
  if (lines.empty()) return {"no system call was denied"};
  if (learned.find("allow = ") != std::string_view::npos) {
    lines.emplace_back(
        "a profile that allows those that are safe to allow, for --profile FILE.toml:");
  }
  return lines;
}

std::string learn_profile(const Outcome& outcome, std::string_view profile) {
  auto parts = policy::profile_parts(profile);
  if (!parts) return fmt::format("# no profile is made: {}\n", shown(to_string(parts.error())));
  std::string left_out;
  std::size_t offered = 0;
  for (const collect::Denial& denial : outcome.denials) {
    // A foreign ABI or a number without a name ("x32:open", "syscall_600") cannot be allowed.
    const bool nameable =
        denial.syscall.find(':') == std::string::npos && denial.syscall.rfind("syscall_", 0) != 0;
    if (denial.tier == "hostile" || !nameable) continue;
    if (const std::string why = why_not_offered(denial.syscall, *parts); !why.empty()) {
      left_out += fmt::format("# {} is not offered, because {}\n", shown(denial.syscall), why);
      continue;
    }
    parts->allow.push_back(denial.syscall);
    ++offered;
  }
  if (offered == 0) return left_out;
  parts->description = fmt::format("The {} profile, and what one program was denied", parts->name);
  parts->name = "learned";
  return policy::profile_text(*parts, left_out);
}

Lines error_lines(const Error& error) {
  Lines lines{shown(to_string(error))};
  if (!error.fix.empty()) lines.push_back("fix: " + shown(error.fix));
  return lines;
}

void print_lines(const Lines& lines, bool new_line) {
  std::string text;
  if (new_line && !lines.empty()) text += '\n';
  for (const std::string& line : lines) text += "sbx-run: " + line + "\n";
  if (!text.empty()) (void)write_out(STDERR_FILENO, text);  // nowhere left to say that it failed
}

}  // namespace sbx::cli
