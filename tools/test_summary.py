#!/usr/bin/env python3
"""Prints the result of a ctest run, from its JUnit file: what failed, what was skipped and why, the counts."""

import re
import sys
import xml.etree.ElementTree


def reasons_in(case):
    """What scripts say in a line of their own (tests/runner/runner.py), and GoogleTest below the place."""
    output = case.findtext("system-out") or ""
    return re.findall(r"^skipped: *(.*)", output, re.MULTILINE) + re.findall(r": Skipped\n(.+)", output)


def main(path, seconds):
    passed, failed, skipped, in_part = [], [], [], []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        status, name = case.get("status"), case.get("name")
        reasons = reasons_in(case)
        if status == "run":
            (in_part if reasons else passed).append((name, reasons))
        elif status in ("notrun", "disabled") and case.find("skipped") is not None:
            reason = case.find("skipped").get("message", "")
            # A test that could not be started is a failure, one that declined is not.
            (skipped if "SKIP" in reason or status == "disabled" else failed).append((name, reasons))
        else:
            failed.append((name, []))
    for word, tests in (("skipped", skipped), ("skipped in part", in_part)):
        for name, reasons in tests:
            print("\n".join(f"{word}: {name}: {reason}" for reason in reasons) or f"{word}: {name}")
    for name, _ in failed:
        print(f"FAILED:  {name}")
    part = f" ({len(in_part)} skipped in part)" if in_part else ""
    print(f"{len(passed) + len(in_part)} passed{part}, {len(failed)} failed, {len(skipped)} skipped in {seconds} s")
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
