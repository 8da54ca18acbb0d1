#include "runtime/collect/collection.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "runtime/base/sha256.h"
#include "runtime/base/sys.h"
#include "runtime/collect/names.h"
#include "runtime/collect/normalize.h"
#include "runtime/collect/wire.h"

namespace sbx::collect {
namespace {

using wire::Kind;
using wire::Reason;

// Refusals taken in one step; the socket's own queue is usually shorter.
constexpr int kRecordsPerStep = 64;

// The limit that a reason is about; empty for the others.
std::string_view limit_of(Reason reason) {
  switch (reason) {
    case Reason::kTooManyFiles:
      return "files";
    case Reason::kFileTooBig:
      return "file_bytes";
    case Reason::kTotalTooBig:
      return "files_bytes";
    case Reason::kTooDeep:
      return "file_depth";
    default:
      return {};
  }
}

std::string reason_text(const wire::Record& record) {
  switch (record.reason) {
    case Reason::kSymlink:
      return "symbolic link";
    case Reason::kHardLink:
      return fmt::format("hard link: the file has {} names", record.size);
    case Reason::kFifo:
      return "named pipe";
    case Reason::kSocket:
      return "socket";
    case Reason::kDevice:
      return "device or other special file";
    case Reason::kFileTooBig:
      return fmt::format("{} bytes, over the limit of {} for one file (file_bytes)", record.size,
                         policy::size_text(record.limit));
    case Reason::kTotalTooBig:
      return fmt::format("{} bytes would take all files over their limit of {} (files_bytes)",
                         record.size, policy::size_text(record.limit));
    case Reason::kTooManyFiles:
      return fmt::format("over the limit of {} files (files)", record.limit);
    case Reason::kTooDeep:
      return fmt::format("more than {} directories deep (file_depth)", record.limit);
    case Reason::kPathTooLong:
      return fmt::format("path longer than {} bytes, shown cut", record.limit);
    case Reason::kUnreadable:
      return fmt::format("cannot be read: {}", std::strerror(record.sys_errno));
    case Reason::kChanged:
      return "changed while it was collected";
    case Reason::kOutOfTime:
    case Reason::kNone:
      break;
  }
  return "not collected";
}

std::string rest_text(const wire::Record& record) {
  const bool timed_out = (record.limit & wire::reason_bit(Reason::kOutOfTime)) != 0;
  return fmt::format("{}{} more entries that were not collected and are not listed ({})",
                     record.at_least != 0 ? "at least " : "", record.count,
                     timed_out ? std::string("the walk ran out of time")
                               : fmt::format("the limit is {} files", record.size));
}

Result<void> check_descriptor(int fd, std::uint64_t size) {
  struct stat info{};
  if (::fstat(fd, &info) != 0) return sys_error("fstat");
  if (!S_ISREG(info.st_mode)) return invalid("not a regular file");
  if (static_cast<std::uint64_t>(info.st_size) != size) {
    return invalid("changed while it was collected");
  }
  return {};
}

Result<void> read_content(CollectedFile& file, int fd) {
  std::string content(static_cast<std::size_t>(file.size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got =
        ::pread(fd, content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys_error("pread");
    if (got == 0) return invalid("changed while it was collected");
    done += static_cast<std::size_t>(got);
  }
  file.content = std::move(content);
  return {};
}

}  // namespace

FileSink content_sink() {
  return read_content;
}

// A file on its way in.
struct Taking {
  CollectedFile file;
  UniqueFd fd;
  Sha256 hash{};
  std::uint64_t done = 0;
};

struct Collection::State {
  UniqueFd socket;
  FileSink sink;
  std::optional<Taking> taking;
  std::vector<CollectedFile> files;
  std::vector<RefusedEntry> refused;
  std::vector<std::string> limits_hit;
  std::string rest;  // the summary, kept apart so that sorting leaves it last

  [[nodiscard]] Result<bool> take(const wire::Message& message, std::vector<UniqueFd>& fds);
  void go_on_taking();
  [[nodiscard]] Result<void> hash_some(Taking& taken) const;
  [[nodiscard]] Result<void> finish_file(Taking& taken) const;
  void note_limit(Reason reason);
  void finish();
  void flag_equal_names();
};

// True when the step is over: a file was taken or the walk has ended.
Result<bool> Collection::State::take(const wire::Message& message, std::vector<UniqueFd>& fds) {
  const wire::Record& record = message.record;
  switch (record.kind) {
    case Kind::kFile: {
      if (fds.size() != 1) return invalid("collector packet without its descriptor");
      CollectedFile file;
      file.raw_path = message.path;
      file.path = render_path(message.path);
      file.size = record.size;
      file.media_type = media_type(message.path);
      taking = Taking{std::move(file), std::move(fds.front())};
      go_on_taking();
      return true;
    }
    case Kind::kRefused:
      refused.push_back({render_path(message.path), reason_text(record)});
      note_limit(record.reason);
      return false;
    case Kind::kRest:
      rest = rest_text(record);
      for (auto reason = Reason::kNone; reason <= Reason::kLast;
           reason = static_cast<Reason>(static_cast<std::uint32_t>(reason) + 1)) {
        if ((record.limit & wire::reason_bit(reason)) != 0) note_limit(reason);
      }
      return false;
    case Kind::kEnd:
      return true;
  }
  return false;
}

void Collection::State::go_on_taking() {
  const auto hashed = hash_some(*taking);
  if (hashed && taking->done < taking->file.size) return;
  Taking taken = *std::exchange(taking, std::nullopt);
  const auto finished = hashed ? finish_file(taken) : hashed;
  if (finished) {
    files.push_back(std::move(taken.file));
  } else {
    refused.push_back({taken.file.path, to_string(finished.error())});
  }
}

Result<void> Collection::State::hash_some(Taking& taken) const {
  SBX_TRY(check_descriptor(taken.fd.get(), taken.file.size));
  std::array<char, 64 * 1024> buffer;
  const std::uint64_t end = std::min(taken.file.size, taken.done + kHashedPerStep);
  while (taken.done < end) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), end - taken.done));
    const ssize_t got =
        ::pread(taken.fd.get(), buffer.data(), wanted, static_cast<off_t>(taken.done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys_error("pread");
    if (got == 0) return invalid("changed while it was collected");
    taken.hash.add({buffer.data(), static_cast<std::size_t>(got)});
    taken.done += static_cast<std::uint64_t>(got);
  }
  return {};
}

Result<void> Collection::State::finish_file(Taking& taken) const {
  SBX_TRY(check_descriptor(taken.fd.get(), taken.file.size));
  taken.file.sha256 = taken.hash.finish();
  if (sink) SBX_TRY(sink(taken.file, taken.fd.get()));
  return {};
}

void Collection::State::note_limit(Reason reason) {
  const std::string_view name = limit_of(reason);
  if (name.empty() || std::find(limits_hit.begin(), limits_hit.end(), name) != limits_hit.end()) {
    return;
  }
  limits_hit.emplace_back(name);
}

void Collection::State::finish() {
  std::sort(files.begin(), files.end(),
            [](const CollectedFile& a, const CollectedFile& b) { return a.raw_path < b.raw_path; });
  std::sort(refused.begin(), refused.end(),
            [](const RefusedEntry& a, const RefusedEntry& b) { return a.path < b.path; });
  if (!rest.empty()) refused.push_back({".", std::move(rest)});
  flag_equal_names();
}

// Two names that look the same are a trap for whoever saves them on a file system that normalises,
// or picks one by eye. Both are kept; the later one says so.
void Collection::State::flag_equal_names() {
  std::map<std::string, const CollectedFile*> seen;
  for (CollectedFile& file : files) {
    const auto [first, is_new] = seen.emplace(canonical_key(file.path), &file);
    if (!is_new) {
      file.note =
          fmt::format("same name as \"{}\" after Unicode normalisation (NFC)", first->second->path);
    }
  }
}

Collection::Collection(UniqueFd socket, FileSink sink) : state_(std::make_unique<State>()) {
  state_->socket = std::move(socket);
  state_->sink = std::move(sink);
}

Collection::~Collection() = default;

int Collection::fd() const {
  return state_->socket.get();
}

bool Collection::busy() const {
  return state_->taking.has_value();
}

Result<bool> Collection::step() {
  if (busy()) {
    state_->go_on_taking();
    return false;
  }
  std::array<std::uint8_t, wire::kMaxPacket> buffer;
  const auto fail = [this](Error error) -> Result<bool> {
    state_->finish();
    error.stage = "collect";
    error.code = ErrorCode::kInternal;  // whatever it was, it is nothing the caller asked for
    return error;
  };
  for (int i = 0; i < kRecordsPerStep; ++i) {
    auto packet = sys::receive_packet(fd(), buffer, MSG_DONTWAIT);
    if (!packet) return fail(std::move(packet).error());
    if (!packet->has_value()) return false;
    sys::Packet& received = **packet;
    if (received.size == 0) return fail(invalid("the collector ended before the walk did"));
    auto message = wire::parse(std::span(buffer).first(received.size));
    if (!message) return fail(std::move(message).error());
    auto taken = state_->take(*message, received.fds);
    if (!taken) return fail(std::move(taken).error());
    if (message->record.kind == Kind::kEnd) {
      state_->finish();
      return true;
    }
    if (*taken) return false;
  }
  return false;
}

std::vector<CollectedFile>& Collection::files() {
  return state_->files;
}
std::vector<RefusedEntry>& Collection::refused() {
  return state_->refused;
}
const std::vector<std::string>& Collection::limits_hit() const {
  return state_->limits_hit;
}

}  // namespace sbx::collect
