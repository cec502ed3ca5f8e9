"""What was skipped is told, from a test of a script (runner.py) to the last lines of `./dev test`, by ctest itself."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import runner

ROOT = pathlib.Path(__file__).resolve().parents[2]
CTEST, BUILD = os.environ["STERNA_CTEST"], os.environ["STERNA_BUILD"]

BEGIN = f"""
import sys, unittest
sys.path.insert(0, {str(pathlib.Path(__file__).resolve().parent)!r})
import runner
class Passing(unittest.TestCase):
    def test_passes(self):
        pass
"""
END = """
runner.main()
"""
SCRIPTS = {
    "passing": "",
    "mixed": """
class Other(unittest.TestCase):
    @unittest.skipIf(True, "the moon is new")
    def test_by_night(self):
        self.fail()
    def test_by_day(self):
        self.skipTest("the sun is down")
    def test_at_both(self):
        for time in ("day", "night"):
            with self.subTest(time):
                if time == "night":
                    self.skipTest("the moon is new")
""",
    "by_decorator": """
del Passing
@unittest.skipUnless(False, "nobody is root")
class Other(unittest.TestCase):
    def test_one(self):
        self.fail()
    def test_two(self):
        self.fail()
""",
    "by_class": """
del Passing
class Other(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise unittest.SkipTest("no namespaces here:\\nnot permitted")
    def test_one(self):
        self.fail()
""",
    "by_parts": """
del Passing
class Other(unittest.TestCase):
    def test_parts(self):
        for number in range(3):
            with self.subTest(number):
                self.skipTest("no part is here")
""",
    "failing": """
class Other(unittest.TestCase):
    def test_is_skipped(self):
        self.skipTest("the moon is new")
    def test_fails(self):
        self.fail()
""",
    "only_failing": """
del Passing
class Other(unittest.TestCase):
    def test_is_skipped(self):
        self.skipTest("the moon is new")
    @classmethod
    def tearDownClass(cls):
        raise RuntimeError("at the end")
""",
    "none": "del Passing\n",
}


class Runner(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        for name, text in SCRIPTS.items():
            (cls.folder / f"{name}.py").write_text(BEGIN + text + END)

    def run_script(self, name):
        done = subprocess.run([sys.executable, self.folder / f"{name}.py"], text=True, capture_output=True)
        return done.returncode, done.stdout.splitlines(), done.stderr

    def test_what_all_ran_is_passed(self):
        code, lines, errors = self.run_script("passing")
        self.assertEqual((code, lines), (0, ["1 of 1 tests were run"]), errors)

    def test_a_script_of_which_nothing_ran_is_skipped(self):
        for name, why in (("by_decorator", ["skipped: Other.test_one, Other.test_two: nobody is root",
                                            "0 of 2 tests were run"]),
                          ("by_class", ["skipped: setUpClass (Other): no namespaces here: not permitted",
                                        "0 of 1 tests were run"])):
            with self.subTest(name):
                code, lines, errors = self.run_script(name)
                self.assertEqual((code, lines), (runner.SKIPPED, why), errors)

    def test_a_test_whose_parts_were_all_skipped_was_skipped(self):
        code, lines, errors = self.run_script("by_parts")
        self.assertEqual((code, lines[-1]), (runner.SKIPPED, "0 of 1 tests were run"), errors)
        self.assertIn("no part is here", lines[0])

    def test_a_script_of_which_a_part_ran_is_passed_and_says_what_did_not(self):
        code, lines, errors = self.run_script("mixed")
        self.assertEqual((code, lines[-1]), (0, "2 of 4 tests were run"), errors)
        told = dict(reversed(line.removeprefix("skipped: ").rsplit(": ", 1)) for line in lines[:-1])
        self.assertEqual(set(told), {"the moon is new", "the sun is down"})
        self.assertEqual(told["the sun is down"], "Other.test_by_day")
        self.assertIn("Other.test_by_night", told["the moon is new"])
        self.assertIn("Other.test_at_both [night]", told["the moon is new"])

    def test_what_fails_is_no_skip(self):
        for name in ("failing", "only_failing"):
            with self.subTest(name):
                self.assertEqual(self.run_script(name)[0], 1)

    def test_a_script_without_tests_fails(self):
        self.assertEqual(self.run_script("none")[0], 1)

    def test_ctest_and_the_summary_tell_the_same(self):
        scripts = sorted(SCRIPTS)
        (self.folder / "CTestTestfile.cmake").write_text("".join(
            f'add_test(script.{name} "{sys.executable}" "{self.folder}/{name}.py")\n'
            f"set_tests_properties(script.{name} PROPERTIES SKIP_RETURN_CODE 77)\n" for name in scripts))
        subprocess.run([CTEST, "--output-junit", "results.xml"], cwd=self.folder, capture_output=True)
        done = subprocess.run([sys.executable, ROOT / "tools/test_summary.py", self.folder / "results.xml", "7"],
                              text=True, capture_output=True)
        told = done.stdout.splitlines()
        for line in ("skipped: script.by_decorator: Other.test_one, Other.test_two: nobody is root",
                     "skipped: script.by_class: setUpClass (Other): no namespaces here: not permitted",
                     "skipped in part: script.mixed: Other.test_by_day: the sun is down",
                     "FAILED:  script.failing", "FAILED:  script.only_failing", "FAILED:  script.none",
                     "2 passed (1 skipped in part), 3 failed, 3 skipped in 7 s"):
            self.assertIn(line, told)
        self.assertEqual((done.returncode, done.stderr), (1, ""))


class AllScripts(unittest.TestCase):
    FOLDERS = [ROOT / "tests", ROOT / "bench"]

    def test_ctest_knows_the_code_for_all_of_them(self):
        listed = subprocess.run([CTEST, "--show-only=json-v1"], cwd=BUILD, text=True, capture_output=True, check=True)
        asked = 0
        for test in json.loads(listed.stdout)["tests"]:
            script = next((pathlib.Path(word) for word in test.get("command", []) if word.endswith(".py")), None)
            if script is not None and any(folder in script.parents for folder in self.FOLDERS):
                properties = {one["name"]: one["value"] for one in test["properties"]}
                self.assertEqual(properties.get("SKIP_RETURN_CODE"), runner.SKIPPED, test["name"])
                asked += 1
        self.assertGreater(asked, 0)

    def test_none_runs_its_tests_by_itself(self):
        scripts = [path for folder in self.FOLDERS for path in folder.rglob("*.py")
                   if path.parent != pathlib.Path(__file__).resolve().parent]
        for script in scripts:
            self.assertNotIn("unittest.main(", script.read_text(), script)
        self.assertGreater(len(scripts), 0)


if __name__ == "__main__":
    runner.main()
