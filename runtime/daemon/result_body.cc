#include "runtime/daemon/result_body.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "runtime/base/base64.h"
#include "runtime/base/sys.h"
#include "runtime/spawn/records.h"

namespace sbx::daemon {
namespace {

// A multiple of 3, so that pieces of base64 join without padding.
constexpr std::size_t kPiece = 48 * 1024;

}  // namespace

KeptFiles::KeptFiles() : secret_(spawn::new_run_id() + spawn::new_run_id()) {}

// As much of the secret as fills whole groups of base64.
std::string_view KeptFiles::common_mark() const {
  if (files_.empty()) return {};
  return std::string_view(files_.front().mark).substr(0, secret_.size() / 3 * 4);
}

collect::FileSink KeptFiles::sink() {
  return [this](collect::CollectedFile& file, int fd) -> Result<void> {
    SBX_ASSIGN(UniqueFd copy, sys::duplicate_above(fd, 0));
    file.content = fmt::format("{}{:08}", secret_, files_.size());
    files_.push_back({encode_base64(*file.content), std::move(copy), file.size});
    bytes_ += file.size;
    return {};
  };
}

// One pass over the text, however many files there are: a program decides how large it is and what
// is in it, and the loop does nothing else meanwhile.
ResultBody::ResultBody(const collect::Outcome& outcome, KeptFiles files) {
  std::string json = to_json(outcome);
  const std::string_view all = json;
  std::map<std::string_view, KeptFiles::Kept*> by_mark;
  for (KeptFiles::Kept& kept : files.files_) by_mark.emplace(kept.mark, &kept);
  const std::string_view common = files.common_mark();
  std::size_t done = 0;
  for (std::size_t at = all.find(common); !common.empty() && at != std::string_view::npos;
       at = all.find(common, at + 1)) {
    const auto found = by_mark.find(all.substr(at, files.files_.front().mark.size()));
    if (found == by_mark.end()) continue;
    KeptFiles::Kept& kept = *found->second;
    parts_.push_back({std::string(all.substr(done, at - done)), std::move(kept.fd), kept.size});
    done = at + kept.mark.size();
  }
  // A mark that is not there is of a file that was refused after it was kept.
  parts_.push_back({done == 0 ? std::move(json) : std::string(all.substr(done)), {}, 0});
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
