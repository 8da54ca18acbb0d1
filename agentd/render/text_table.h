// A table for a terminal: aligned columns, numbers to the right, everything escaped. Pure.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace agentd::render {

struct TableLimits {
  std::size_t rows = 40;
  std::size_t columns = 12;
  std::size_t cell = 40;  // columns of the terminal that one cell may take
};

// `data` is {"columns": […], "rows": [[…], …]}. What the limits leave out is counted on a last
// line. SECURITY: cells and names of a hostile program: they can move no cursor and start no escape
// sequence.
[[nodiscard]] std::string draw_table(const nlohmann::ordered_json& data,
                                     const TableLimits& limits = {});

}  // namespace agentd::render
