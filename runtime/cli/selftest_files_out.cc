// Attacks by what is left in /output. A table, with the columns of selftest_memory.cc; the control
// of what is planted takes it by name, in a tmpfs outside.
#include "runtime/base/escape.h"
#include "runtime/cli/selftest_run_tables.h"

namespace sbx::cli {
namespace {

using collect::CollectedFile;
using collect::Outcome;

const CollectedFile* find_file(const Outcome& outcome, std::string_view path) {
  for (const CollectedFile& file : outcome.files) {
    if (file.raw_path == path) return &file;
  }
  return nullptr;
}

bool refuses(const Outcome& outcome, std::string_view path) {
  return std::any_of(outcome.refused.begin(), outcome.refused.end(), [path](const auto& entry) {
    return entry.path == path && !entry.reason.empty();
  });
}

bool has_good_file(const Outcome& outcome) {
  const CollectedFile* const good = find_file(outcome, "good.txt");
  return good != nullptr && good->content == "good";
}

// Nothing but the good file came out, and what was planted has its reason.
bool leaves_thing(const RunSeen& seen) {
  return did_all(seen) && seen.outcome->files.size() == 1 && has_good_file(*seen.outcome) &&
         refuses(*seen.outcome, "thing");
}
bool leaves_both_names(const RunSeen& seen) {
  return leaves_thing(seen) && refuses(*seen.outcome, "one");
}

// Byte for byte, and its name for showing without anything that a terminal acts on.
bool shows_name_escaped(const RunSeen& seen) {
  if (!did_all(seen) || seen.outcome->files.size() != 2) return false;
  const CollectedFile* const named = find_file(*seen.outcome, "-rf\n\x1b]0;owned\a\xff");
  if (named == nullptr || named->content != "named") return false;
  const std::string shown = escape_for_terminal(named->path);
  return std::none_of(shown.begin(), shown.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte >= 0x7f;
  });
}

// One of the two names is the file, the other the link, whichever moment it was.
bool takes_one_of_two(const RunSeen& seen) {
  if (!did_all(seen) || !has_good_file(*seen.outcome)) return false;
  const Outcome& outcome = *seen.outcome;
  const CollectedFile* const thing = find_file(outcome, "thing");
  const CollectedFile* const mine = find_file(outcome, "mine");
  if ((thing == nullptr) == (mine == nullptr)) return false;
  return (thing == nullptr ? mine : thing)->content == "mine" &&
         refuses(outcome, thing == nullptr ? "thing" : "mine");
}

std::uint64_t bytes_out(const RunSeen& seen) {
  std::uint64_t bytes = 0;
  for (const CollectedFile& file : seen.outcome->files) bytes += file.size;
  return bytes;
}
bool takes_nothing(const RunSeen& seen) {
  return did_all(seen) && seen.outcome->files.empty() && refuses(*seen.outcome, "file0");
}
bool takes_its_share(const RunSeen& seen) {
  return did_all(seen) && bytes_out(seen) <= 65536 && !seen.outcome->refused.empty();
}
bool takes_eight(const RunSeen& seen) {
  return did_all(seen) && seen.outcome->files.size() == 8 && !seen.outcome->refused.empty();
}
bool takes_the_good_file(const RunSeen& seen) {
  return did_all(seen) && seen.outcome->files.size() == 1 && has_good_file(*seen.outcome) &&
         !seen.outcome->refused.empty();
}
bool takes_all(const RunSeen& seen) {
  return did_all(seen) && !seen.outcome->files.empty() && seen.outcome->refused.empty();
}

// Left in /output; taken by name, outside, it leads or gives elsewhere.
constexpr RunCase planted(std::string_view name, std::string_view kind,
                          bool (*held)(const RunSeen&) = leaves_thing) {
  return {kFilesOut, name, kNone,   "plant",          kind,           "", held,
          kind,      "",   nullptr, "plant_and_take", "taken by name"};
}

constexpr RunCase kFilesOutCases[] = {
    planted("link to a file", "link"),
    planted("link with ..", "up"),
    planted("link through /proc", "through"),
    planted("link to a directory", "directory"),
    planted("hard link", "hard", leaves_both_names),
    planted("named pipe", "pipe"),
    planted("name that acts on a terminal", "name", shows_name_escaped),
    planted("file swapped for a link", "swapped", takes_one_of_two),
    {kFilesOut, "sparse file", kNone, "leave_files", "1 1073741824", "fsize=2G", takes_nothing,
     "1 65536", "fsize=2G", takes_all},
    {kFilesOut, "more bytes than may come out", kNone, "leave_files", "4 32768",
     "files_bytes=64K file_bytes=64K", takes_its_share, "4 32768", "", takes_all},
    {kFilesOut, "more files than may come out", kNone, "leave_files", "20 1", "files=8",
     takes_eight, "20 1", "files=32", takes_all},
    {kFilesOut, "deep directories", kNone, "leave_tree", "40", "file_depth=4", takes_the_good_file,
     "40", "file_depth=64", takes_all},
};

}  // namespace

std::span<const RunCase> files_out_cases() {
  return kFilesOutCases;
}

}  // namespace sbx::cli
