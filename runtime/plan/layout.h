// The parts of a plan that describe the file system and the process. Stage: plan, internal.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/plan/plan.h"

namespace sbx::plan {

// Index of the first tmpfs that is filled: /code of a language, else /input (behind /tmp, /output,
// /work).
inline constexpr std::uint32_t kCodeMount = kWorkMount + 1;

// kInvalid of what the caller asked for; `part` is that in a request's own words ("limits.nofile",
// "files"), and the error's operation.
[[nodiscard]] Error refused(const char* part, std::string detail, std::string fix = {});

// Of a tmpfs: what a file of so many bytes takes.
inline constexpr std::uint64_t kPage = 4096;
[[nodiscard]] constexpr std::uint64_t pages_of(std::uint64_t bytes) {
  return (bytes + kPage - 1) / kPage;
}

// Mounts, devices, masks and, with rootfs = host, the tree of binds.
void plan_filesystem(Plan& plan, bool has_code, bool has_inputs);
// The fixed environment, then the language's, then the request's.
[[nodiscard]] Result<void> plan_environment(Plan& plan, const policy::Language* language,
                                            const Request& request);
// argv and where to look for it.
[[nodiscard]] Result<void> plan_program(Plan& plan, const policy::Language* language,
                                        const Request& request);
// Layers as planned, the steps to skip or to forgive; kHost when a required layer is not to be had.
[[nodiscard]] Result<void> plan_layers(Plan& plan, const HostFacts& host);

}  // namespace sbx::plan
