#include "runtime/daemon/result_body.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/base64.h"
#include "runtime/base/sys.h"
#include "runtime/spawn/records.h"

namespace sbx::daemon {
namespace {

// A multiple of 3, so that pieces of base64 join without padding.
constexpr std::size_t kPiece = 48 * 1024;

}  // namespace

KeptFiles::KeptFiles() : secret_(spawn::new_run_id() + spawn::new_run_id()) {}

collect::FileSink KeptFiles::sink() {
  return [this](collect::CollectedFile& file, int fd) -> Result<void> {
    SBX_ASSIGN(UniqueFd copy, sys::duplicate_above(fd, 0));
    file.content = fmt::format("{}{:08}", secret_, files_.size());
    files_.push_back({encode_base64(*file.content), std::move(copy), file.size});
    bytes_ += file.size;
    return {};
  };
}

ResultBody::ResultBody(const collect::Outcome& outcome, KeptFiles files) {
  std::string json = to_json(outcome);
  std::string_view rest = json;
  // In the order of the JSON, which is not the order of collecting.
  std::vector<std::pair<std::size_t, KeptFiles::Kept*>> places;
  for (KeptFiles::Kept& kept : files.files_) places.emplace_back(rest.find(kept.mark), &kept);
  std::sort(places.begin(), places.end());
  std::size_t done = 0;
  for (const auto& [place, kept] : places) {
    if (place == std::string::npos) continue;  // refused after it was kept
    parts_.push_back(
        {std::string(rest.substr(done, place - done)), std::move(kept->fd), kept->size});
    done = place + kept->mark.size();
  }
  parts_.push_back({done == 0 ? std::move(json) : std::string(rest.substr(done)), {}, 0});
}

Result<std::optional<std::string>> ResultBody::next() {
  if (at_ == parts_.size()) return std::optional<std::string>();
  Part& part = parts_[at_];
  if (!part.text.empty()) return std::optional<std::string>(std::exchange(part.text, {}));
  if (offset_ == part.size) {
    part.file.reset();
    offset_ = 0;
    ++at_;
    return next();
  }
  SBX_ASSIGN(std::string text, read_file(part));
  return std::optional<std::string>(std::move(text));
}

Result<std::string> ResultBody::read_file(Part& part) {
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, part.size - offset_)),
                    '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(part.file.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(offset_ + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return sys_error("pread", "a collected file");
    if (got == 0) return invalid("a collected file became shorter");
    done += static_cast<std::size_t>(got);
  }
  offset_ += bytes.size();
  return encode_base64(bytes);
}

}  // namespace sbx::daemon
