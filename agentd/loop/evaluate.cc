#include "agentd/loop/evaluate.h"

#include <fmt/core.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>
#include <variant>

#include "agentd/redact/quote.h"
#include "runtime/base/scope_exit.h"
#include "runtime/base/utf8.h"

namespace agentd::loop {
namespace {

using prompts::RepairKind;
using redact::Redactor;
using sandbox::Note;
using sandbox::RunResult;

constexpr std::size_t kMaxSearched = 16U << 10;  // of stderr's end, for the pattern
constexpr std::size_t kMaxQuote = 300;
constexpr std::size_t kMaxStdoutShown = 800;

// Limits that a program can be written to stay within.
constexpr std::array<std::string_view, 10> kResources = {
    "memory", "pids",       "tmp",           "output",      "work",
    "shm",    "tmp_inodes", "output_inodes", "work_inodes", "shm_inodes"};

bool hit_a_resource(const RunResult& run) {
  return std::any_of(run.limits_hit.begin(), run.limits_hit.end(), [](const std::string& name) {
    return std::find(kResources.begin(), kResources.end(), name) != kResources.end();
  });
}

bool matches(const std::string& pattern, const std::string& text) {
  regex_t compiled;
  if (pattern.empty()) return false;
  if (::regcomp(&compiled, pattern.c_str(), REG_EXTENDED | REG_NEWLINE | REG_NOSUB) != 0) {
    return false;
  }
  const sbx::ScopeExit free_it([&compiled] { ::regfree(&compiled); });
  std::string searched = text.substr(text.size() - std::min(text.size(), kMaxSearched));
  std::replace(searched.begin(), searched.end(), '\0', ' ');
  return ::regexec(&compiled, searched.c_str(), 0, nullptr, 0) == 0;
}

// The runtime's own sentences, which hold no words of the program's; not what every run is told,
// whatever ended it.
std::string kernel_notes(const RunResult& run, std::string_view otherwise) {
  std::string text;
  for (const Note& note : run.notes) {
    if (note.source != "kernel" || note.code == "caller_limit") continue;
    if (!text.empty()) text += ' ';
    text += note.text;
  }
  return text.empty() ? std::string(otherwise) : text;
}

std::string program_notes(const RunResult& run) {
  std::string text;
  for (const Note& note : run.notes) {
    if (note.source != "kernel") text += note.text + '\n';
  }
  return text;
}

// SECURITY: cleaned before it is cut, or half a key would be shown to the model.
std::string end_of_stdout(const RunResult& run, const Redactor& redactor) {
  std::string text = redactor.clean(run.out).text();
  if (text.size() <= kMaxStdoutShown) return text;
  return text.substr(sbx::utf8_boundary_behind(text, text.size() - kMaxStdoutShown));
}

// stderr, or the end of stdout where it is empty; with the notes that quote the program.
std::string words_of(const RunResult& run, const Redactor& redactor) {
  std::string words = run.err;
  if (run.err_dropped > 0) words += fmt::format("\n[{} bytes were not kept]", run.err_dropped);
  if (words.find_first_not_of(" \n\t\r") == std::string::npos) {
    words = end_of_stdout(run, redactor);
  }
  const std::string notes = program_notes(run);
  return notes.empty() ? words : words + '\n' + notes;
}

std::string_view last_line(std::string_view text) {
  return redact::first_words(envelope::last_line(text), kMaxQuote);
}

Judgement failed(FailureClass failure, std::string code, std::string problem, const RunResult& run,
                 const Redactor& redactor) {
  Judgement judgement{.failure = failure, .code = std::move(code), .detail = problem};
  judgement.repair = {RepairKind::kFailed, std::move(problem), words_of(run, redactor)};
  return judgement;
}

Judgement judge_exit(const RunResult& run, const std::string& pattern, const Redactor& redactor) {
  const bool syntax = !run.signal && matches(pattern, run.err);
  std::string problem = fmt::format("it ended with exit code {}.", run.exit_code);
  if (run.signal) {
    const char* name = ::sigabbrev_np(*run.signal);
    problem = fmt::format("it was ended by signal {} (SIG{}).", *run.signal,
                          name == nullptr ? "?" : name);
  }
  Judgement judgement = failed(syntax ? FailureClass::kSyntax : FailureClass::kRuntime,
                               run.signal ? "signal" : "exit", std::move(problem), run, redactor);
  if (const std::string_view last = last_line(run.err); !last.empty()) judgement.detail = last;
  return judgement;
}

std::string with_subject(const envelope::Violation& violation) {
  if (violation.subject.empty()) return violation.detail;
  return fmt::format("{}: {}", violation.detail, redact::first_words(violation.subject, kMaxQuote));
}

// Behind what was found, which has no full stop.
std::string cut_text(const RunResult& run) {
  if (run.out_dropped == 0) return {};
  return fmt::format(
      ". Of stdout, which was too long, {} bytes in the middle were not kept: print less, and save "
      "as a file what is large",
      run.out_dropped);
}

// The last line lies behind what was dropped, with the end of the line before it. Otherwise it lost
// a part, and what is left of it may still look like a result.
bool has_whole_last_line(const RunResult& run) {
  if (run.out_dropped == 0) return true;
  const std::string_view line = envelope::last_line(run.out);
  if (line.empty()) return false;
  const auto begin = static_cast<std::size_t>(line.data() - run.out.data());
  const std::size_t before = run.out.rfind('\n', begin);
  return before != std::string::npos && before >= run.out_cut;
}

struct Signature {
  std::string_view media_type;
  std::size_t at;
  std::string_view bytes;
};
constexpr std::array<Signature, 4> kSignatures = {{{"image/png", 0, "\x89PNG\r\n\x1a\n"},
                                                   {"image/jpeg", 0, "\xff\xd8\xff"},
                                                   {"image/gif", 0, "GIF8"},
                                                   {"image/webp", 8, "WEBP"}}};

// A chart is what its name says, for the kinds that can be told.
std::optional<envelope::Violation> check_picture(const envelope::Envelope& result,
                                                 const RunResult& run) {
  if (result.type != envelope::Type::kChart) return std::nullopt;
  for (const sandbox::OutputFile& file : run.files) {
    if (file.path != result.artifact) continue;
    for (const Signature& kind : kSignatures) {
      if (file.media_type != kind.media_type) continue;
      const std::string_view content = file.content;
      if (content.substr(std::min(kind.at, content.size())).starts_with(kind.bytes)) continue;
      return envelope::Violation{
          "bad_picture",
          fmt::format("the file that \"artifact_path\" names holds no picture of its type, {}",
                      kind.media_type),
          file.path};
    }
  }
  return std::nullopt;
}

std::variant<envelope::Envelope, envelope::Violation> envelope_of(const RunResult& run) {
  if (!has_whole_last_line(run)) {
    return envelope::Violation{"cut_output", "the last line of stdout was not kept whole"};
  }
  std::vector<std::string> collected;
  for (const sandbox::OutputFile& file : run.files) collected.push_back(file.path);
  auto parsed = envelope::parse(run.out, collected);
  if (const auto* good = std::get_if<envelope::Envelope>(&parsed)) {
    if (auto broken = check_picture(*good, run)) return *std::move(broken);
    return parsed;
  }
  auto& violation = std::get<envelope::Violation>(parsed);
  if (violation.code == "artifact_not_collected") {
    for (const sandbox::Refused& entry : run.refused) {
      if (entry.path != violation.subject) continue;
      violation.detail =
          "the file that \"artifact_path\" names was not taken from /output: " + entry.reason;
    }
  }
  return parsed;
}

Judgement judge_envelope(const RunResult& run, const Redactor& redactor) {
  auto parsed = envelope_of(run);
  if (auto* good = std::get_if<envelope::Envelope>(&parsed)) {
    return {.envelope = std::move(*good)};
  }
  auto& violation = std::get<envelope::Violation>(parsed);
  violation.subject = redactor.clean(violation.subject).text();  // of stdout, and cut below
  Judgement judgement{.failure = FailureClass::kEnvelope,
                      .code = violation.code,
                      .detail = with_subject(violation) + cut_text(run)};
  std::string evidence = violation.subject.empty() ? "" : violation.subject + '\n';
  for (const sandbox::Refused& entry : run.refused) {
    evidence += fmt::format("{} in /output was not taken: {}\n", entry.path, entry.reason);
  }
  evidence += end_of_stdout(run, redactor);
  judgement.repair = {RepairKind::kEnvelope, violation.detail + cut_text(run) + ".",
                      std::move(evidence)};
  return judgement;
}

}  // namespace

Judgement judge(const RunResult& run, const std::string& syntax_error_pattern,
                const Redactor& redactor) {
  const std::string& status = run.status;
  if (status == "timeout" || status == "cpu_time") {
    return failed(FailureClass::kTimeout, status,
                  kernel_notes(run, "the time limit ended the program."), run, redactor);
  }
  if (status == "security") {
    return failed(FailureClass::kSecurity, status,
                  kernel_notes(run, "the program made a hostile system call."), run, redactor);
  }
  if (status == "oom" || status == "output" || (!run.ok() && hit_a_resource(run))) {
    return failed(FailureClass::kResource, status,
                  kernel_notes(run, "it ran into a limit of the sandbox."), run, redactor);
  }
  return run.ok() ? judge_envelope(run, redactor) : judge_exit(run, syntax_error_pattern, redactor);
}

}  // namespace agentd::loop
