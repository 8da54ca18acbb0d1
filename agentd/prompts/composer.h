// Composer: the messages that a model is sent, made of prompt files and of text of strangers. Pure.
//
// Built once at start from the versions that the configuration names; constant afterwards.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agentd/envelope/code_block.h"
#include "agentd/prompts/prompt_file.h"
#include "agentd/providers/provider.h"
#include "agentd/sandbox/info.h"
#include "runtime/base/result.h"

namespace agentd::prompts {

inline constexpr std::size_t kMaxSystemBytes = 4096;
inline constexpr std::size_t kMaxEvidenceBytes = 2400;
inline constexpr std::size_t kMaxToolOutputBytes = 4000;

struct PromptVersions {
  std::string codegen = "codegen.v1";  // with ".python" or ".javascript" behind
  std::string repair = "repair.v1";
  std::string tools = "tools.v1";
};

// What a repair prompt is about.
enum class RepairKind : std::uint8_t { kFailed, kEnvelope, kNoCode };

struct Repair {
  RepairKind kind = RepairKind::kFailed;
  std::string problem{};   // a sentence of ours, or of the runtime's: no text of the program in it
  std::string evidence{};  // the program's own words; wrapped here
};

class Composer {
 public:
  // kInvalid for a version that is not shipped.
  [[nodiscard]] static sbx::Result<Composer> make(const PromptVersions& versions);

  [[nodiscard]] std::string codegen_name(envelope::Language language) const;
  [[nodiscard]] const PromptVersions& versions() const { return versions_; }

  // `files`: describe_files() of what is attached.
  [[nodiscard]] std::vector<providers::Message> codegen(envelope::Language language,
                                                        std::string_view text,
                                                        std::string_view files,
                                                        const sandbox::SandboxInfo& info) const;
  // The message that follows the model's last reply.
  [[nodiscard]] providers::Message repair(envelope::Language language, const Repair& repair) const;

  [[nodiscard]] std::vector<providers::Message> tools(std::string_view task, std::string_view files,
                                                      const sandbox::SandboxInfo& info) const;
  [[nodiscard]] providers::Tool run_code_tool(const sandbox::SandboxInfo& info) const;

 private:
  Composer() = default;

  PromptVersions versions_;
  std::array<PromptFile, 2> codegen_;  // by Language
  PromptFile repair_;
  PromptFile tools_;
};

// A true upper bound of what a model will count as input: each token is at least one byte.
[[nodiscard]] std::size_t token_bound(std::span<const providers::Message> messages,
                                      std::span<const providers::Tool> tools);

}  // namespace agentd::prompts
