// The matrix in words: docs/attack-matrix.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/adversarial/matrix.h"

namespace sbx::test {

// Why fewer than two layers stop this attack by themselves: a key of the legend; "" where two do.
[[nodiscard]] std::string_view reason_for_one(std::string_view attack);

// What its last cell says: also where the attack does not apply on this host.
[[nodiscard]] std::string_view reason_for_row(const MatrixRow& row);

// The whole file. An attack that does not apply on this host has the line that it has in
// `reviewed`.
[[nodiscard]] std::string matrix_text(const std::vector<MatrixRow>& rows,
                                      const std::string& reviewed);

}  // namespace sbx::test
