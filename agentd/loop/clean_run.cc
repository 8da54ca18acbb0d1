#include "agentd/loop/clean_run.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "runtime/base/utf8.h"

namespace agentd::loop {
namespace {

// Of what stands on one side of a cut. Half of it stays, or a long key would take the traceback
// that a repair goes by.
std::size_t taken_of(std::size_t side, std::size_t reach) {
  constexpr std::size_t kWhole = 4096;
  return std::min({side, reach, std::max(kWhole, side / 2)});
}

void widen(std::string& text, std::size_t& cut, std::uint64_t& dropped, std::size_t reach) {
  if (dropped == 0) return;
  const std::size_t begin = sbx::utf8_boundary_before(text, cut - taken_of(cut, reach));
  const std::size_t end = sbx::utf8_boundary_behind(text, cut + taken_of(text.size() - cut, reach));
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
