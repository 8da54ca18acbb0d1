#include "tests/integration/disk_workspace.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "runtime/base/places.h"
#include "runtime/base/sys.h"
#include "runtime/plan/plan.h"
#include "runtime/workspace/fill_stream.h"
#include "runtime/workspace/generation.h"
#include "runtime/workspace/tree.h"

namespace sbx::test {

DiskWorkspace::DiskWorkspace(std::uint32_t payload_id)
    : payload_id_(payload_id),
      top_(::open(directory_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
      saved_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  EXPECT_EQ(::mkdirat(top_.get(), "tree", 0700), 0);
}

DiskWorkspace::~DiskWorkspace() {
  join();
}

void DiskWorkspace::join() {
  if (thread_.joinable()) thread_.join();
}

std::string DiskWorkspace::at(const std::string& name) const {
  return directory_.path() + "/tree/" + name;
}

void DiskWorkspace::write(const std::string& name, std::string_view content) const {
  const auto file = sys::open(at(name), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  ASSERT_TRUE(file) << to_string(file.error());
  ASSERT_TRUE(sys::write_all(file->get(), content));
}

std::string DiskWorkspace::read(const std::string& name) const {
  const auto content = sys::read_file(at(name), std::size_t{1} << 30);
  return content ? *content : "<" + to_string(content.error()) + ">";
}

bool DiskWorkspace::has(const std::string& name) const {
  struct stat info{};
  return ::lstat(at(name).c_str(), &info) == 0;
}

plan::WorkspaceSize DiskWorkspace::size() const {
  const auto tree = sys::open(at(""), O_RDONLY | O_DIRECTORY);
  auto size = tree ? workspace::measure(tree->get()) : Result<plan::WorkspaceSize>(tree.error());
  EXPECT_TRUE(size) << to_string(size.error());
  return size ? *size : plan::WorkspaceSize{};
}

void DiskWorkspace::fill(UniqueFd pipe) {
  join();
  EXPECT_TRUE(sys::set_nonblocking(pipe.get(), false));
  thread_ = std::thread([this, out = std::move(pipe)]() mutable {
    auto written = stream_ ? sys::write_all(out.get(), *stream_) : write_tree(out.get());
    // Known before the pipe closes: what follows inside is the consequence.
    if (!written) {
      const std::lock_guard lock(mutex_);
      fill_failure_ = std::move(written).error();
    }
    out.reset();
  });
}

Result<void> DiskWorkspace::write_tree(int pipe) const {
  SBX_ASSIGN(const UniqueFd tree, sys::open(at(""), O_RDONLY | O_DIRECTORY));
  return workspace::write_fill_stream(tree.get(), plan::kWorkMount, pipe);
}

std::optional<Error> DiskWorkspace::fill_failure() {
  const std::lock_guard lock(mutex_);
  return fill_failure_;
}

Result<collect::SavedWorkspace> DiskWorkspace::make_generation(int walker) {
  if (full_) {
    errno = ENOSPC;
    return name_disk_failure(sys_error("pwrite"));
  }
  if (::mkdirat(top_.get(), "next", 0700) != 0) return sys_error("mkdir");
  SBX_ASSIGN(const UniqueFd old, sys::open_at(top_.get(), "tree", O_RDONLY | O_DIRECTORY));
  SBX_ASSIGN(const UniqueFd next, sys::open_at(top_.get(), "next", O_RDONLY | O_DIRECTORY));
  SBX_ASSIGN(const plan::WorkspaceSize old_size, workspace::measure(old.get()));
  auto made = workspace::receive_generation(walker, old.get(), old_size, next.get());
  if (made && ::renameat2(top_.get(), "tree", top_.get(), "next", RENAME_EXCHANGE) != 0) {
    return sys_error("renameat2");
  }
  SBX_TRY(workspace::remove_tree(top_.get(), "next"));
  if (!made) return unexpected(std::move(made).error());
  return collect::SavedWorkspace{.saved = true,
                                 .size = made->size.bytes,
                                 .inodes = made->size.inodes,
                                 .refused = std::move(made->refused)};
}

void DiskWorkspace::save(UniqueFd walker) {
  join();
  thread_ = std::thread([this, socket = std::move(walker)] {
    auto outcome = make_generation(socket.get());
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
    (void)::eventfd_write(saved_.get(), 1);
  });
}

Result<collect::SavedWorkspace> DiskWorkspace::saved() {
  join();
  std::uint64_t count = 0;
  (void)::eventfd_read(saved_.get(), &count);
  const std::lock_guard lock(mutex_);
  if (outcome_) return *std::exchange(outcome_, std::nullopt);
  return collect::SavedWorkspace{.reason = "it was forgotten"};
}

}  // namespace sbx::test
