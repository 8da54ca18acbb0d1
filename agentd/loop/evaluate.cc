#include "agentd/loop/evaluate.h"

#include <fmt/core.h>
#include <regex.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <string_view>

#include "runtime/base/scope_exit.h"

namespace agentd::loop {
namespace {

using prompts::RepairKind;
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

// The runtime's own sentences, which hold no words of the program's.
std::string kernel_notes(const RunResult& run, std::string_view otherwise) {
  std::string text;
  for (const Note& note : run.notes) {
    if (note.source != "kernel") continue;
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

// stderr, or the end of stdout where it is empty; with the notes that quote the program.
std::string words_of(const RunResult& run) {
  std::string words = run.err;
  if (run.err_dropped > 0) words += fmt::format("\n[{} bytes were not kept]", run.err_dropped);
  if (words.find_first_not_of(" \n\t\r") == std::string::npos) {
    words = run.out.substr(run.out.size() - std::min(run.out.size(), kMaxStdoutShown));
  }
  const std::string notes = program_notes(run);
  return notes.empty() ? words : words + '\n' + notes;
}

std::string_view last_line(std::string_view text) {
  return envelope::last_line(text).substr(0, kMaxQuote);
}

Judgement failed(FailureClass failure, std::string code, std::string problem,
                 const RunResult& run) {
  Judgement judgement{.failure = failure, .code = std::move(code), .detail = problem};
  judgement.repair = {RepairKind::kFailed, std::move(problem), words_of(run)};
  return judgement;
}

Judgement judge_exit(const RunResult& run, const std::string& pattern) {
  const bool syntax = !run.signal && matches(pattern, run.err);
  std::string problem = fmt::format("it ended with exit code {}.", run.exit_code);
  if (run.signal) {
    const char* name = ::sigabbrev_np(*run.signal);
    problem = fmt::format("it was ended by signal {} (SIG{}).", *run.signal,
                          name == nullptr ? "?" : name);
  }
  Judgement judgement = failed(syntax ? FailureClass::kSyntax : FailureClass::kRuntime,
                               run.signal ? "signal" : "exit", std::move(problem), run);
  if (const std::string_view last = last_line(run.err); !last.empty()) judgement.detail = last;
  return judgement;
}

std::string with_subject(const envelope::Violation& violation) {
  if (violation.subject.empty()) return violation.detail;
  return fmt::format("{}: {}", violation.detail, violation.subject.substr(0, kMaxQuote));
}

// A long last line loses its middle with that of stdout, and is then whatever is left of it.
std::string cut_text(const RunResult& run) {
  if (run.out_dropped == 0) return {};
  return fmt::format(
      " Of stdout, which was too long, {} bytes in the middle were not kept: print less, and save "
      "as a file what is large.",
      run.out_dropped);
}

Judgement judge_envelope(const RunResult& run) {
  std::vector<std::string> collected;
  for (const sandbox::OutputFile& file : run.files) collected.push_back(file.path);
  auto parsed = envelope::parse(run.out, collected);
  if (auto* good = std::get_if<envelope::Envelope>(&parsed)) {
    return {.envelope = std::move(*good)};
  }
  const auto& violation = std::get<envelope::Violation>(parsed);
  Judgement judgement{.failure = FailureClass::kEnvelope,
                      .code = violation.code,
                      .detail = with_subject(violation) + cut_text(run)};
  std::string evidence = violation.subject.empty() ? "" : violation.subject + '\n';
  for (const sandbox::Refused& entry : run.refused) {
    evidence += fmt::format("{} in /output was not taken: {}\n", entry.path, entry.reason);
  }
  evidence += run.out.substr(run.out.size() - std::min(run.out.size(), kMaxStdoutShown));
  judgement.repair = {RepairKind::kEnvelope, violation.detail + "." + cut_text(run),
                      std::move(evidence)};
  return judgement;
}

}  // namespace

Judgement judge(const RunResult& run, const std::string& syntax_error_pattern) {
  const std::string& status = run.status;
  if (status == "timeout" || status == "cpu_time") {
    return failed(FailureClass::kTimeout, status,
                  kernel_notes(run, "the time limit ended the program."), run);
  }
  if (status == "security") {
    return failed(FailureClass::kSecurity, status,
                  kernel_notes(run, "the program made a hostile system call."), run);
  }
  if (status == "oom" || status == "output" || (!run.ok() && hit_a_resource(run))) {
    return failed(FailureClass::kResource, status,
                  kernel_notes(run, "it ran into a limit of the sandbox."), run);
  }
  return run.ok() ? judge_envelope(run) : judge_exit(run, syntax_error_pattern);
}

}  // namespace agentd::loop
