"""Command lines: what is wrong is named, with what is allowed; what others' users type works."""

import unittest

from harness import MPIEXEC, PROBE, STERNA, LaunchTest


class Options(LaunchTest):
    def refused(self, *words, naming):
        done = self.run_job(*words)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stdout, "")
        for word in naming:
            self.assertIn(word, done.stderr)

    def test_wrong_command_lines_are_refused_by_name(self):
        for words, naming in (
            (["--frobnicate", "true"], ["--frobnicate", "--help"]),
            (["-n", "0", "true"], ["-n", "from 1"]),
            (["-n", "-3", "true"], ["-n", "from 1"]),
            (["-n", "many", "true"], ["-n", "many"]),
            (["-n", "99999999", "true"], ["-n", "1048576"]),
            (["-n", "5000", "true"], ["4096", "--nodes"]),
            (["-n", "2", "--nodes", "4", "true"], ["--nodes 4", "-n 2"]),
            (["-n", "2", "--nodes", "0", "true"], ["--nodes", "from 1"]),
            (["-n", "2", "--nodes", "-1", "true"], ["--nodes", "from 1"]),
            (["--set", "tcp_silence_timeout=0", "true"], ["tcp_silence_timeout", "1s or more"]),
            (["-n", "2", "--map", "zigzag", "true"], ["--map", "block", "cyclic"]),
            (["--balance", "magic", "true"], ["--balance", "none", "greedy", "refine"]),
            (["--balance-interval", "soon", "true"], ["--balance-interval", "soon"]),
            (["--set", "frob=1", "true"], ["--set", "frob", "sterna info"]),
            (["--set", "frob", "true"], ["--set", "name=value"]),
            (["--timeout", "never", "true"], ["--timeout", "never"]),
            (["--env", "=x", "true"], ["--env"]),
            (["--hosts", "a:zero", "true"], ["--hosts", "a:zero"]),
            (["--hostfile", "/nowhere", "true"], ["/nowhere"]),
            ([], ["no program"]),
        ):
            with self.subTest(words=words):
                self.refused(STERNA, "run", *words, naming=naming)

    def test_mpiexec_refuses_by_name_too(self):
        for words, naming in (
            (["-frobnicate", "true"], ["-frobnicate", "--help"]),
            (["-n", "0", "true"], ["-n", "from 1"]),
            (["-n"], ["-n", "value"]),
            ([], ["no program"]),
            (["-n", "1", "true", ":"], ["no program"]),
            (["-genv", "A"], ["-genv A", "value"]),
        ):
            with self.subTest(words=words):
                self.refused(MPIEXEC, *words, naming=naming)

    def test_an_unknown_command_is_refused(self):
        self.refused(STERNA, "fly", naming=["fly", "--help"])

    def test_wrong_words_of_the_other_commands_are_refused_by_name(self):
        for words in (["info", "--frob"], ["ps", "--frob"], ["move", "x", "1", "2"]):
            with self.subTest(words=words):
                self.refused(STERNA, *words, naming=[words[1], f"sterna {words[0]} --help"])

    def test_a_missing_program_is_named(self):
        for words in (["nosuchprogram"], ["./nosuchprogram"], ["/etc/passwd"], ["/usr"]):
            done = self.run_job(STERNA, "run", "-n", 2, *words)
            self.assertEqual(done.returncode, 127)
            self.assertIn(words[0], done.stderr)

    def test_a_missing_folder_is_named(self):
        done = self.run_job(STERNA, "run", "-n", 2, "--wdir", "/no/folder", "true")
        self.assertEqual(done.returncode, 127)
        self.assertIn("/no/folder", done.stderr)

    def test_variables_and_folders_reach_the_ranks(self):
        script = "echo $A-$B-$C-$(pwd)"
        expected = "1-2 3-here-/usr\n"
        environment = {**self.environment, "C": "here"}
        for words in (
            [STERNA, "run", "--env", "A=1", "--env", "B=2 3", "--env", "C", "--wdir", "/usr"],
            [MPIEXEC, "-genv", "A", "1", "-env", "B", "2 3", "-x", "C", "-wdir", "/usr"],
            [MPIEXEC, "-x", "A=1", "--genv", "B=2 3", "-envlist", "C", "--wdir=/usr"],
        ):
            done = self.run_job(*words, "-n", 1, "sh", "-c", script, env=environment)
            self.assertEqual((done.stdout, done.stderr), (expected, ""))

    def test_several_programs_make_one_job(self):
        done = self.run_job(MPIEXEC, "-l", "-n", 1, "echo", "a", ":", "-n", 2, "echo", "b")
        self.assertEqual(sorted(done.stdout.splitlines()), ["[0] a", "[1] b", "[2] b"])

    def test_options_of_the_program_are_its_own(self):
        done = self.run_job(STERNA, "run", "-n", 1, "echo", "-n", "--help", "--", "x")
        self.assertEqual(done.stdout, "--help -- x")
        done = self.run_job(STERNA, "run", "-n", 1, "--", "echo", "y")
        self.assertEqual(done.stdout, "y\n")

    def test_help_and_version_are_there(self):
        for words in ([STERNA, "--help"], [STERNA, "run", "--help"], [MPIEXEC, "--help"],
                      [MPIEXEC, "--version"], [STERNA, "--version"]):
            done = self.run_job(*words)
            self.assertEqual(done.returncode, 0, words)
            self.assertRegex(done.stdout, "(?i)sterna")

    def test_the_exit_code_passes_as_it_is(self):
        for code in (0, 1, 77, 255):
            done = self.run_job(MPIEXEC, "-n", 2, PROBE, f"exit:{code}")
            self.assertEqual(done.returncode, code)


if __name__ == "__main__":
    unittest.main(verbosity=2)
