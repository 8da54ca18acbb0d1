// The main of every test program: as GoogleTest's own, but a test that was skipped is seen from
// outside.
//
// Exit code 77 (ctest's SKIP_RETURN_CODE) says that nothing failed and something was skipped. A
// pattern over the output would not do: ctest calls a program skipped then even if another of its
// tests failed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

namespace {
constexpr int kSkipped = 77;
}

int main(int argc, char** argv) {
  // What tests make, images among it, must not be others' to write, whatever the caller's umask is.
  (void)::umask(022);
  ::testing::InitGoogleMock(&argc, argv);
  const int result = RUN_ALL_TESTS();
  if (result != 0) return result;
  return ::testing::UnitTest::GetInstance()->skipped_test_count() > 0 ? kSkipped : 0;
}
