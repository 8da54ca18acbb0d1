// Files coming out: what a program leaves in /output, and what names it and others plant where the
// host writes. Host content, owner and mode stay; each refused entry has its reason; the rest
// arrives; collecting ends in time.
//
// Lines of the class that are shown elsewhere: the walker entry by entry, with a naive reader as
// each control, in tests/unit/collect/walker_test.cc and walker_limits_test.cc; kills while a file
// is being replaced in tests/unit/collect/output_directory_test.cc; a terminal's text cut anywhere
// in tests/unit/cli/live_output_test.cc. Escapes in a web page belong to the web's tests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tests/adversarial/inside.h"
#include "tests/support/pty.h"
#include "tests/support/rendered_path.h"

namespace sbx::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class FilesOut : public InsideTest {
 protected:
  // A directory that the caller may write to, in the test's own.
  [[nodiscard]] std::string make_directory(const std::string& name) const {
    const std::string path = directory().path() + "/" + name;
    EXPECT_TRUE(fs::create_directory(path));
    EXPECT_EQ(::chmod(path.c_str(), 0777), 0);
    return path;
  }
};
SBX_AS_BOTH_CALLERS(FilesOut);

std::vector<std::string> names_of(const json& entries) {
  std::vector<std::string> names;
  for (const json& entry : entries) names.push_back(entry["path"]);
  return names;
}

std::map<std::string, std::string> reasons_of(const json& result) {
  std::map<std::string, std::string> reasons;
  for (const json& entry : result["refused"]) reasons[entry["path"]] = entry["reason"];
  return reasons;
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename());
  }
  return names;
}

// Nothing that a terminal would act on: C0, C1 (as bytes or characters), bidirectional controls.
bool is_safe_to_show(const std::string& text) {
  const bool has_control = std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\r' && c != '\t') || byte == 0x7f;
  });
  for (const char* const reversing : {"\xe2\x80\xae", "\xe2\x81\xa6"}) {
    if (text.find(reversing) != std::string::npos) return false;
  }
  for (std::size_t at = 0; (at = text.find('\xc2', at)) != std::string::npos; ++at) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0) return false;
  }
  return !has_control && is_utf8(text);
}

TEST_P(FilesOut, LinksAndSpecialFilesAreRefusedByTheirKindAndTheRestArrives) {
  const std::string out = make_directory("out");
  const json result = attack({"--output-dir", out}, "plant", {"links"});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(result["stdout"],
            "no hard link to the image's\nno hard link to an input\nno device\nno block device\n");
  const auto reasons = reasons_of(result);
  for (const char* const link :
       {"file", "directory", "through", "magic", "loop", "dangling", "sub/again"}) {
    EXPECT_EQ(reasons.at(link), "symbolic link") << link;
  }
  EXPECT_EQ(reasons.at("one"), "hard link: the file has 2 names");
  EXPECT_EQ(reasons.at("other"), "hard link: the file has 2 names");
  EXPECT_EQ(reasons.at("fifo"), "named pipe");
  EXPECT_EQ(reasons.at("socket"), "socket");
  EXPECT_EQ(reasons.size(), 11U);
  EXPECT_THAT(names_of(result["files"]), ElementsAre("good.txt"));
  EXPECT_THAT(names_in(out), UnorderedElementsAre("good.txt"));
  EXPECT_EQ(read_text(out + "/good.txt"), "good");
}

TEST_P(FilesOut, HardNamesArriveByteForByteAndAreShownEscaped) {
  const std::string out = make_directory("out");
  const json result = attack({"--output-dir", out}, "plant", {"names"});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_THAT(result["refused"], IsEmpty());
  ASSERT_EQ(result["files"].size(), 18U);
  for (const std::string& name : names_in(out)) EXPECT_EQ(read_text(out + "/" + name), name);
  for (const json& file : result["files"]) {
    EXPECT_THAT(names_in(out), Contains(unrender_path(file["path"].get<std::string>())));
  }
  EXPECT_THAT(names_in(out), AllOf(Contains("-rf"), Contains("a\nb"), Contains("\xff\xfe"),
                                   Contains(std::string(255, '\xff'))));
  int flagged = 0;
  for (const json& file : result["files"]) flagged += file.contains("note") ? 1 : 0;
  EXPECT_EQ(flagged, 1) << "two spellings of one name (NFC)";

  const Finished shown = run(inside({"--output-dir", out}, "plant", {"names"}));
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_TRUE(is_safe_to_show(shown.err)) << shown.err;
  EXPECT_THAT(shown.err, HasSubstr("a\\nb"));
}

TEST_P(FilesOut, ATreeDeeperThanAnyPathIsRefusedAndTheRestArrives) {
  const std::string profile = directory().write("deep.toml", profile_text("file_depth = 64\n"));
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, std::vector<std::string>{"--profile", profile}}) {
    const json result = attack(flags, "plant", {"deep"});
    EXPECT_EQ(result["status"], "ok") << result.dump();
    EXPECT_THAT(names_of(result["files"]), ElementsAre("good.txt"));
    ASSERT_EQ(result["refused"].size(), 1U);
    EXPECT_EQ(result["refused"][0]["reason"], "path longer than 4095 bytes, shown cut");
  }
}

TEST_P(FilesOut, ASparseFileOfATebibyteCountsByItsLength) {
  const json stopped = attack({}, "plant", {"sparse"});
  EXPECT_EQ(stopped["signal"], SIGXFSZ) << "the limit on one file: " << stopped.dump();
  const std::string profile = directory().write("big.toml", profile_text("fsize = \"2048G\"\n"));
  const json result = attack({"--profile", profile}, "plant", {"sparse"});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_THAT(reasons_of(result)["sparse"], StartsWith("1099511627776 bytes, over the limit"));
  EXPECT_THAT(names_of(result["files"]), ElementsAre("good.txt"));
  EXPECT_LT(result["timings"]["collect"].get<double>(), 10.0);
}

TEST_P(FilesOut, WhatIsSwappedAndGrownToTheLastMomentIsOneThingOrTheOther) {
  for (int i = 0; i < 10; ++i) {
    const json result = attack({"-t", "20"}, "plant", {"meddle"});
    EXPECT_EQ(result["status"], "ok") << result.dump();
    EXPECT_THAT(note_codes(result), Contains("background_killed")) << "control: it went on";
    std::map<std::string, json> files;
    for (const json& file : result["files"]) files[file["path"]] = file;
    const auto reasons = reasons_of(result);
    // One of the two names is the file, the other the link, whichever moment it was.
    ASSERT_EQ(files.count("swapped") + files.count("link"), 1U) << result.dump();
    const json& mine = files.count("link") == 1 ? files["link"] : files["swapped"];
    EXPECT_EQ(mine["content_base64"], "bWluZQ==");
    EXPECT_EQ(reasons.count("swapped") + reasons.count("link"), 1U) << result.dump();
    if (files.count("log") == 0) continue;
    const std::size_t encoded = files["log"]["content_base64"].get<std::string>().size();
    EXPECT_EQ(encoded, (files["log"]["size"].get<std::size_t>() + 2) / 3 * 4);
  }
}

TEST_P(FilesOut, AsManyTinyFilesAsThereIsRoomForAreCollectedInTimeAndInAFewLines) {
  const Finished shown = run(inside({"--cpus", "2"}, "exhaust", {"files", "/output"}));
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_LT(std::count(shown.err.begin(), shown.err.end(), '\n'), 30) << shown.err;
  const json result = attack({"--cpus", "2"}, "exhaust", {"files", "/output"});
  EXPECT_EQ(result["stdout"], "files 4095 28\n");
  EXPECT_EQ(result["files"].size(), 64U);
  EXPECT_LT(result["timings"]["collect"].get<double>(), 20.0);
}

// As one caller: nothing depends on it, and making them takes its time.
class Million : public FilesOut {};
INSTANTIATE_TEST_SUITE_P(Callers, Million, ::testing::Values(Caller::kSelf), caller_name);

TEST_P(Million, OfTinyFilesAreCollectedInTime) {
  const std::string profile = directory().write(
      "million.toml", profile_text("output_inodes = 1000001\nmemory = \"2G\"\ncpus = 2\n"));
  const json result = attack({"--profile", profile, "-t", "100"}, "exhaust", {"files", "/output"});
  EXPECT_EQ(result["stdout"], "files 1000000 28\n") << "control: they were made";
  EXPECT_EQ(result["files"].size(), 64U);
  EXPECT_LE(result["refused"].size(), 129U);
  EXPECT_THAT(result["refused"].back()["reason"].get<std::string>(), StartsWith("at least "));
  EXPECT_LT(result["timings"]["collect"].get<double>(), 40.0);
}

// What a planted name leads to, and what of it must stay.
struct Victim {
  explicit Victim(const std::string& directory) : path(directory + "/victim") {
    fs::create_directories(path);
    (void)::chmod(path.c_str(), 0700);
    file = path + "/file";
    std::ofstream(file) << "host";
    (void)::chmod(file.c_str(), 0640);
  }
  [[nodiscard]] std::string state() const {
    std::string all;
    for (const std::string& each : {path, file}) {
      struct stat info{};
      (void)::lstat(each.c_str(), &info);
      all += std::to_string(info.st_mode) + " " + std::to_string(info.st_uid) + " " +
             std::to_string(info.st_gid) + " " + std::to_string(info.st_nlink) + " " +
             std::to_string(info.st_mtim.tv_nsec) + "\n";
    }
    for (const std::string& name : names_in(path)) all += name + "\n";
    return all + read_text(file);
  }
  std::string path;
  std::string file;
};

TEST_P(FilesOut, LinksAtEveryNameThatIsSavedAreLeftAlone) {  // CVE-2024-28185, CVE-2024-28189
  const Victim victim(directory().path());
  const std::string before = victim.state();
  const std::string out = make_directory("out");
  fs::create_symlink(victim.file, out + "/planted.txt");
  fs::create_directory_symlink(victim.path, out + "/directory");
  fs::create_symlink(victim.path + "/new", out + "/dangling");
  fs::create_directory(out + "/real");
  ASSERT_EQ(::chmod((out + "/real").c_str(), 0777), 0);
  fs::create_symlink(victim.file, out + "/real/inner");
  const std::vector<std::string> paths = {"files",          "planted.txt", "directory/file",
                                          "directory/more", "dangling",    "real/inner",
                                          "real/good",      "good.txt"};
  const json result = attack({"--output-dir", out}, "plant", paths);
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(victim.state(), before);
  EXPECT_THAT(names_of(result["refused"]),
              UnorderedElementsAre("planted.txt", "directory/file", "directory/more", "dangling",
                                   "real/inner"));
  for (const json& entry : result["refused"]) EXPECT_NE(entry["reason"], "");
  EXPECT_EQ(read_text(out + "/good.txt"), "from inside") << "the rest still arrives";
  EXPECT_EQ(read_text(out + "/real/good"), "from inside");
  // Control: what writes by name goes through each of them.
  std::ofstream(out + "/planted.txt") << "control";
  EXPECT_EQ(read_text(victim.file), "control");
  std::ofstream(out + "/dangling") << "control";
  EXPECT_NE(victim.state(), before);
}

// Made by another user who was faster, in a place that is everybody's, or by the user himself.
TEST_P(FilesOut, LinksWhereTheRuntimeKeepsItsFilesAreRefused) {
  const Victim victim(directory().path());
  if (is_user()) {
    ASSERT_EQ(::chown(victim.path.c_str(), kTestUser, kTestUser), 0);
  }
  const std::string before = victim.state();
  for (const char* const planted : {"", "/runs", "/ids"}) {
    const TemporaryDirectory place;
    const std::string runtime = place.path() + "/runtime";
    if (*planted != '\0') fs::create_directory(runtime);
    fs::create_directory_symlink(victim.path, runtime + planted);
    if (is_user()) {
      ASSERT_EQ(::lchown(runtime.c_str(), kTestUser, kTestUser), 0);
    }
    fs::create_directory(place.path() + "/sbx");
    (void)place.write("sbx/runtime.toml", "runtime_dir = \"" + runtime + "\"\n");
    ProcessOptions with_config = options();
    with_config.environment.push_back("XDG_CONFIG_HOME=" + place.path());
    const Finished refused = run_process(command({"--", "/bin/true"}), with_config);
    EXPECT_EQ(refused.exit_code, 125) << planted << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("fix: ")) << planted;
    EXPECT_EQ(victim.state(), before) << planted;
    fs::remove(runtime + planted);
    EXPECT_EQ(run_process(command({"--", "/bin/true"}), with_config).exit_code, 0) << "control";
  }
}

TEST_P(FilesOut, InputsHaveOneComponentAndNoOtherName) {
  const std::string file = directory().write("a.csv", "1");
  for (const std::string& name :
       {std::string("/etc/x"), std::string("../x"), std::string("a/b"), std::string(".."),
        std::string("."), std::string(""), std::string("a\nb"), std::string("\x1b[2J"),
        std::string(256, 'n')}) {
    const Finished refused = run({"--input", file + ":" + name, "-c", "pass"});
    EXPECT_EQ(refused.exit_code, 2) << name;
    EXPECT_TRUE(is_safe_to_show(refused.err)) << refused.err;
  }
  const Finished twice = run({"--input", file + ":x", "--input", file + ":x", "-c", "pass"});
  EXPECT_EQ(twice.exit_code, 2);
  const Finished named =
      run({"--input", file + ":" + std::string(255, 'n'), "-l", "bash", "-c", "ls /input | wc -c"});
  EXPECT_EQ(named.out, "256\n") << "control: the longest name there is " << named.err;
}

TEST_P(FilesOut, NothingThatIsShownActsOnTheTerminal) {
  PtyProcess on_screen(command(inside({}, "plant", {"screen"})), options());
  const Finished shown = on_screen.finish();
  EXPECT_EQ(shown.exit_code, 0) << shown.out;
  EXPECT_TRUE(is_safe_to_show(shown.out)) << shown.out;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("\\x1b[31mred"), HasSubstr("not saved"),
                               HasSubstr("\\x1b]0;owned\\x07.txt"), HasSubstr("\\u{202e}")));
  const Finished piped = run(inside({}, "plant", {"screen"}));
  EXPECT_FALSE(is_safe_to_show(piped.out)) << "control: to a pipe it goes as it is";
  // In our own words about it: errors, a note that quotes the program, a call by its name.
  const std::string evil =
      "\x1b]0;owned\a\xc2\x9b"
      "2J\xe2\x80\xae";
  const std::vector<std::vector<std::string>> quoted = {
      {"--rootfs", evil, "-c", "pass"},
      {"--profile", evil, "-c", "pass"},
      {"-l", evil, "-c", "pass"},
      {"--memory", evil, "-c", "pass"},
      {"--input", evil, "-c", "pass"},
      {"--env", evil, "-c", "pass"},
      {"--output-dir", evil + "/x", "-c", "pass"},
      {"--allow-missing", evil, "-c", "pass"},
      {"--" + evil, "-c", "pass"},
      {evil},
      {"--", "/" + evil},
  };
  for (const std::vector<std::string>& words : quoted) {
    PtyProcess process(command(words), options());
    const Finished said = process.finish();
    EXPECT_NE(said.exit_code, 0);
    EXPECT_TRUE(is_safe_to_show(said.out)) << words.front() << ": " << said.out;
    EXPECT_THAT(said.out, HasSubstr("owned")) << words.front();
  }
  PtyProcess note(
      command({"-c", "raise ModuleNotFoundError(\"No module named '\\x1b]0;owned\\x07'\")"}),
      options());
  const Finished noted = note.finish();
  EXPECT_TRUE(is_safe_to_show(noted.out)) << noted.out;
}

}  // namespace
}  // namespace sbx::test
