#include "runtime/workspace/listing.h"

#include <sys/stat.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "runtime/workspace/tree.h"

namespace sbx::workspace {
namespace {

EntryKind kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return EntryKind::kDirectory;
  return S_ISLNK(mode) ? EntryKind::kSymlink : EntryKind::kFile;
}

class Page final : public Visitor {
 public:
  Page(const std::string& after, std::size_t max_entries, std::size_t max_bytes)
      : after_(after), max_entries_(max_entries), max_bytes_(max_bytes) {}

  Result<void> visit(const Entry& entry) override {
    if (entry.path <= after_ || (cut_ && entry.path > *cut_)) return {};
    SBX_ASSIGN(ListedEntry listed, describe(entry));
    bytes_ += size_of(listed);
    entries_.emplace(entry.path, std::move(listed));
    while (entries_.size() > 1 && (entries_.size() > max_entries_ || bytes_ > max_bytes_)) {
      const auto last = std::prev(entries_.end());
      bytes_ -= size_of(last->second);
      cut_ = last->first;
      entries_.erase(last);
    }
    return {};
  }

  Listing take() {
    Listing listing;
    for (auto& [path, entry] : entries_) listing.entries.push_back(std::move(entry));
    listing.more = cut_.has_value();
    return listing;
  }

 private:
  static std::size_t size_of(const ListedEntry& entry) {
    return entry.path.size() + entry.target.size();
  }

  static Result<ListedEntry> describe(const Entry& entry) {
    ListedEntry listed;
    listed.path = entry.path;
    listed.kind = kind_of(entry.info.st_mode);
    listed.mode = entry.info.st_mode & 0777U;
    listed.modified = entry.info.st_mtim;
    if (listed.kind == EntryKind::kFile) {
      listed.size = static_cast<std::uint64_t>(entry.info.st_size);
    }
    if (listed.kind != EntryKind::kSymlink) return listed;
    char target[kMaxPathBytes + 1];
    const ssize_t size = ::readlinkat(entry.directory, entry.name.c_str(), target, sizeof target);
    if (size < 0) return sys_error("readlink", entry.path);
    listed.target.assign(target, static_cast<std::size_t>(size));
    return listed;
  }

  const std::string& after_;
  std::size_t max_entries_, max_bytes_;
  std::map<std::string, ListedEntry> entries_;
  std::size_t bytes_ = 0;
  std::optional<std::string> cut_;  // the first that the page does not hold: nothing beyond it does
};

}  // namespace

std::string_view kind_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return "file";
    case EntryKind::kDirectory:
      return "directory";
    case EntryKind::kSymlink:
      return "symlink";
  }
  return "file";
}

Result<Listing> list_entries(int tree, const std::string& after, std::size_t max_entries,
                             std::size_t max_bytes) {
  Page page(after, max_entries, max_bytes);
  SBX_TRY(walk(tree, page));
  return page.take();
}

}  // namespace sbx::workspace
