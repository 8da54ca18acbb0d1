// Real work inside: languages, libraries, arguments, files in and out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/integration/fixture.h"

namespace sbx::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Programs : public SandboxTest {};
SBX_AS_BOTH_CALLERS(Programs);

TEST_P(Programs, LanguagesAreGuessedFromTheName) {
  EXPECT_EQ(run({directory().write("a.py", "print('python')")}).out, "python\n");
  EXPECT_EQ(run({directory().write("a.js", "console.log('node', 6 * 7)")}).out, "node 42\n");
  EXPECT_EQ(run({directory().write("a.sh", "echo bash ${BASH_VERSION:+yes}")}).out, "bash yes\n");
}

TEST_P(Programs, CodeComesFromAFileAnArgumentADashOrAPipe) {
  EXPECT_EQ(run({"-c", "print(1)"}).out, "1\n");
  EXPECT_EQ(run({"-"}, "print(2)").out, "2\n");
  EXPECT_EQ(run({}, "print(3)").out, "3\n");
  EXPECT_EQ(run({"-l", "js", "-"}, "console.log(4)").out, "4\n");
  EXPECT_EQ(run({"-l", "sh", "-c", "echo 5"}).out, "5\n");
}

TEST_P(Programs, ArgumentsAfterTheProgramAreVerbatim) {
  const std::string show = "import sys; print(sys.argv[1:])";
  const std::string file = directory().write("show.py", show);
  EXPECT_EQ(run({file, "--json", "-t", "", "--", "a b"}).out,
            "['--json', '-t', '', '--', 'a b']\n");
  EXPECT_EQ(run({"-c", show, "--", "-l", "x"}).out, "['--', '-l', 'x']\n");
  EXPECT_EQ(run({"-", "x", "-y"}, show).out, "['x', '-y']\n");
}

TEST_P(Programs, WhatFollowsTheProgramOpensNothing) {
  const std::string out = directory().path() + "/taken";
  const std::string look =
      "import os, sys\n"
      "print(open('/proc/net/dev').read().count(':'), os.listdir('/input'),"
      " len(sys.argv))\n"
      "open('/output/x', 'w').write('x')\n";
  const std::string file = directory().write("look.py", look);
  const std::vector<std::string> words = {
      "--net=host", "--input=/etc/passwd", "--output-dir", out, "--json", "--foo", "--"};
  const Finished plain = run({file});
  EXPECT_THAT(run({"--input=/etc/passwd", file}).out, HasSubstr("passwd")) << "the control";
  const std::size_t common = plain.out.rfind(' ');
  ASSERT_NE(common, std::string::npos) << plain.err;
  for (const std::vector<std::string>& form :
       {std::vector<std::string>{file}, {"-c", look}, {"-l", "python", "-c" + look}}) {
    std::vector<std::string> all = form;
    all.insert(all.end(), words.begin(), words.end());
    const Finished finished = run(all);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    EXPECT_EQ(finished.out, plain.out.substr(0, common) + " 8\n");
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST_P(Programs, AnyProgramOfTheRootfsRuns) {
  EXPECT_EQ(run({"--", "/bin/echo", "--json", "--"}).out, "--json --\n");
  EXPECT_EQ(run({"--", "true"}).exit_code, 0);
  EXPECT_EQ(run({"--", "sh", "-c", "exit 7"}).exit_code, 7);
}

TEST_P(Programs, AFileThatCannotBeSavedIsNoSuccess) {
  const std::string out = directory().path() + "/kept";
  const std::string go = directory().path() + "/go";
  for (const bool as_json : {false, true}) {
    std::filesystem::create_directory(out);
    std::filesystem::permissions(out, std::filesystem::perms::all);
    ASSERT_EQ(::mkfifo(go.c_str(), 0666), 0);
    std::vector<std::string> words{
        "--output-dir", out,
        "--stdin",      go,
        "-c",           "open('/output/a', 'w').write('x'); print(input())"};
    if (as_json) words.insert(words.begin(), "--json");
    Process process(command(words), options());
    // Opened once the run reads it, and so after its directory.
    std::ofstream writer(go);
    std::filesystem::remove(out);
    writer << "go\n" << std::flush;
    writer.close();
    const Finished finished = process.finish();
    EXPECT_EQ(finished.exit_code, 125) << finished.err;
    EXPECT_THAT(as_json ? finished.out : finished.err, HasSubstr(out + " was removed"));
    EXPECT_THAT(finished.out, HasSubstr("go"));
    std::filesystem::remove(go);
  }
  std::filesystem::create_directories(out + "/a");  // a name that is taken
  std::filesystem::permissions(out, std::filesystem::perms::all);
  const Finished taken =
      run({"--output-dir", out, "-c", "open('/output/a', 'w'); open('/output/b', 'w')"});
  EXPECT_EQ(taken.exit_code, 125);
  EXPECT_THAT(taken.err, AllOf(HasSubstr("/output/a: "), HasSubstr("saved " + out + "/b")));
  EXPECT_EQ(run({"--output-dir", out, "-c", "open('/output/a', 'w'); exit(3)"}).exit_code, 3);
  const std::string link = "import os; os.symlink('x', '/output/link')";
  EXPECT_EQ(run({"--output-dir", out, "-c", link}).exit_code, 0) << "the program's own doing";
}

TEST_P(Programs, AFileNamedLikeAVerbRunsAsAFile) {
  (void)directory().write("doctor", "print('a file')");
  ProcessOptions here = options();
  here.directory = directory().path();
  EXPECT_EQ(run_process(command({"-l", "python", "./doctor"}), here).out, "a file\n");
}

TEST_P(Programs, ScriptsOfAnyBytesAreTheInterpretersBusiness) {
  EXPECT_EQ(run({directory().write("empty.py", "")}).exit_code, 0);
  EXPECT_EQ(run({directory().write("bom.py", "\xef\xbb\xbfprint('bom')")}).out, "bom\n");
  const Finished nul = run({directory().write("nul.py", std::string_view("a\0b", 3))});
  EXPECT_EQ(nul.exit_code, 1);
  // "source code cannot contain null bytes", or what the interpreter makes of them: its own
  // verdict.
  EXPECT_THAT(nul.err, HasSubstr("Error"));
  EXPECT_THAT(nul.err, Not(HasSubstr("sbx-run:")));
}

TEST_P(Programs, StandardStreamsCanBeOpenedByPath) {
  const Finished finished = run(
      {"-l", "bash", "-c", "cat /dev/stdin > /dev/stdout; echo err > /dev/stderr"}, "through\n");
  EXPECT_EQ(finished.out, "through\n");
  EXPECT_EQ(finished.err, "err\n");
  EXPECT_EQ(finished.exit_code, 0);
}

TEST_P(Programs, TheCallersUmaskDoesNotReachInside) {
  for (const char* const umask : {"077", "777"}) {
    std::vector<std::string> words{"/bin/sh", "-c", "umask $0; exec \"$@\"", umask};
    for (const std::string& word : command({"-l", "bash", "-c", "umask; head -c 4 /proc/stat"})) {
      words.push_back(word);
    }
    const Finished finished = run_process(words, options());
    EXPECT_EQ(finished.out, "0022\ncpu ") << umask << finished.err;
  }
}

TEST_P(Programs, EnvironmentIsAFixedListAndWhatWasGiven) {
  const std::string show =
      "import os; print(os.environ.get('GIVEN'), os.environ.get('SECRET'), "
      "os.environ['HOME'])";
  ProcessOptions with_secret = options();
  with_secret.environment.push_back("SECRET=x");
  EXPECT_EQ(run_process(command({"--env", "GIVEN=a=b", "-c", show}), with_secret).out,
            "a=b None /work\n");
}

TEST_P(Programs, NumpyPandasAndMatplotlibWorkAtTheDefaultLimits) {
  const std::string work =
      "import numpy as np, pandas as pd\n"
      "import matplotlib.pyplot as plt\n"
      "frame = pd.DataFrame({'x': np.arange(100), 'y': np.arange(100) ** 2})\n"
      "frame.plot(x='x', y='y')\n"
      "plt.savefig('/output/chart.png')\n"
      "print(int(frame.y.sum()))\n";
  const json result = run_json({"-t", "120", "-c", work});
  EXPECT_EQ(result["status"], "ok") << result.dump();
  EXPECT_EQ(result["stdout"], "328350\n");
  ASSERT_EQ(result["files"].size(), 1U);
  EXPECT_EQ(result["files"][0]["path"], "chart.png");
  EXPECT_EQ(result["files"][0]["media_type"], "image/png");
  EXPECT_THAT(result["files"][0]["content_base64"].get<std::string>(),
              ::testing::StartsWith("iVBORw0KGgo"));
}

TEST_P(Programs, APoolOfTwoWorks) {
  const std::string pool =
      "import multiprocessing\n"
      "if __name__ == '__main__':\n"
      "    for method in ('fork', 'spawn'):\n"
      "        context = multiprocessing.get_context(method)\n"
      "        with context.Pool(2) as pool: print(pool.map(abs, [-1, -2]))\n";
  const json result = run_json({"-t", "120", directory().write("pool.py", pool)});
  EXPECT_EQ(result["stdout"], "[1, 2]\n[1, 2]\n") << result.dump();
  EXPECT_EQ(result["status"], "ok");
}

// Record locks pass through init.
TEST_P(Programs, SqliteAndLocksBetweenProcessesWork) {
  const Finished done = run({"-c", R"(
import fcntl, os, sqlite3
with sqlite3.connect('/work/a.db', isolation_level=None) as database:
    database.execute('create table t(x)')
    for x in range(100): database.execute('insert into t values(?)', (x,))
print(database.execute('select sum(x) from t').fetchone()[0])
held = open('/tmp/lock', 'w+')
said, saying = os.pipe()
fcntl.lockf(held, fcntl.LOCK_EX)
if os.fork() == 0:
    other = open('/tmp/lock', 'w+')
    try:
        fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print('held', flush=True)
    os.write(saying, b'.')
    fcntl.lockf(other, fcntl.LOCK_EX)
    print('got it', flush=True)
    os._exit(0)
os.read(said, 1)
print('let go', flush=True)
fcntl.lockf(held, fcntl.LOCK_UN)
os.wait()
)"});
  EXPECT_EQ(done.out, "4950\nheld\nlet go\ngot it\n") << done.err;
  EXPECT_EQ(done.err, "");
}

TEST_P(Programs, ACsvComesInAndATableGoesOut) {
  const std::string csv = directory().write("data.csv", "name,value\na,1\nb,2\n");
  const std::string out = directory().path() + "/out";
  const std::string work =
      "import csv\n"
      "rows = list(csv.DictReader(open('/input/table.csv')))\n"
      "open('/output/sum.txt', 'w').write(str(sum(int(r['value']) for r in rows)))\n";
  const Finished finished = run({"--input", csv + ":table.csv", "--output-dir", out, "-c", work});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(read_text(out + "/sum.txt"), "3");
  EXPECT_THAT(finished.err, HasSubstr("saved " + out + "/sum.txt"));
}

TEST_P(Programs, InputIsReadOnly) {
  const std::string file = directory().write("a.txt", "x");
  const Finished finished =
      run({"--input", file, "-l", "bash", "-c", "echo y > /input/a.txt || cat /input/a.txt"});
  EXPECT_THAT(finished.out, HasSubstr("x"));
  EXPECT_EQ(read_text(file), "x");
}

// As on a file system that has none.
TEST_P(Programs, WhatCopiesAttributesGoesOnWithoutThem) {
  const Finished finished = run(
      {"-l", "bash", "-c",
       "set -e; mkdir a; echo x > a/f; ln -s f a/l; cp -a a b; cp -p a/f c; install -m 755 a/f d; "
       "tar -cf t.tar a; mkdir o; tar -xpf t.tar -C o; "
       "mv d /tmp/d; python3 -c 'import shutil; shutil.copy2(\"a/f\", \"e\"); "
       "shutil.copytree(\"a\", \"g\")'; cat b/l c /tmp/d o/a/f e g/f"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out, "x\nx\nx\nx\nx\nx\n");
  EXPECT_EQ(finished.err, "");
}

TEST_P(Programs, WhatIsNotSavedIsNamed) {
  const Finished finished = run({"-c", "open('/output/a.txt', 'w').write('12345')"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_THAT(finished.err,
              AllOf(HasSubstr("not saved: /output/a.txt (5 bytes)"), HasSubstr("--output-dir")));
}

TEST_P(Programs, TheHostsUsrIsARootfsToo) {
  const Finished finished = run({"--rootfs", "host", "--", "/bin/echo", "host"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "host\n");
}

TEST_P(Programs, InsideIsNobodyWithoutAnythingOfTheHosts) {
  const Finished finished = run(
      {"-l", "bash", "-c",
       "id -u; id -g; pwd; hostname 2>/dev/null || cat /proc/sys/kernel/hostname; ls /sys | wc -l; "
       "cat /proc/self/cgroup | cut -d: -f3 | sort -u; ls /proc | grep -c '^1$'"});
  EXPECT_THAT(finished.out, HasSubstr("65534\n65534\n/work\n"));
  EXPECT_THAT(finished.out, HasSubstr("0\n/\n0\n"));
}

}  // namespace
}  // namespace sbx::test
