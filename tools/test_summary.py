#!/usr/bin/env python3
"""Prints the result of a ctest run, from its JUnit file: what failed, what was skipped, the counts."""

import sys
import xml.etree.ElementTree


def main(path, seconds):
    passed, failed, skipped = 0, [], []
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        status, name = case.get("status"), case.get("name")
        if status == "run":
            passed += 1
        elif status in ("notrun", "disabled") and case.find("skipped") is not None:
            reason = case.find("skipped").get("message", "")
            # A test that could not be started is a failure, one that declined is not.
            (skipped if "SKIP" in reason or status == "disabled" else failed).append(name)
        else:
            failed.append(name)
    for name in skipped:
        print(f"skipped: {name}")
    for name in failed:
        print(f"FAILED:  {name}")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped in {seconds} s")
    return min(len(failed), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
