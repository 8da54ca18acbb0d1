#include "runtime/daemon/audit_chain.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <istream>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/sha256.h"

namespace sbx::daemon {
namespace {

constexpr std::size_t kHashSize = 64;
constexpr std::string_view kSeq = "{\"seq\":";
constexpr std::string_view kPrev = ",\"prev\":\"";
constexpr std::string_view kTime = "\",\"time\":\"";
constexpr std::string_view kNoneOfOurs = "is no line of ours, and no beginning of one";

std::string line_start(const std::optional<AuditLink>& last) {
  return fmt::format("{}{}{}{}{}", kSeq, last ? last->seq + 1 : 1, kPrev,
                     last ? std::string_view(last->hash) : kNoHash, kTime);
}

bool is_hash(std::string_view text) {
  return text.size() == kHashSize &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// Reads line by line with a bound, and keeps what stands between two whole lines.
class Verifier {
 public:
  Verifier(std::istream& file, std::string_view head)
      : file_(file),
        head_(parse_head(head)),
        head_damaged_(!head.empty() && !head_),
        head_seen_(head_ && head_->seq == 0) {}

  AuditReport verify() {
    std::string line;
    while (read_line(line)) take_line(line);
    finish(line);
    return std::move(report_);
  }

 private:
  // False at the end; `line` then holds what has no line end.
  bool read_line(std::string& line) {
    line.clear();
    ++number_;
    bool told = false;
    for (int c = file_.get(); c != std::istream::traits_type::eof(); c = file_.get()) {
      if (c == '\n') return true;
      line += static_cast<char>(c);
      if (line.size() <= kMaxAuditLine) continue;
      if (!std::exchange(told, true)) problem("is longer than any line of ours");
      line.clear();
    }
    return false;
  }

  void take_line(const std::string& line) {
    const auto place = parse_audit_line(line);
    if (!place) {
      if (torn_) problem("is no whole line");
      torn_ = line;
      return;
    }
    ++report_.lines;
    check_torn(line);
    check_place(*place);
    if (line.find("\"event\":\"gap\"") != std::string::npos) {
      problem("says that the lines before it and the head file did not agree when sbxd started");
    }
    if (head_seen_) ++beyond_head_;
    last_ = link_of(place->seq, line);
    if (head_ && head_->seq == last_->seq) {
      head_seen_ = true;
      if (head_->hash != last_->hash) problem("is not what the head file says of it");
    }
  }

  // What is no line must be followed by the marker that names it.
  void check_torn(const std::string& line) {
    if (!torn_) return;
    if (!begins_line(*torn_, last_)) problem_at(number_ - 1, kNoneOfOurs);
    if (line.find(torn_marker(*torn_)) == std::string::npos) {
      problem("follows a line that is damaged, and does not say so");
    } else {
      report_.notes.push_back(fmt::format("line {}: {} bytes were left of a line when sbxd died",
                                          number_ - 1, torn_->size()));
    }
    torn_.reset();
  }

  void check_place(const AuditPlace& place) {
    const std::uint64_t expected = last_ ? last_->seq + 1 : 1;
    if (place.seq != expected) {
      problem(fmt::format("has number {} where {} comes next", place.seq, expected));
    } else if (place.prev != (last_ ? std::string_view(last_->hash) : kNoHash)) {
      problem("does not continue the line before it: one of the two was changed");
    }
  }

  void finish(const std::string& rest) {
    if (torn_) problem_at(number_ - 1, "is no whole line, and no marker follows");
    if (parse_audit_line(rest)) {
      take_line(rest);
      report_.notes.push_back(fmt::format("line {}: its end alone is missing", number_));
    } else if (!begins_line(rest, last_)) {
      problem(kNoneOfOurs);
    } else if (!rest.empty()) {
      report_.notes.push_back(fmt::format(
          "line {}: cut short after {} bytes; sbxd marks it when it starts", number_, rest.size()));
    }
    if (head_damaged_) {
      report_.problems.emplace_back("the head file, which tells the last line, is damaged");
    } else if (!head_) {
      if (report_.lines > 0)
        report_.problems.emplace_back("there is no head file, which tells the last line");
    } else if (!head_seen_) {
      report_.problems.push_back(
          fmt::format("the file ends before number {}, which the head file "
                      "knows: lines were removed",
                      head_->seq));
    } else if (beyond_head_ > 0) {
      take_beyond();
    }
  }

  void take_beyond() {
    if (beyond_head_ <= kMaxBeyondHead) {
      report_.notes.push_back(fmt::format(
          "{} line stands beyond number {}, which the head file knows: sbxd died before it wrote "
          "the head, or is about to",
          beyond_head_, head_->seq));
      return;
    }
    report_.problems.push_back(fmt::format(
        "{} lines stand beyond number {}, the last that the head file knows: the death of sbxd "
        "leaves {} at most",
        beyond_head_, head_->seq, kMaxBeyondHead));
  }

  void problem(std::string_view what) { problem_at(number_, what); }
  void problem_at(std::uint64_t number, std::string_view what) {
    report_.problems.push_back(fmt::format("line {} {}", number, what));
  }

  std::istream& file_;
  std::optional<AuditLink> head_;
  bool head_damaged_;
  bool head_seen_;
  std::uint64_t beyond_head_ = 0;
  AuditReport report_;
  std::uint64_t number_ = 0;  // of the line being read
  std::optional<AuditLink> last_;
  std::optional<std::string> torn_;
};

}  // namespace

std::string audit_line(const std::optional<AuditLink>& last, std::string_view time,
                       std::string_view members) {
  return fmt::format("{}{}\",{}}}", line_start(last), time, members);
}

std::optional<AuditPlace> parse_audit_line(std::string_view line) {
  const std::string_view whole = line;
  if (!line.ends_with('}') || !take(line, kSeq)) return std::nullopt;
  const auto seq = take_number(line);
  if (!seq || !take(line, kPrev)) return std::nullopt;
  const std::string_view prev = line.substr(0, kHashSize);
  line.remove_prefix(prev.size());
  if (!is_hash(prev) || !take(line, kTime)) return std::nullopt;
  // A line that was cut short is never a whole document.
  if (!nlohmann::json::accept(whole)) return std::nullopt;
  return AuditPlace{*seq, prev};
}

AuditLink link_of(std::uint64_t seq, std::string_view line) {
  return {seq, sha256_of(line)};
}

bool begins_line(std::string_view text, const std::optional<AuditLink>& last) {
  const std::string start = line_start(last);
  const std::size_t size = std::min(text.size(), start.size());
  return text.substr(0, size) == std::string_view(start).substr(0, size) &&
         text.find('\n') == std::string_view::npos;
}

std::string torn_marker(std::string_view torn) {
  return fmt::format(R"("event":"torn","bytes":{},"sha256":"{}")", torn.size(), sha256_of(torn));
}

std::string gap_marker(const AuditLink& head) {
  return fmt::format(R"("event":"gap","head_seq":{},"head_hash":"{}")", head.seq, head.hash);
}

std::string head_text(const AuditLink& last) {
  return fmt::format("{:>20} {}\n", last.seq, last.hash);
}

std::optional<AuditLink> parse_head(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto seq = take_number(text);
  if (!seq || !take(text, " ") || text.size() != kHashSize + 1 || text.back() != '\n') {
    return std::nullopt;
  }
  text.remove_suffix(1);
  if (!is_hash(text)) return std::nullopt;
  return AuditLink{*seq, std::string(text)};
}

AuditReport verify_audit(std::istream& file, std::string_view head) {
  return Verifier(file, head).verify();
}

}  // namespace sbx::daemon
