// DiskWorkspace: a workspace in a throw-away directory, filled and saved by a thread of its own.
//
// What the daemon's sessions are, without daemon, store and loop: for tests of the runtime's side.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/base/unique_fd.h"
#include "runtime/workspace/workspace.h"
#include "tests/support/process.h"

namespace sbx::test {

class DiskWorkspace final : public workspace::Workspace {
 public:
  explicit DiskWorkspace(std::uint32_t payload_id);
  ~DiskWorkspace() override;

  // A path in the tree as it is now.
  [[nodiscard]] std::string at(const std::string& name) const;
  void write(const std::string& name, std::string_view content) const;
  [[nodiscard]] std::string read(const std::string& name) const;
  [[nodiscard]] bool has(const std::string& name) const;
  // The next save fails as on a full disk.
  void fill_disk() { full_ = true; }
  // The next fill writes these bytes, whatever the tree holds.
  void fill_with(std::string stream) { stream_ = std::move(stream); }
  // What a run leaves is dropped from now on.
  void forget() { wanted_ = false; }

  [[nodiscard]] std::uint32_t payload_id() const override { return payload_id_; }
  [[nodiscard]] plan::WorkspaceSize size() const override;
  void fill(UniqueFd pipe) override;
  [[nodiscard]] std::optional<Error> fill_failure() override;
  [[nodiscard]] bool wants_save() const override { return wanted_; }
  void save(UniqueFd walker) override;
  [[nodiscard]] int saved_fd() const override { return saved_.get(); }
  [[nodiscard]] Result<collect::SavedWorkspace> saved() override;

 private:
  [[nodiscard]] Result<collect::SavedWorkspace> make_generation(int walker);
  [[nodiscard]] Result<void> write_tree(int pipe) const;
  void join();

  std::uint32_t payload_id_;
  TemporaryDirectory directory_;
  UniqueFd top_;
  UniqueFd saved_;  // an eventfd
  bool full_ = false;
  std::optional<std::string> stream_;
  bool wanted_ = true;
  std::thread thread_;
  std::mutex mutex_;  // of the two below, which the thread writes
  std::optional<Error> fill_failure_;
  std::optional<Result<collect::SavedWorkspace>> outcome_;
};

}  // namespace sbx::test
