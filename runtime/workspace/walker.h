// The walker of a run's /work. Stage: workspace; runs in a process that the spawner forks.
#pragma once

namespace sbx::workspace {

// Tells over `socket` everything below `directory` (O_PATH will do), each file with a descriptor.
// Blocks while the reader is slow; never throws; returns when the walk is over or the peer is gone.
// How much there can be is bounded by the tmpfs itself, which counts inodes (a further name of a
// file, too).
//
// SECURITY: every entry is hostile; see tree.h. Whoever calls guarantees that everything inside is
// dead.
void serve_walk(int directory, int socket);

}  // namespace sbx::workspace
