#include "runtime/workspace/fill_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/sys.h"
#include "runtime/plan/flat_plan.h"
#include "runtime/workspace/tree.h"

namespace sbx::workspace {
namespace {

using plan::FillHeader;
using plan::FillKind;

constexpr std::size_t kFillPage = 4096;
constexpr std::size_t kChunk = 64 * 1024;

// Gathers small pieces, so that a tree of small files costs few system calls.
class PipeWriter {
 public:
  explicit PipeWriter(int pipe) : pipe_(pipe) { buffer_.reserve(2 * kChunk); }

  Result<void> put(std::string_view bytes) {
    buffer_ += bytes;
    return buffer_.size() >= kChunk ? flush() : Result<void>();
  }
  template <typename T>
  Result<void> put_value(const T& value) {
    return put({reinterpret_cast<const char*>(&value), sizeof value});
  }
  Result<void> flush() {
    SBX_TRY(sys::write_all(pipe_, buffer_));
    buffer_.clear();
    return {};
  }

 private:
  int pipe_;
  std::string buffer_;
};

bool is_zero(std::string_view page) {
  return page[0] == '\0' && std::memcmp(page.data(), page.data() + 1, page.size() - 1) == 0;
}

// The next run of pages of `bytes` that are not all zeros, from `from` on; empty at the end. Pages
// are counted from the start of `bytes`, which stands at the start of a page of the file.
std::string_view next_run(std::string_view bytes, std::size_t from) {
  while (from < bytes.size() && is_zero(bytes.substr(from, kFillPage))) from += kFillPage;
  if (from >= bytes.size()) return {};
  std::size_t end = from;
  while (end < bytes.size() && !is_zero(bytes.substr(end, kFillPage))) end += kFillPage;
  return bytes.substr(from, std::min(end, bytes.size()) - from);
}

class FillStream final : public Visitor {
 public:
  FillStream(std::uint32_t mount, int pipe) : mount_(mount), out_(pipe) {}

  Result<void> visit(const Entry& entry) override {
    if (S_ISDIR(entry.info.st_mode)) return put_header(entry, FillKind::kDirectory, 0);
    if (S_ISLNK(entry.info.st_mode)) return put_symlink(entry);
    if (!S_ISREG(entry.info.st_mode)) return invalid(entry.path + " is a special file");
    if (entry.info.st_nlink > 1) {
      const auto [first, is_new] = linked_.emplace(entry.info.st_ino, entry.path);
      if (!is_new) return put_hard_link(entry, first->second);
    }
    return put_file(entry);
  }

  Result<void> finish() {
    SBX_TRY(out_.put_value(FillHeader{}));
    return out_.flush();
  }

 private:
  Result<void> put_header(const Entry& entry, FillKind kind, std::uint64_t size) {
    FillHeader header;
    header.kind = kind;
    header.tmpfs = mount_;
    header.mode = entry.info.st_mode & 0777U;
    header.path_size = static_cast<std::uint32_t>(entry.path.size());
    header.size = size;
    if (kind == FillKind::kSparseFile) {
      header.mtime_seconds = entry.info.st_mtim.tv_sec;
      header.mtime_nanoseconds = static_cast<std::uint32_t>(entry.info.st_mtim.tv_nsec);
    }
    SBX_TRY(out_.put_value(header));
    return out_.put(entry.path);
  }

  Result<void> put_symlink(const Entry& entry) {
    char target[kMaxPathBytes + 1];
    const ssize_t size = ::readlinkat(entry.directory, entry.name.c_str(), target, sizeof target);
    if (size < 0) return sys_error("readlink", entry.path);
    const std::string_view text(target, static_cast<std::size_t>(size));
    SBX_TRY(put_header(entry, FillKind::kSymlink, text.size()));
    return out_.put(text);
  }

  Result<void> put_hard_link(const Entry& entry, const std::string& first) {
    SBX_TRY(put_header(entry, FillKind::kHardLink, first.size()));
    return out_.put(first);
  }

  Result<void> put_file(const Entry& entry) {
    SBX_ASSIGN(const UniqueFd file, open_inside(entry.directory, entry.name, O_RDONLY));
    const auto size = static_cast<std::uint64_t>(entry.info.st_size);
    SBX_TRY(put_header(entry, FillKind::kSparseFile, size));
    for (std::uint64_t offset = 0;;) {
      SBX_ASSIGN(const Extent extent, next_data(file.get(), offset, size));
      if (extent.size == 0) break;
      offset = extent.offset + extent.size;
      if (auto put = put_extent(file.get(), extent); !put) {
        return unexpected(std::move(put).error().with_context(entry.path));
      }
    }
    return out_.put_value(plan::FillExtent{});
  }

  Result<void> put_extent(int file, Extent extent) {
    // File systems have blocks of less than a page, too.
    const std::uint64_t into_page = extent.offset % kFillPage;
    extent.offset -= into_page;
    extent.size += into_page;
    while (extent.size > 0) {
      const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(extent.size, kChunk));
      SBX_TRY(read_chunk(file, extent.offset, part));
      for (std::string_view run = next_run({chunk_, part}, 0); !run.empty();) {
        const auto at = static_cast<std::size_t>(run.data() - chunk_);
        SBX_TRY(out_.put_value(plan::FillExtent{extent.offset + at, run.size()}));
        SBX_TRY(out_.put(run));
        run = next_run({chunk_, part}, at + run.size());
      }
      extent.offset += part;
      extent.size -= part;
    }
    return {};
  }

  Result<void> read_chunk(int file, std::uint64_t offset, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const ssize_t got =
          ::pread(file, chunk_ + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return sys_error("pread");
      if (got == 0) return invalid("became shorter while it was read");
      done += static_cast<std::size_t>(got);
    }
    return {};
  }

  std::uint32_t mount_;
  PipeWriter out_;
  std::map<ino_t, std::string> linked_;  // files with several names, by their first
  char chunk_[kChunk];
};

}  // namespace

Result<void> write_fill_stream(int tree, std::uint32_t mount, int pipe) {
  FillStream stream(mount, pipe);
  SBX_TRY(walk(tree, stream));
  return stream.finish();
}

}  // namespace sbx::workspace
