// Stdout of a program, read as an envelope: never a crash, and what is accepted keeps the rules.
#include <vector>

#include "agentd/envelope/envelope.h"
#include "agentd/envelope/strict_json.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace agentd::envelope;
  using sbx::fuzz::require;
  const std::string_view text = sbx::fuzz::as_text(data, size);
  const std::vector<std::string> collected = {"plot.png", "a/b.csv"};
  const auto parsed = parse(text, collected);
  if (const auto* violation = std::get_if<Violation>(&parsed)) {
    require(!violation->code.empty() && !violation->detail.empty());
    return 0;
  }
  const Envelope& envelope = std::get<Envelope>(parsed);
  for (const auto& row : envelope.table.rows) require(row.size() == envelope.table.columns.size());
  require((envelope.type == Type::kTable) == !envelope.table.columns.empty());
  require(envelope.note.size() <= kMaxNoteBytes);
  const bool has_artifact = envelope.type == Type::kChart || envelope.type == Type::kFile;
  require(has_artifact == (envelope.artifact == collected[0] || envelope.artifact == collected[1]));
  // Written out and read again it is the same value.
  const auto json = parse_strict_json(last_line(text));
  const std::string once = to_json(std::get<JsonNode>(json));
  const auto again = parse_strict_json(once);
  require(to_json(std::get<JsonNode>(again)) == once);
  return 0;
}
