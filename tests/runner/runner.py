"""Runs the tests of a script as unittest does, and says what was skipped: a script of which nothing ran is not passed.

    if __name__ == "__main__":
        runner.main()

Exit codes: 0, all that ran passed; 1, a test failed, or there is none; 77, all were skipped (ctest: SKIP_RETURN_CODE).
A line "skipped: NAMES: REASON" is for tools/test_summary.py.
"""

import sys
import unittest

SKIPPED = 77


class Result(unittest.TextTestResult):
    """Counts the tests that ran: a skipped class never starts its tests, another starts and skips them."""

    ran = 0

    def startTest(self, test):
        super().startTest(test)
        self.is_skipped = self.has_skipped_part = self.has_run_part = False

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        if hasattr(test, "test_case"):  # It is a subTest; the test goes on behind it.
            self.has_skipped_part = True
        else:
            self.is_skipped = True

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        self.has_run_part = True

    def stopTest(self, test):
        super().stopTest(test)
        self.ran += not (self.is_skipped or (self.has_skipped_part and not self.has_run_part))


class Runner(unittest.TextTestRunner):
    resultclass = Result


def say_skipped(skipped):
    names = {}
    for test, reason in skipped:
        names.setdefault(" ".join(reason.split()), []).append(test.id().replace("__main__.", ""))
    for reason, tests in names.items():
        print(f"skipped: {', '.join(tests)}: {reason}")


def main():
    program = unittest.main(module="__main__", exit=False, verbosity=2, testRunner=Runner)
    total, result = program.test.countTestCases(), program.result
    say_skipped(result.skipped)
    print(f"{result.ran} of {total} tests were run")
    if total == 0 or not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if result.ran == 0 else 0)
