// A session's directory as the store has it (tree, next), and saves into it by a forked walker.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <optional>
#include <string>

#include "runtime/workspace/generation.h"
#include "runtime/workspace/tree.h"
#include "runtime/workspace/walker.h"
#include "tests/unit/collect/tree.h"

namespace sbx::workspace::test {

using collect::TemporaryTree;

inline struct stat status_of(const std::string& path) {
  struct stat info{};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}

// Receives what the walker of `left` tells. `killed`: the walker dies before it says anything.
inline Result<Generation> receive(const TemporaryTree& left, int old, int next,
                                  bool killed = false) {
  SBX_ASSIGN(auto sockets, sys::seqpacket_pair());
  SBX_ASSIGN(const plan::WorkspaceSize old_size, measure(old));
  const pid_t walker = ::fork();
  if (walker == 0) {
    sockets.first.reset();
    if (!killed) serve_walk(left.fd(), sockets.second.get());
    ::_exit(0);
  }
  sockets.second.reset();
  auto generation = receive_generation(sockets.first.get(), old, old_size, next);
  sockets.first.reset();
  int status = 0;
  EXPECT_EQ(::waitpid(walker, &status, 0), walker);
  EXPECT_EQ(status, 0) << "the walker crashed";
  return generation;
}

class Disk {
 public:
  Disk() { directory_.directory("tree"); }

  [[nodiscard]] std::string at(const std::string& name) const {
    return directory_.at("tree/" + name);
  }
  [[nodiscard]] UniqueFd tree() const { return open("tree"); }
  [[nodiscard]] const TemporaryTree& directory() const { return directory_; }
  [[nodiscard]] std::string read(const std::string& name) const {
    return directory_.read("tree/" + name);
  }
  [[nodiscard]] bool has(const std::string& name) const {
    struct stat info{};
    return ::lstat(at(name).c_str(), &info) == 0;
  }

  // What the store does after a run; the new generation becomes the tree.
  Generation save(const TemporaryTree& left) {
    directory_.directory("next");
    auto made = receive(left, open("tree").get(), open("next").get());
    EXPECT_TRUE(made) << to_string(made.error());
    if (!made) return {};
    EXPECT_EQ(::renameat2(AT_FDCWD, directory_.at("tree").c_str(), AT_FDCWD,
                          directory_.at("next").c_str(), RENAME_EXCHANGE),
              0);
    EXPECT_TRUE(remove_tree(directory_.fd(), "next"));
    return *std::move(made);
  }

 private:
  [[nodiscard]] UniqueFd open(const std::string& name) const {
    auto fd = sys::open(directory_.at(name), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    return fd ? *std::move(fd) : UniqueFd();
  }

  TemporaryTree directory_;
};

inline std::string reason_of(const Generation& generation, const std::string& path) {
  for (const collect::RefusedEntry& entry : generation.refused) {
    if (entry.path == path) return entry.reason;
  }
  return "<not refused>";
}

}  // namespace sbx::workspace::test
