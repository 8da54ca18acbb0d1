// A throw-away directory, ways to plant things in it, and one run of the forked walker over it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/sys.h"
#include "runtime/collect/collection.h"

namespace sbx::collect {

class TemporaryTree {
 public:
  explicit TemporaryTree(const std::string& parent = "/tmp")
      : path_(parent + "/test-sbx-collect-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
    fd_ = UniqueFd(::open(path_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  TemporaryTree(const TemporaryTree&) = delete;
  TemporaryTree& operator=(const TemporaryTree&) = delete;
  ~TemporaryTree() {
    // rm copes with trees deeper than any path can name.
    const std::string command = "rm -rf " + path_;
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string at(std::string_view name) const {
    return path_ + "/" + std::string(name);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

  void write(std::string_view name, std::string_view content) const {
    auto file = sys::open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    ASSERT_TRUE(file) << to_string(file.error());
    ASSERT_TRUE(sys::write_all(file->get(), content));
  }
  void write_sparse(std::string_view name, off_t size) const {
    auto file = sys::open(at(name), O_WRONLY | O_CREAT, 0644);
    ASSERT_TRUE(file);
    ASSERT_EQ(::ftruncate(file->get(), size), 0);
  }
  void directory(std::string_view name) const {
    ASSERT_EQ(::mkdir(at(name).c_str(), 0755), 0) << name;
  }
  void symlink(const std::string& target, std::string_view name) const {
    ASSERT_EQ(::symlink(target.c_str(), at(name).c_str()), 0);
  }
  void socket(std::string_view name) const {
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string target = at(name);
    ASSERT_LT(target.size(), sizeof address.sun_path);
    std::copy(target.begin(), target.end(), address.sun_path);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  [[nodiscard]] std::string read(std::string_view name) const {
    auto content = sys::read_file(at(name), 1U << 20);
    return content ? *content : "<" + to_string(content.error()) + ">";
  }

 private:
  std::string path_;
  UniqueFd fd_;
};

struct Walk {
  std::vector<CollectedFile> files;
  std::vector<RefusedEntry> refused;
  std::vector<std::string> limits_hit;
  std::optional<Error> error;

  [[nodiscard]] std::vector<std::string> paths() const {
    std::vector<std::string> names;
    for (const auto& file : files) names.push_back(file.path);
    return names;
  }
  [[nodiscard]] std::string reason(std::string_view path) const {
    for (const auto& entry : refused) {
      if (entry.path == path) return entry.reason;
    }
    return "<not refused>";
  }
  [[nodiscard]] const CollectedFile* find(std::string_view path) const {
    for (const auto& file : files) {
      if (file.path == path) return &file;
    }
    return nullptr;
  }
};

inline CollectLimits default_limits() {
  return {.files = 64, .file_bytes = 16U << 20, .files_bytes = 32U << 20, .file_depth = 16};
}

// Receives until the walk ends. Fails the test when nothing comes for a minute.
inline Walk receive(UniqueFd socket, FileSink sink) {
  Walk walk;
  Collection collection(std::move(socket), std::move(sink));
  for (;;) {
    pollfd wait{collection.fd(), POLLIN, 0};
    if (!collection.busy() && ::poll(&wait, 1, 60'000) != 1) {
      ADD_FAILURE() << "the walker is stuck";
      break;
    }
    auto done = collection.step();
    if (!done) walk.error = done.error();
    if (!done || *done) break;
  }
  walk.files = std::move(collection.files());
  walk.refused = std::move(collection.refused());
  walk.limits_hit = collection.limits_hit();
  return walk;
}

// As in a real run: the walker in a process of its own, `prepare` called in it first.
inline Walk collect_tree(const TemporaryTree& tree, const CollectLimits& limits = default_limits(),
                         FileSink sink = content_sink(),
                         const std::function<void()>& prepare = {}) {
  auto sockets = sys::seqpacket_pair();
  if (!sockets) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    sockets->first.reset();
    if (prepare) prepare();
    serve_collection(tree.fd(), sockets->second.get(), limits);
    ::_exit(0);
  }
  sockets->second.reset();
  Walk walk = receive(std::move(sockets->first), std::move(sink));
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the walker crashed";
  return walk;
}

}  // namespace sbx::collect
