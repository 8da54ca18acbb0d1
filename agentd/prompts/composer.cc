#include "agentd/prompts/composer.h"

#include <nlohmann/json.hpp>

#include "agentd/embedded/embedded.h"
#include "agentd/prompts/data_wrapper.h"
#include "agentd/prompts/environment.h"

namespace agentd::prompts {
namespace {

using envelope::Language;
using providers::Message;
using providers::Role;

constexpr std::size_t kTokensPerMessage = 16;

sbx::Result<PromptFile> load(const std::string& name) {
  const std::string_view text = embedded::find(embedded::prompts(), name);
  if (text.empty()) {
    std::string known;
    for (const embedded::File& each : embedded::prompts()) {
      known += (known.empty() ? "" : ", ") + std::string(each.name);
    }
    return sbx::invalid("no prompt is called " + name, "there are " + known);
  }
  auto file = parse_prompt(text);
  if (!file) return std::move(file).error().with_context("prompt " + name);
  return file;
}

Role role_of(std::string_view section) {
  if (section == "system") return Role::kSystem;
  return section == "assistant" ? Role::kAssistant : Role::kUser;
}

std::string request_text(std::string_view text, std::string_view files) {
  std::string request = wrap_data(text);
  if (files.empty()) return request;
  return request + "\n\nAttached files, each with its first lines:\n" + wrap_data(files);
}

std::vector<Message> messages_of(const PromptFile& file,
                                 const std::map<std::string, std::string, std::less<>>& values) {
  std::vector<Message> messages;
  for (const auto& [name, body] : file.sections) {
    if (name != "system" && name != "user" && name != "assistant") continue;
    messages.push_back({.role = role_of(name), .text = fill(body, values)});
  }
  return messages;
}

}  // namespace

sbx::Result<Composer> Composer::make(const PromptVersions& versions) {
  Composer composer;
  composer.versions_ = versions;
  for (const Language language : {Language::kPython, Language::kJavaScript}) {
    SBX_ASSIGN(composer.codegen_[static_cast<std::size_t>(language)],
               load(composer.codegen_name(language)));
  }
  SBX_ASSIGN(composer.repair_, load(versions.repair));
  SBX_ASSIGN(composer.tools_, load(versions.tools));
  return composer;
}

std::string Composer::codegen_name(Language language) const {
  return versions_.codegen + "." + std::string(to_string(language));
}

std::vector<Message> Composer::codegen(Language language, std::string_view text,
                                       std::string_view files,
                                       const sandbox::SandboxInfo& info) const {
  return messages_of(codegen_[static_cast<std::size_t>(language)],
                     {{"environment", describe_environment(info, to_string(language))},
                      {"request", request_text(text, files)}});
}

Message Composer::repair(Language language, const Repair& repair) const {
  constexpr std::string_view kSections[] = {"failed", "envelope", "no_code"};
  std::string evidence = "It printed nothing.";
  if (!repair.evidence.empty()) {
    evidence = wrap_data(head_and_tail(repair.evidence, kMaxEvidenceBytes));
  }
  return {.role = Role::kUser,
          .text = fill(repair_.section(kSections[static_cast<std::size_t>(repair.kind)]),
                       {{"problem", repair.problem},
                        {"evidence", std::move(evidence)},
                        {"language", std::string(to_string(language))}})};
}

std::vector<Message> Composer::tools(std::string_view task, std::string_view files,
                                     const sandbox::SandboxInfo& info) const {
  return messages_of(tools_, {{"environment", describe_environment(info)},
                              {"request", request_text(task, files)}});
}

providers::Tool Composer::run_code_tool(const sandbox::SandboxInfo& info) const {
  std::vector<std::string> languages;
  for (const sandbox::LanguageInfo& language : info.languages) languages.push_back(language.name);
  const nlohmann::ordered_json schema = {
      {"type", "object"},
      {"properties",
       {{"code", {{"type", "string"}, {"description", tools_.section("run_code.code")}}},
        {"language",
         {{"type", "string"},
          {"enum", languages},
          {"description", tools_.section("run_code.language")}}}}},
      {"required", {"code", "language"}},
      {"additionalProperties", false}};
  return {.name = "run_code",
          .description = std::string(tools_.section("run_code")),
          .schema_json = schema.dump()};
}

std::size_t token_bound(std::span<const Message> messages, std::span<const providers::Tool> tools) {
  std::size_t bound = 0;
  for (const Message& message : messages) {
    bound += message.text.size() + message.tool_call_id.size() + kTokensPerMessage;
    for (const providers::ToolCall& call : message.tool_calls) {
      bound += call.id.size() + call.name.size() + call.arguments.size() + kTokensPerMessage;
    }
  }
  for (const providers::Tool& tool : tools) {
    bound +=
        tool.name.size() + tool.description.size() + tool.schema_json.size() + kTokensPerMessage;
  }
  return bound;
}

}  // namespace agentd::prompts
