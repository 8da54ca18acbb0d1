// The bytes of sbx-probe, a small static program built beside sbx-run and carried in it, so that
// selftest needs nothing of the image. Stage: edge (selftest, doctor).
#pragma once

#include <cstdint>
#include <span>

namespace sbx::cli {

[[nodiscard]] std::span<const std::uint8_t> probe_program();

}  // namespace sbx::cli
