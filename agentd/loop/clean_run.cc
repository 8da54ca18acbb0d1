#include "agentd/loop/clean_run.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace agentd::loop {
namespace {

bool is_inside_a_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

void widen(std::string& text, std::size_t& cut, std::uint64_t& dropped, std::size_t reach) {
  if (dropped == 0) return;
  std::size_t begin = cut - std::min(cut, reach);
  std::size_t end = cut + std::min(text.size() - cut, reach);
  while (begin > 0 && is_inside_a_character(text[begin])) --begin;
  while (end < text.size() && is_inside_a_character(text[end])) ++end;
  text.erase(begin, end - begin);
  dropped += end - begin;
  cut = begin;
}

}  // namespace

void clean_run(sandbox::RunResult& run, const redact::Redactor& redactor) {
  widen(run.out, run.out_cut, run.out_dropped, redactor.reach());
  widen(run.err, run.err_cut, run.err_dropped, redactor.reach());
  const auto clean = [&redactor](std::string& text) { text = redactor.clean(text).text(); };
  clean(run.err);
  for (sandbox::Note& note : run.notes) clean(note.text);
  for (sandbox::Refused& entry : run.refused) clean(entry.path);
}

}  // namespace agentd::loop
