// The audit file's format: a chain of JSON lines, and the check of it. Stage: daemon. Pure.
//
//   {"seq":7,"prev":"<64 hex>","time":"…","event":"run","run":"…",…}
//
// `prev` is the SHA-256 of the line before, without its end (64 zeros in the first), so an edit, a
// removal, an insertion or a change of order breaks the chain at that place. The last line has no
// successor: the file `<audit>.head` holds its number and hash, of none 0 and zeros. It is written
// after each line, before the next, so that the death of sbxd leaves one line beyond it at most.
//
// A line that was cut short by the death of sbxd stays as it is. The next start ends it and appends
// a marker (event "torn") that names its hash, and goes on behind the last whole line. What the
// head knows and the file lacks or has otherwise, more lines beyond the head, and what is no
// beginning of a line (a power failure, or somebody) is noted by the event "gap", so that it stays
// visible once the head has moved on.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sbx::daemon {

// One whole line's place in the chain.
struct AuditLink {
  std::uint64_t seq = 0;
  std::string hash;  // of the line
};
inline constexpr std::string_view kNoHash =
    "0000000000000000000000000000000000000000000000000000000000000000";

// The line, without its end, that follows `last`; `members` are JSON members without braces.
[[nodiscard]] std::string audit_line(const std::optional<AuditLink>& last, std::string_view time,
                                     std::string_view members);
// nullopt when the text is not a whole line of this format.
struct AuditPlace {
  std::uint64_t seq = 0;
  std::string_view prev;
};
[[nodiscard]] std::optional<AuditPlace> parse_audit_line(std::string_view line);
[[nodiscard]] AuditLink link_of(std::uint64_t seq, std::string_view line);

// True for what can be left of the line that follows `last` when it is cut short.
[[nodiscard]] bool begins_line(std::string_view text, const std::optional<AuditLink>& last);

// The members of the marker behind a torn line.
[[nodiscard]] std::string torn_marker(std::string_view torn);
// The members of the marker where the head and the file do not agree; without a head, number 0.
[[nodiscard]] std::string gap_marker(const AuditLink& head);

// The head file's text: fixed length, so that it is replaced by one write.
[[nodiscard]] std::string head_text(const AuditLink& last);
[[nodiscard]] std::optional<AuditLink> parse_head(std::string_view text);

// What a check found. `problems` empty: nothing was edited, removed or reordered.
struct AuditReport {
  std::uint64_t lines = 0;
  std::vector<std::string> notes;     // torn lines and one beyond the head, each said
  std::vector<std::string> problems;  // each with its line number
};
// `head`: the text of the head file, "" when there is none, as it was when the file ended there.
[[nodiscard]] AuditReport verify_audit(std::istream& file, std::string_view head);

// What the head may lack.
inline constexpr std::uint64_t kMaxBeyondHead = 1;
// Longer is no line of ours.
inline constexpr std::size_t kMaxAuditLine = 64 * 1024;

}  // namespace sbx::daemon
