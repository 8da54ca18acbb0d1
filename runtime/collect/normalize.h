// Canonical equivalence of names (Unicode UAX #15). Stage: collect. Pure.
#pragma once

#include <string>
#include <string_view>

namespace sbx::collect {

// A key that two texts share exactly when they are equal after NFC. It is the canonical
// decomposition (NFD): two texts have the same NFC exactly when they have the same NFD, and this
// way no composition table is needed. Bytes that are not UTF-8 stay as they are.
[[nodiscard]] std::string canonical_key(std::string_view text);

}  // namespace sbx::collect
