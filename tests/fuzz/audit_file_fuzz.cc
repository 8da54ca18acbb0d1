// An audit file that anybody may have written over: a report, whose problems and notes are as many
// as its lines at most, and no line of ours is taken apart beyond its end.
#include <sstream>
#include <string>

#include "runtime/daemon/audit_chain.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx;
  const std::string text(fuzz::as_text(data, size));
  std::istringstream file(text);
  const std::string head_text = text.substr(0, text.find('\n') + 1);
  const auto head = daemon::parse_head(head_text);
  const daemon::AuditReport report = daemon::verify_audit(file, head_text);
  fuzz::require(report.lines <= size);
  fuzz::require(report.notes.size() <= size + 1);
  // Lines and no head, or a head and not its line: never intact.
  if (report.lines > 0 && !head) fuzz::require(!report.problems.empty());
  if (report.lines == 0 && head && head->seq > 0) fuzz::require(!report.problems.empty());
  return 0;
}
