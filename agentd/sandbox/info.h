// What sbxd says of itself (GET /v1/info): what a model is told is generated from this. Values and
// a parser.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/result.h"

namespace agentd::sandbox {

struct LanguageInfo {
  std::string name{};
  std::vector<std::string> aliases{};
  std::string file{};                                           // the program's: "/code/main.py"
  std::vector<std::pair<std::string, std::string>> packages{};  // name, version or ""
  std::string syntax_error_pattern{};
};

struct SandboxInfo {
  std::string version{};
  std::vector<LanguageInfo> languages{};
  double wall_seconds = 0;  // of a run that asks for no figure; agentd's ask (RunStep::learn())
  double cpus = 0;
  std::uint64_t memory = 0;
  std::uint64_t pids = 0;
  std::uint64_t input = 0;
  std::uint64_t output = 0;
  std::uint64_t work = 0;
  std::uint64_t tmp = 0;
  bool network = false;            // false: there is none
  std::uint64_t stdout_bytes = 0;  // what is kept of it, unless a run asks for another figure,
  std::uint64_t stdout_most = 0;   // and the most that one may ask for
  // Required layers that do not hold: empty for a real sandbox.
  std::vector<std::string> missing_layers{};

  // By name or alias; null: none.
  [[nodiscard]] const LanguageInfo* language(std::string_view name) const;
};

// kInternal when it is not what sbxd sends.
[[nodiscard]] sbx::Result<SandboxInfo> parse_info(std::string_view json);

}  // namespace agentd::sandbox
