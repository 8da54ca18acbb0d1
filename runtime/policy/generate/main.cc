// sbx-policyc --arch x86_64|aarch64 --data DIR --out FILE
//
// Reads DIR/{profiles,seccomp,languages}/*.toml and writes runtime/policy/shipped.cc. Build tool,
// never installed, so that sbx-run needs neither a TOML parser nor libseccomp for a shipped
// profile. Runs on the build machine; --arch is the machine that the policies are for.
#include <fmt/core.h>
#include <linux/audit.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <map>

#include "runtime/base/sys.h"
#include "runtime/base/toml.h"
#include "runtime/policy/generate/emit.h"
#include "runtime/policy/language_file.h"
#include "runtime/policy/profile.h"

namespace sbx::policy {
namespace {

namespace fs = std::filesystem;

using NamedText = std::pair<std::string, std::string>;

// All *.toml of `directory` as name and text, in the order of their names.
Result<std::vector<NamedText>> read_folder(const fs::path& root, const std::string& folder) {
  std::vector<NamedText> files;
  for (const auto& entry : fs::directory_iterator(root / folder)) {
    if (entry.path().extension() != ".toml") continue;
    SBX_ASSIGN(auto text, sys::read_file(entry.path().string(), kMaxTomlBytes));
    files.emplace_back(folder + "/" + entry.path().filename().string(), std::move(text));
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) return invalid((root / folder).string() + ": no *.toml");
  return files;
}

// A shipped profile or language is found by its file name, so the two must be the same.
Result<void> check_name(const std::string& file, const std::string& name) {
  if (fs::path(file).stem() == name) return {};
  return invalid(fmt::format("{}: key 'name': '{}' is not the file's name", file, name));
}

Result<void> check_distinct(const std::vector<Language>& languages) {
  std::map<std::string, std::string> owners;
  for (const Language& language : languages) {
    auto words = language.aliases;
    words.push_back(language.name);
    words.insert(words.end(), language.extensions.begin(), language.extensions.end());
    for (const std::string& word : words) {
      if (owners.emplace(word, language.name).second) continue;
      return invalid(fmt::format("languages: '{}' belongs to {} already", word, owners[word]));
    }
  }
  return {};
}

Result<PolicyData> read_data(const fs::path& root, std::uint32_t audit_arch) {
  PolicyData data;
  SBX_ASSIGN(data.seccomp, read_folder(root, "seccomp"));
  const std::vector<SeccompSource> seccomp(data.seccomp.begin(), data.seccomp.end());
  SBX_ASSIGN(const auto profiles, read_folder(root, "profiles"));
  for (const auto& [file, text] : profiles) {
    SBX_ASSIGN(auto profile, parse_profile(text, file, seccomp, audit_arch));
    SBX_TRY(check_name(file, profile.profile));
    data.profiles.push_back(std::move(profile));
    data.profile_texts.push_back(text);
  }
  SBX_ASSIGN(const auto languages, read_folder(root, "languages"));
  for (const auto& [file, text] : languages) {
    SBX_ASSIGN(auto language, parse_language(text, file));
    SBX_TRY(check_name(file, language.name));
    data.languages.push_back(std::move(language));
  }
  SBX_TRY(check_distinct(data.languages));
  return data;
}

Result<void> write_output(const std::string& path, const std::string& text) {
  SBX_ASSIGN(const UniqueFd file, sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return sys::write_all(file.get(), text);
}

Result<void> generate(const std::map<std::string, std::string>& options) {
  const std::string& arch = options.at("--arch");
  std::uint32_t audit_arch = 0;
  if (arch == "x86_64") audit_arch = AUDIT_ARCH_X86_64;
  if (arch == "aarch64") audit_arch = AUDIT_ARCH_AARCH64;
  if (audit_arch == 0) return invalid("--arch: '" + arch + "' is neither x86_64 nor aarch64");
  SBX_ASSIGN(const PolicyData data, read_data(options.at("--data"), audit_arch));
  return write_output(options.at("--out"), emit_shipped(data));
}

int run(int argc, char** argv) {
  std::map<std::string, std::string> options;
  for (int i = 1; i + 1 < argc; i += 2) options[argv[i]] = argv[i + 1];
  if (argc != 7 || !options.contains("--arch") || !options.contains("--data") ||
      !options.contains("--out")) {
    std::fputs("usage: sbx-policyc --arch x86_64|aarch64 --data DIR --out FILE\n", stderr);
    return 2;
  }
  const auto done = generate(options);
  if (done) return 0;
  std::fprintf(stderr, "sbx-policyc: %s\n", to_string(done.error()).c_str());
  return 1;
}

}  // namespace
}  // namespace sbx::policy

int main(int argc, char** argv) {
  try {
    return sbx::policy::run(argc, argv);
  } catch (const std::exception& error) {  // std::filesystem
    std::fprintf(stderr, "sbx-policyc: %s\n", error.what());
    return 1;
  }
}
