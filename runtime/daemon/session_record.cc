#include "runtime/daemon/session_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "runtime/daemon/json_fields.h"

namespace sbx::daemon {
namespace {

constexpr std::string_view kFormat = "1";
constexpr std::size_t kIdDigits = 16;

std::int64_t seconds_of(SessionTime time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

std::string owner_text(const std::optional<uid_t>& owner) {
  return owner ? std::to_string(*owner) : "null";
}

// The members of one document, each of which must be there, and no other.
class Members {
 public:
  static Result<Members> of(std::string_view text, std::size_t count) {
    auto parsed = parse_strict_json(text);
    if (const auto* problem = std::get_if<http::Problem>(&parsed)) return invalid(problem->detail);
    Members members;
    members.document_ = std::get<JsonValue>(std::move(parsed));
    if (members.document_.kind != JsonKind::kObject || members.document_.items.size() != count) {
      return invalid("not a record of this version");
    }
    return members;
  }

  Result<std::string> text(std::string_view name) const {
    const JsonValue* const value = document_.find(name);
    if (value == nullptr || value->kind != JsonKind::kString) return missing(name);
    return value->text;
  }

  template <typename T>
  Result<T> number(std::string_view name, T most = std::numeric_limits<T>::max()) const {
    const JsonValue* const value = document_.find(name);
    if (value == nullptr || value->kind != JsonKind::kInteger) return missing(name);
    T number{};
    const char* const end = value->text.data() + value->text.size();
    const auto [at, error] = std::from_chars(value->text.data(), end, number);
    if (error != std::errc() || at != end || number < T{} || number > most) return missing(name);
    return number;
  }

  Result<std::optional<uid_t>> owner() const {
    const JsonValue* const value = document_.find("owner");
    if (value != nullptr && value->kind == JsonKind::kNull) return std::optional<uid_t>();
    SBX_ASSIGN(const uid_t uid, number<uid_t>("owner"));
    return std::optional<uid_t>(uid);
  }

  Result<SessionTime> time(std::string_view name) const {
    SBX_ASSIGN(const std::int64_t count, number<std::int64_t>(name, kLatest));
    return SessionTime(std::chrono::seconds(count));
  }

  Result<std::chrono::seconds> duration(std::string_view name) const {
    SBX_ASSIGN(const std::int64_t count, number<std::int64_t>(name, kLongest));
    return std::chrono::seconds(count);
  }

  Result<std::string> id() const {
    SBX_ASSIGN(std::string id, text("id"));
    if (!is_session_id(id)) return missing("id");
    return id;
  }

  Result<void> check_format() const {
    SBX_ASSIGN(const std::string format, text("format"));
    return format == kFormat ? Result<void>() : Result<void>(missing("format"));
  }

 private:
  // Sums of them stay far from the ends of system_clock.
  static constexpr std::int64_t kLatest = std::int64_t{1} << 32;
  static constexpr std::int64_t kLongest = std::int64_t{1} << 31;

  static Error missing(std::string_view name) {
    return invalid(std::string(name) + " is not there, or not what it should be");
  }
  JsonValue document_;
};

}  // namespace

std::string_view expiry_name(Expiry why) {
  return why == Expiry::kIdle ? "idle" : "age";
}

bool is_session_id(std::string_view text) {
  return text.size() == kIdDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string to_text(const SessionRecord& record) {
  return fmt::format(
      R"({{"format":"{}","id":"{}","owner":{},"work":{},"work_inodes":{},"created":{},)"
      R"("idle_seconds":{},"age_seconds":{},"payload_id":{}}})"
      "\n",
      kFormat, record.id, owner_text(record.owner), record.work, record.work_inodes,
      seconds_of(record.created), record.idle.count(), record.age.count(), record.payload_id);
}

Result<SessionRecord> parse_session_record(std::string_view text) {
  SBX_ASSIGN(const Members members, Members::of(text, 9));
  SBX_TRY(members.check_format());
  SessionRecord record;
  SBX_ASSIGN(record.id, members.id());
  SBX_ASSIGN(record.owner, members.owner());
  SBX_ASSIGN(record.work, members.number<std::uint64_t>("work"));
  SBX_ASSIGN(record.work_inodes, members.number<std::uint64_t>("work_inodes"));
  SBX_ASSIGN(record.created, members.time("created"));
  SBX_ASSIGN(record.idle, members.duration("idle_seconds"));
  SBX_ASSIGN(record.age, members.duration("age_seconds"));
  SBX_ASSIGN(record.payload_id, members.number<std::uint32_t>("payload_id"));
  return record;
}

std::string to_text(const Tombstone& tombstone) {
  return fmt::format(R"({{"format":"{}","id":"{}","owner":{},"expired":{},"why":"{}"}})"
                     "\n",
                     kFormat, tombstone.id, owner_text(tombstone.owner),
                     seconds_of(tombstone.expired), expiry_name(tombstone.why));
}

Result<Tombstone> parse_tombstone(std::string_view text) {
  SBX_ASSIGN(const Members members, Members::of(text, 5));
  SBX_TRY(members.check_format());
  Tombstone tombstone;
  SBX_ASSIGN(tombstone.id, members.id());
  SBX_ASSIGN(tombstone.owner, members.owner());
  SBX_ASSIGN(tombstone.expired, members.time("expired"));
  SBX_ASSIGN(const std::string why, members.text("why"));
  if (why != expiry_name(Expiry::kIdle) && why != expiry_name(Expiry::kAge)) {
    return invalid("why is not a reason");
  }
  tombstone.why = why == expiry_name(Expiry::kIdle) ? Expiry::kIdle : Expiry::kAge;
  return tombstone;
}

}  // namespace sbx::daemon
