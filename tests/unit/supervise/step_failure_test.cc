// What a failed step means: a result for a program that cannot be run, else an error of ours.
#include "runtime/supervise/step_failure.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/process.h"

namespace sbx::supervise {
namespace {

using plan::Step;
using ::testing::HasSubstr;

plan::Record failed(Step step, int error) {
  plan::Record record;
  record.kind = plan::RecordKind::kStepFailed;
  record.step = step;
  record.error = error;
  return record;
}

int exit_code_of(int error) {
  const auto status = exec_failure_status(failed(Step::kExec, error));
  if (!status || !WIFEXITED(*status)) return -1;
  return WEXITSTATUS(*status);
}

TEST(ExecFailure, OfAProgramThatIsNotThereIs127AsInAShell) {
  for (const int error : {ENOENT, ENOTDIR, ELOOP}) EXPECT_EQ(exit_code_of(error), 127) << error;
}

TEST(ExecFailure, OfAProgramThatCannotBeRunIs126AsInAShell) {
  for (const int error : {EACCES, EPERM, ENOEXEC, EISDIR, ENAMETOOLONG, E2BIG, EINVAL, ELIBBAD}) {
    EXPECT_EQ(exit_code_of(error), 126) << error;
  }
}

TEST(ExecFailure, ThatTheProgramIsNotToBlameForIsOurs) {
  for (const int error : {ENOMEM, EAGAIN, EIO, EMFILE, ENFILE, ENOTRECOVERABLE, EFAULT, 0}) {
    EXPECT_FALSE(exec_failure_status(failed(Step::kExec, error))) << error;
  }
}

TEST(ExecFailure, IsOfTheExecAlone) {
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Step::kCount); ++i) {
    const Step step = static_cast<Step>(i);
    if (step == Step::kExec) continue;
    EXPECT_FALSE(exec_failure_status(failed(step, ENOENT))) << plan::step_name(step);
  }
}

TEST(ExecFailure, SaysWhichProgramAndWhy) {
  EXPECT_EQ(exec_failure_text("nosuch", failed(Step::kExec, ENOENT)),
            "sbx: cannot run 'nosuch': No such file or directory\n");
}

TEST(InterpreterError, IsTheImagesFaultInARunOfALanguageAlone) {
  plan::Plan plan;
  plan.argv = {"/usr/bin/bash", "/code/main.sh"};
  plan.image.rootfs = "/images/default/1/rootfs";
  EXPECT_FALSE(interpreter_error(plan, failed(Step::kExec, ENOENT))) << "the caller named it";
  plan.language = "bash";
  for (const int error : {ENOENT, ENOTDIR, ELOOP, EACCES, ENOEXEC, ELIBBAD}) {
    const auto told = interpreter_error(plan, failed(Step::kExec, error));
    ASSERT_TRUE(told) << error;
    EXPECT_EQ(told->code, ErrorCode::kHost);
    EXPECT_THAT(to_string(*told), HasSubstr("interpreter: /usr/bin/bash: "));
    EXPECT_EQ(told->fix, error == EACCES ? plan::kReadableFix : plan::kRebuildFix);
  }
  EXPECT_FALSE(interpreter_error(plan, failed(Step::kExec, E2BIG))) << "his arguments";
  EXPECT_FALSE(interpreter_error(plan, failed(Step::kPivot, ENOENT)));
  plan.image.rootfs.clear();
  EXPECT_THAT(interpreter_error(plan, failed(Step::kExec, ENOENT))->fix, HasSubstr("--rootfs"));
}

TEST(InterpreterError, OfNoProgramAtAllIsMendedByNoChmod) {
  std::string root = "/tmp/sbx-image-XXXXXX";
  ASSERT_NE(::mkdtemp(root.data()), nullptr);
  plan::Plan plan;
  plan.language = "bash";
  plan.argv = {"/bash"};
  plan.image.rootfs = root;
  const std::string path = root + "/bash";
  const auto fix = [&] { return interpreter_error(plan, failed(Step::kExec, EACCES))->fix; };
  ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
  EXPECT_EQ(fix(), plan::kRebuildFix) << "a directory";
  ASSERT_EQ(::rmdir(path.c_str()), 0);
  ASSERT_EQ(::mknod(path.c_str(), S_IFREG | 0644, 0), 0);
  EXPECT_EQ(fix(), plan::kRebuildFix) << "not to be executed by anybody";
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  EXPECT_EQ(fix(), plan::kReadableFix);
  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::rmdir(root.c_str()), 0);
}

TEST(StepError, NamesTheStepAndItsErrno) {
  const Error error = step_error({}, failed(Step::kPivot, EINVAL));
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_EQ(to_string(error), "child: pivot_root: Invalid argument");
  EXPECT_EQ(error.fix, "");
}

TEST(StepError, WithAKnownFixIsTheHostsToMend) {
  for (const auto& [step, error, fix] :
       {std::tuple{Step::kProc, EPERM, "unmasked /proc"},
        std::tuple{Step::kRootfs, ENOENT, "./scripts/image"},
        std::tuple{Step::kSeccomp, EINVAL, "5.19"},
        std::tuple{Step::kUserNamespace, ENOSPC, "max_user_namespaces"},
        std::tuple{Step::kFill, ENOMEM, "raise --memory"},
        std::tuple{Step::kFill, EMFILE, "ulimit -n"}, std::tuple{Step::kPivot, ENOMEM, "ulimit -d"},
        std::tuple{Step::kExec, EAGAIN, "ulimit -u"}}) {
    const Error told = step_error({}, failed(step, error));
    EXPECT_EQ(told.code, ErrorCode::kHost) << plan::step_name(step);
    EXPECT_THAT(told.fix, HasSubstr(fix));
  }
  EXPECT_EQ(step_error({}, failed(Step::kFill, EIO)).code, ErrorCode::kInternal);
}

TEST(StepError, OfAnImageThatIsShutNamesItWithTheFix) {
  const test::TemporaryDirectory directory;
  plan::Plan plan;
  plan.image.rootfs = directory.path();
  plan.tmpfs.emplace_back().target = "/work";
  for (const char* const part : {"", "/work", "/dev"}) {
    const std::string path = directory.path() + part;
    std::filesystem::create_directory(path);
    for (const mode_t mode : {0700U, 0755U}) {
      ASSERT_EQ(::chmod(path.c_str(), mode), 0);
      for (const Step step :
           {Step::kRootfs, Step::kTmpfs, Step::kDevices, Step::kProc, Step::kMasks}) {
        const Error told = step_error(plan, failed(step, EACCES));
        EXPECT_EQ(told.fix == plan::kReadableFix, mode == 0700) << plan::step_name(step) << part;
        if (mode != 0700) continue;
        EXPECT_EQ(told.code, ErrorCode::kHost);
        EXPECT_EQ(told.detail, plan.image.rootfs);
      }
    }
  }
}

TEST(StepError, SurvivesANumberFromNowhere) {
  EXPECT_EQ(step_error({}, failed(static_cast<Step>(9999), EIO)).operation, "unknown");
}

}  // namespace
}  // namespace sbx::supervise
