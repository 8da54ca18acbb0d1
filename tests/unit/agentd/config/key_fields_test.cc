// Where the provider's key is: a key in the place of its place is refused and never repeated, and
// --check-config finds what the start would.
#include "agentd/config/key_fields.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "agentd/daemon/startup.h"
#include "runtime/base/sys.h"
#include "tests/support/process.h"

namespace agentd::config {
namespace {

// Keys of vendors in shape, and of no shape that is known.
const std::vector<std::string>& pasted() {
  static const std::vector<std::string> all = {
      "sk-abcdef",
      "sk-proj-9aB3dE5fG7hJ1kL2mN4pQ6rS8tU0vW",
      "gsk_9aB3dE5fG7hJ1kL2mN4pQ6rS8tU0vWxYz9a",
      "9f86d081884c7d659a2feaa0c55ad015",
      "Zq3vT8mNb2KxW7pRd5HsYc1L",
      "a86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"};
  return all;
}

sbx::Result<void> checked(std::string AgentConfig::* field, const std::string& value) {
  AgentConfig config;
  config.*field = value;
  return check_key_fields(config, KeyLines());
}

TEST(KeyFields, AKeyInTheWrongFieldIsRefusedAndNotRepeated) {
  for (std::string AgentConfig::* field :
       {&AgentConfig::api_key_file, &AgentConfig::api_key_credential, &AgentConfig::api_key_env}) {
    for (const std::string& key : pasted()) {
      const auto done = checked(field, key);
      ASSERT_FALSE(done) << key;
      const std::string said = to_string(done.error()) + done.error().fix;
      EXPECT_EQ(done.error().code, sbx::ErrorCode::kInvalid);
      EXPECT_EQ(said.find(key), std::string::npos) << said;
      EXPECT_NE(said.find("provider.api_key_"), std::string::npos) << said;
      EXPECT_NE(done.error().fix.find("api_key_file"), std::string::npos) << said;
    }
  }
}

TEST(KeyFields, WhatCanBeNoNameIsRefusedAndNotRepeated) {
  for (const char* name : {"WITH BLANK", "A=B", "9LIVES", "$OPENAI_API_KEY", "a-b", "ä"}) {
    const auto done = checked(&AgentConfig::api_key_env, name);
    ASSERT_FALSE(done) << name;
    EXPECT_EQ(to_string(done.error()).find(name), std::string::npos);
  }
  EXPECT_FALSE(checked(&AgentConfig::api_key_credential, "../key"));
  EXPECT_FALSE(checked(&AgentConfig::api_key_credential, ".."));
}

TEST(KeyFields, OrdinaryNamesAndPathsAreTaken) {
  for (const char* name : {"K", "OPENAI_API_KEY", "ANTHROPIC_API_KEY_2", "_key",
                           "COMPANY_WIDE_MODEL_GATEWAY_ACCESS_TOKEN_2026_11"}) {
    EXPECT_TRUE(checked(&AgentConfig::api_key_env, name)) << name;
  }
  for (const char* path : {"/etc/sbx/openai.key", "key", "sk-keys/one",
                           "/nix/store/9f86d081884c7d659a2feaa0c55ad015-key", "/run/secrets/api"}) {
    EXPECT_TRUE(checked(&AgentConfig::api_key_file, path)) << path;
  }
  EXPECT_TRUE(checked(&AgentConfig::api_key_credential, "agentd.key"));
}

}  // namespace
}  // namespace agentd::config

namespace agentd::daemon {
namespace {

constexpr char kKeyText[] = "sk-not-a-real-key-0123456789";

class CheckedConfiguration : public ::testing::Test {
 protected:
  // What --check-config and a start say, which is the same. In a process of its own, as both keep
  // their memory to themselves.
  std::string said_of(const std::string& field) {
    Arguments arguments;
    arguments.config = directory_.write("agentd.toml",
                                        "[provider]\nkind = \"openai\"\nmodel = \"m\"\n"
                                        "base_url = \"https://127.0.0.1:1/v1\"\n" +
                                            field + "\n");
    arguments.socket = directory_.path() + "/a.sock";
    arguments.state_dir = directory_.path() + "/state";
    const pid_t child = ::fork();
    if (child == 0) {
      const auto checked = check_configuration(arguments);
      const std::string check =
          checked ? "right" : to_string(checked.error()) + checked.error().fix;
      const auto started = start_up(arguments);
      const std::string start =
          started ? "right" : to_string(started.error()) + started.error().fix;
      (void)directory_.write("said", check == start ? check : check + " BUT " + start);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    const auto said = sbx::sys::read_file(directory_.path() + "/said", 1U << 20);
    return said ? *said : "nothing";
  }
  std::string file(const std::string& content, mode_t mode = 0600) {
    const std::string path = directory_.write("key", content);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return "api_key_file = \"" + path + "\"";
  }
  sbx::test::TemporaryDirectory directory_;
};

TEST_F(CheckedConfiguration, IsRightWhereTheKeyCanBeHad) {
  EXPECT_EQ(said_of(file(kKeyText)), "right");
  EXPECT_EQ(said_of(""), "right");
}

TEST_F(CheckedConfiguration, FindsAKeyThatTheStartWouldRefuseInItsWords) {
  const auto has = [](const std::string& said, const char* words) {
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_EQ(said.find("BUT"), std::string::npos) << said;
    EXPECT_EQ(said.find("not-a-real-key"), std::string::npos) << said;
  };
  has(said_of("api_key_file = \"" + directory_.path() + "/none\""), "No such file");
  has(said_of("api_key_file = \"" + directory_.path() + "\""), "no regular file");
  has(said_of(file(kKeyText, 0604)), "chmod 600");
  has(said_of(file("")), "holds no key");
  has(said_of(file(std::string(kKeyText) + "\nmore\n")), "more than a key");
  has(said_of(file(std::string(2U << 20, 'k'))), "longer than");
  has(said_of("api_key_env = \"AGENTD_TEST_UNSET\""), "AGENTD_TEST_UNSET is not set");
  has(said_of(file("")),
      (directory_.path() + "/agentd.toml:5: key 'provider.api_key_file': ").c_str());
}

// Keys that have no shape, or that of a path.
TEST_F(CheckedConfiguration, DoesNotRepeatWhatMayBeTheKeyItself) {
  for (const std::string key :
       {"q8Zk3mVt7+Lw/9sRb2YxNf6HjC0pUeTgA1dKiOo5vXs=", "/q8Zk3mVt7Lw9sRb2YxNf6HjC0pUe",
        "/q8Zk3mVt7+Lw/9sRb2YxNf6HjC0pUeTgA1dKiOo5v=", "sk-9aB3/dE5fG7hJ1kL+2mN4pQ6rS",
        "tok_A1b2C3d4E5f6G7h8", "mysecretpassword1", "A1B2C3D4E5F6G7H8"}) {
    for (const char* field : {"api_key_file", "api_key_credential", "api_key_env"}) {
      ASSERT_EQ(::setenv("CREDENTIALS_DIRECTORY", directory_.path().c_str(), 1), 0);
      const std::string said = said_of(std::string(field) + " = \"" + key + "\"");
      ASSERT_EQ(::unsetenv("CREDENTIALS_DIRECTORY"), 0);
      EXPECT_EQ(said.find(key.substr(1, 8)), std::string::npos) << said;
      EXPECT_EQ(said.find("BUT"), std::string::npos) << said;
      EXPECT_NE(said.find("/agentd.toml:5: key 'provider." + std::string(field) + "': "),
                std::string::npos)
          << said;
    }
  }
}

TEST_F(CheckedConfiguration, ACredentialOutsideOfTheServiceIsNotLookedAt) {
  Arguments arguments;
  arguments.config = directory_.write(
      "agentd.toml",
      "[provider]\nkind = \"openai\"\nmodel = \"m\"\nbase_url = \"https://127.0.0.1:1/v1\"\n"
      "api_key_credential = \"agentd.key\"\n");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto checked = check_configuration(arguments);
    ::_exit(checked && !*checked ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace agentd::daemon
