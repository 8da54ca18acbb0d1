"""Runs tests as ctest wants them: python3 -m tests [NAME...], in clients/python.

Exit code 77 (ctest's SKIP_RETURN_CODE) when nothing failed and something was skipped.
"""

import sys
import unittest

SKIPPED = 77


def main() -> int:
    loader = unittest.TestLoader()
    names = sys.argv[1:]
    suite = (loader.loadTestsFromNames([f"tests.{name}" for name in names]) if names
             else loader.discover("tests", top_level_dir="."))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    if not result.wasSuccessful() or result.testsRun == 0:
        return 1
    return SKIPPED if result.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
