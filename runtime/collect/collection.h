// Files out of /output, collected after everything inside is dead. Stage: collect.
//
// Two halves. `serve_collection` runs in a process forked by the spawner, inside the outer user
// namespace, where the payload's files can be read whatever their owner: it walks the tree below
// one directory fd and passes each accepted regular file's descriptor, or a refusal with its
// reason, over a SOCK_SEQPACKET socket. `Collection` is the supervisor's half: it receives, hashes
// and hands each file to a sink, and never resolves a path of the payload's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/base/unique_fd.h"
#include "runtime/collect/outcome.h"

namespace sbx::collect {

struct CollectLimits {
  std::uint32_t files = 64;
  std::uint64_t file_bytes = 0;
  std::uint64_t files_bytes = 0;
  std::uint32_t file_depth = 16;
};

// What bounds a walk whatever the tree holds. Entries past a bound are counted, not named.
inline constexpr std::uint64_t kEntriesPerFile = 4;  // entries looked at: 4 x files + 4096
inline constexpr std::uint64_t kEntriesBase = 4096;
inline constexpr std::uint64_t kMaxNamesRead = 131072;    // names read from directories
inline constexpr std::uint32_t kMaxRefusalsListed = 128;  // refused entries named one by one
inline constexpr std::chrono::seconds kMaxWalkTime{5};  // CPU time, so a slow reader costs nothing
inline constexpr std::uint64_t kHashedPerStep = 1 << 20;  // a millisecond or two of a shared thread

// Walks below `directory_fd` (O_PATH will do): level by level, names of a directory in byte order,
// so that files near the top come first where a limit cuts. Sends, and blocks while the reader is
// slow; never throws; returns when the walk is over or the peer is gone.
//
// SECURITY: every entry is hostile: openat2 BENEATH|NO_SYMLINKS|NO_MAGICLINKS|NO_XDEV,
// O_NONBLOCK|O_NOFOLLOW, fstat: regular, one link. Whoever calls guarantees that everything inside
// is dead; were it not, a file might change under the reader, which is noticed, but no other file
// would ever be reached.
void serve_collection(int directory_fd, int socket, const CollectLimits& limits);

enum class CollectMode { kContent, kList, kNone };

// Where accepted files go. Called once per file, in the order of the walk, with a readable
// descriptor at offset 0 (borrowed) of a regular file that has exactly `file.size` bytes. Fills
// what it knows of `file` (content, saved_as). An error becomes a refused entry. An empty function
// lists only.
using FileSink = std::function<Result<void>(CollectedFile& file, int fd)>;

// Keeps the bytes in `file.content`.
[[nodiscard]] FileSink content_sink();

class Collection {
 public:
  Collection(UniqueFd socket, FileSink sink);
  ~Collection();
  Collection(const Collection&) = delete;
  Collection& operator=(const Collection&) = delete;

  // Poll for POLLIN.
  [[nodiscard]] int fd() const;
  // In the middle of a large file: call step() again, without waiting for fd().
  [[nodiscard]] bool busy() const;
  // Takes what is there without blocking on the socket, at most one accepted file, and hashes at
  // most kHashedPerStep bytes of it (the sink blocks for what it reads). True when the walk has
  // ended. An error means that the walker died or broke the protocol: what came before is kept. Do
  // not call it again then.
  [[nodiscard]] Result<bool> step();

  // Complete, and sorted by the names' bytes, once step() has returned true or an error.
  [[nodiscard]] std::vector<CollectedFile>& files();
  [[nodiscard]] std::vector<RefusedEntry>& refused();
  // Names of limits for which entries were refused: "files", "file_bytes", "files_bytes",
  // "file_depth".
  [[nodiscard]] const std::vector<std::string>& limits_hit() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sbx::collect
