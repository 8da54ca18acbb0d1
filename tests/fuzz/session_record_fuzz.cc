// Records and tombstones of sessions: what is read reads back as it was, and nothing is taken that
// sbxd does not write.
#include "runtime/daemon/session_record.h"
#include "tests/fuzz/entry.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sbx::daemon;
  using sbx::fuzz::require;
  const std::string_view text = sbx::fuzz::as_text(data, size);
  if (const auto record = parse_session_record(text)) {
    require(is_session_id(record->id));
    const auto again = parse_session_record(to_text(*record));
    require(again && *again == *record);
    require(record->created + record->age >= record->created);
  }
  if (const auto tombstone = parse_tombstone(text)) {
    require(is_session_id(tombstone->id));
    const auto again = parse_tombstone(to_text(*tombstone));
    require(again && *again == *tombstone);
  }
  return 0;
}
