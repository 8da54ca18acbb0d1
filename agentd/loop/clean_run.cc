#include "agentd/loop/clean_run.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/base/utf8.h"

namespace agentd::loop {
namespace {

void widen(std::string& text, std::size_t& cut, std::uint64_t& dropped, std::size_t reach) {
  if (dropped == 0) return;
  const std::size_t begin = sbx::utf8_boundary_before(text, cut - std::min(cut, reach));
  const std::size_t end = sbx::utf8_boundary_behind(text, cut + std::min(text.size() - cut, reach));
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
