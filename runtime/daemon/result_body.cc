#include "runtime/daemon/result_body.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "runtime/base/base64.h"
#include "runtime/base/own_limits.h"
#include "runtime/base/sys.h"
#include "runtime/base/utf8.h"
#include "runtime/daemon/json_parts.h"
#include "runtime/spawn/records.h"

namespace sbx::daemon {
namespace {

// A multiple of 3, so that pieces of base64 join without padding.
constexpr std::size_t kPiece = 48 * 1024;
// Each byte may become six.
constexpr std::size_t kOutputPiece = 8 * 1024;

}  // namespace

KeptFiles::KeptFiles() : secret_(spawn::new_run_id() + spawn::new_run_id()) {}

// As much of the secret as fills whole groups of base64.
std::string_view KeptFiles::common_mark() const {
  if (files_.empty()) return {};
  return std::string_view(files_.front().mark).substr(0, secret_.size() / 3 * 4);
}

collect::FileSink KeptFiles::sink() {
  return [this](collect::CollectedFile& file, int fd) -> Result<void> {
    auto copy = sys::duplicate_above(fd, 0);
    if (!copy && !scarcity_fix(copy.error().sys_errno).empty()) {
      shortage_ = name_scarcity(copy.error());
    }
    if (!copy) return unexpected(std::move(copy).error());
    file.content = fmt::format("{}{:08}", secret_, files_.size());
    files_.push_back({encode_base64(*file.content), *std::move(copy), file.size});
    bytes_ += file.size;
    return {};
  };
}

std::string OutputText::next_text() {
  const std::size_t part_end = offset_ < cut_ ? cut_ : bytes_.size();
  const std::string_view left = std::string_view(bytes_).substr(offset_, part_end - offset_);
  const std::size_t piece_end = utf8_boundary_before(left, std::min(kOutputPiece, left.size()));
  const std::string_view piece = left.substr(0, piece_end);
  offset_ += piece.size();
  std::string text;
  is_clean_ = append_replacing(text, piece) && is_clean_;
  text = json_string(text);
  return text.substr(1, text.size() - 2);  // without its quotes
}

std::string OutputText::next() {
  if (!is_base64_ && offset_ < bytes_.size()) return next_text();
  if (!is_base64_ && !is_clean_) {
    is_base64_ = true;
    offset_ = 0;
    return fmt::format(R"(","{}_base64":")", name_);
  }
  if (offset_ == bytes_.size()) return {};
  const std::string_view piece = std::string_view(bytes_).substr(offset_, kPiece);
  offset_ += piece.size();
  return encode_base64(piece);
}

// One pass over the text, however many files there are: a program decides how large it is and what
// is in it, and the loop does nothing else meanwhile.
ResultBody::ResultBody(collect::Outcome outcome, KeptFiles files) {
  const std::string out_mark = files.secret_ + "stdout";
  const std::string err_mark = files.secret_ + "stderr";
  const auto cut_of = [](std::uint64_t dropped, std::size_t head, std::size_t size) {
    return dropped > 0 ? std::min(head, size) : size;
  };
  const std::size_t out_cut =
      cut_of(outcome.stdout_dropped, outcome.stdout_head, outcome.stdout_bytes.size());
  const std::size_t err_cut =
      cut_of(outcome.stderr_dropped, outcome.stderr_head, outcome.stderr_bytes.size());
  OutputText out("stdout", std::exchange(outcome.stdout_bytes, out_mark), out_cut);
  OutputText err("stderr", std::exchange(outcome.stderr_bytes, err_mark), err_cut);
  const std::string json = to_json(outcome);
  std::string_view rest = put_output(json, out_mark, std::move(out));
  rest = put_output(rest, err_mark, std::move(err));

  std::map<std::string_view, KeptFiles::Kept*> by_mark;
  for (KeptFiles::Kept& kept : files.files_) by_mark.emplace(kept.mark, &kept);
  const std::string_view common = files.common_mark();
  std::size_t done = 0;
  for (std::size_t at = rest.find(common); !common.empty() && at != std::string_view::npos;
       at = rest.find(common, at + 1)) {
    const auto found = by_mark.find(rest.substr(at, files.files_.front().mark.size()));
    if (found == by_mark.end()) continue;
    KeptFiles::Kept& kept = *found->second;
    parts_.push_back({.text = std::string(rest.substr(done, at - done)),
                      .file = std::move(kept.fd),
                      .size = kept.size});
    done = at + kept.mark.size();
  }
  // A mark that is not there is of a file that was refused after it was kept.
  parts_.push_back({.text = std::string(rest.substr(done))});
}

std::string_view ResultBody::put_output(std::string_view json, std::string_view mark,
                                        OutputText output) {
  const std::size_t at = json.find(mark);  // is there: a string of its own, of plain characters
  parts_.push_back({.text = std::string(json.substr(0, at)), .output = std::move(output)});
  return json.substr(at + mark.size());
}

std::uint64_t ResultBody::bytes() const {
  std::uint64_t sum = 0;
  for (const Part& part : parts_) sum += part.text.size() + (part.output ? part.output->size() : 0);
  return sum;
}

Result<std::optional<std::string>> ResultBody::next() {
  for (; at_ < parts_.size(); ++at_) {
    Part& part = parts_[at_];
    if (!part.text.empty()) return std::optional<std::string>(std::exchange(part.text, {}));
    std::string piece = part.output ? part.output->next() : std::string();
    if (piece.empty() && offset_ < part.size) {
      SBX_ASSIGN(piece, read_file(part));
    }
    if (!piece.empty()) return std::optional<std::string>(std::move(piece));
    part.output.reset();
    part.file.reset();
    offset_ = 0;
  }
  return std::optional<std::string>();
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
