"""Command lines: what is wrong is named, with what is allowed; what others' users type works."""

import json
import pathlib
import tempfile
import time

from harness import MPIEXEC, PROBE, STERNA, LaunchTest, main


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
            (["--set", "tcp_silence_timeout=0", "true"], ["tcp_silence_timeout", "from 1s"]),
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
            (["-n", "1" * 30, "true"], ["-n", "1048576"]),
            (["-n", "2", "--nodes", "5", "true"], ["--nodes 5", "-n 2"]),
            (["-n", "2", "--nodes", "1" * 30, "true"], ["--nodes", "1048576"]),
            (["--drivers", "nosuch", "true"], ["--drivers", "nosuch", "shm", "tcp"]),
            (["--drivers", "shm,,tcp", "true"], ["--drivers", "shm,,tcp"]),
            (["--drivers", "shm,", "true"], ["--drivers", "shm,"]),
            (["--drivers", "shm,tcp,shm", "true"], ["--drivers", "shm,tcp,shm"]),
            (["--set", "net_strategy=nosuch", "true"], ["nosuch", "aggregate", "direct"]),
            (["--set", "log=loud", "true"], ["--set", "loud", "error, warn, info"]),
            (["--set", "tcp_ports=9-3", "true"], ["--set", "9-3", "20000-20100"]),
            (["--set", "fault=source:nosuch", "true"], ["source:nosuch", "source:frozen"]),
            (["--stack-size", "1", "true"], ["--stack-size", "64K"]),
            (["--stack-size", "999999999T", "true"], ["--stack-size", "999999999T"]),
            (["-n", "1048576", "--nodes", "4", "true"], ["-n 1048576", "at most"]),
            (["--nodes", "1", "--stack-size", "1T", "true"], ["1T", "1 ranks", "at most"]),
            (["--ppn", "0", "true"], ["--ppn", "from 1"]),
            (["--ppn", "x", "true"], ["--ppn", "x"]),
            (["--timeout", "0", "true"], ["--timeout", "a time"]),
            (["--timeout", "-1s", "true"], ["--timeout", "a time"]),
            (["--hosts", "-x", "true"], ["--hosts", "-x"]),
            (["--hosts", "a", "--hostfile", "b", "true"], ["--hosts", "--hostfile"]),
            (["--hosts", "", "true"], ["--hosts", "empty"]),
            (["--hosts=", "true"], ["--hosts=", "no value"]),
            (["--hosts", ",", "true"], ["--hosts", "no host"]),
            (["-n", "", "true"], ["--ranks", "empty"]),
            (["--nodes", "", "true"], ["--nodes", "empty"]),
            ([""], ["name of the program", "empty"]),
            (["--hosts", "a", "--launcher-exec", " ", "true"], ["--launcher-exec", "empty"]),
            (["--json", "/no/folder/report", "true"], ["/no/folder/report"]),
            (["--json", "/tmp", "true"], ["/tmp"]),
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
            (["-n", "1" * 30, "true"], ["-n", "1048576"]),
            (["-n", "2", "-nodes", "5", "true"], ["--nodes 5", "-n 2"]),
            (["-ppn", "0", "true"], ["-ppn", "from 1"]),
            (["-drivers", "nosuch", "true"], ["-drivers", "nosuch", "shm", "tcp"]),
            (["--drivers=nosuch", "true"], ["nosuch", "shm", "tcp"]),
            (["-balance", "nosuch", "true"], ["-balance", "none", "greedy", "refine"]),
            (["-set", "log", "true"], ["-set", "name=value"]),
            (["-set", "", "true"], ["-set", "name=value"]),
            (["-timeout", "soon", "true"], ["-timeout", "soon"]),
            (["--report=yes", "true"], ["--report=yes", "no value"]),
            (["-json", "/no/folder/report", "true"], ["/no/folder/report"]),
            (["-wdir", "", "true"], ["-wdir", "empty"]),
            (["--host=", "true"], ["--host=", "empty"]),
            (["-balance", "", "true"], ["-balance", "empty"]),
        ):
            with self.subTest(words=words):
                self.refused(MPIEXEC, *words, naming=naming)

    def test_settings_of_the_environment_are_refused_before_anything_starts(self):
        for name, value, naming in (
            ("STERNA_DRIVERS", "nosuch", ["STERNA_DRIVERS", "nosuch", "shm", "tcp"]),
            ("STERNA_BALANCE", "nosuch", ["STERNA_BALANCE", "nosuch", "none", "refine"]),
            ("STERNA_NET_STRATEGY", "nosuch", ["STERNA_NET_STRATEGY", "aggregate", "direct"]),
            ("STERNA_NODES", "many", ["STERNA_NODES", "many"]),
            ("STERNA_CONFIG", "/no/file", ["/no/file"]),
            ("STERNA_CONFIG", "/tmp", ["/tmp", "folder"]),
        ):
            environment = {**self.environment, name: value}
            for words in ([STERNA, "run"], [MPIEXEC]):
                with self.subTest(name=name, words=words):
                    done = self.run_job(*words, "-n", 2, "echo", "x", env=environment)
                    self.assertEqual((done.returncode, done.stdout), (2, ""))
                    for word in naming:
                        self.assertIn(word, done.stderr)
        self.refused(STERNA, "run", "--env", "STERNA_DRIVERS=nosuch", "true",
                     naming=["STERNA_DRIVERS", "nosuch", "shm"])

    def test_an_unknown_command_is_refused(self):
        self.refused(STERNA, "fly", naming=["fly", "--help"])

    def test_wrong_words_of_the_other_commands_are_refused_by_name(self):
        for words in (["info", "--frob"], ["info", "frob"], ["ps", "--frob"], ["ps", "frob"],
                      ["move", "x", "1", "2"], ["move", "1" * 30, "1", "2"], 
                      ["topo", "--frob"], ["topo", "frob"], ["bench", "--frob"]):
            with self.subTest(words=words):
                self.refused(STERNA, *words, naming=[words[1], f"sterna {words[0]} --help"])

    def test_values_that_the_other_commands_cannot_mean_are_refused(self):
        self.refused(STERNA, "move", "1", "2", "3", "--frob", naming=["--frob", "sterna move --help"])
        self.refused(STERNA, "move", "1", "2", naming=["NODE", "sterna move --help"])
        self.refused(STERNA, "bench", "nosuch", naming=["nosuch", "sterna bench --list"])
        for machine in ("garbage", "core:0", "core:2 pu", "core:99999999999", ":"):
            with self.subTest(machine=machine):
                self.refused(STERNA, "topo", "--machine", machine, naming=[machine])

    def test_parts_of_what_there_is_are_listed_from_the_tables(self):
        whole = json.loads(self.run_job(STERNA, "info", "--json").stdout)
        for option, key in (("--drivers", "drivers"), ("--decorators", "decorators"),
                            ("--strategies", "strategies"),
                            ("--policies", "policies"), ("--loops", "loops"),
                            ("--balancers", "balancers"), ("--polling", "polling"),
                            ("--options", "settings")):
            with self.subTest(option=option):
                done = self.run_job(STERNA, "info", option, "--json")
                self.assertEqual(json.loads(done.stdout), whole[key])
                lines = self.run_job(STERNA, "info", option).stdout.splitlines()
                self.assertEqual([line.split()[0] for line in lines],
                                 [entry["name"] for entry in whole[key]])
                for line, entry in zip(lines, whole[key]):
                    self.assertIn(entry.get("summary") or entry["help"], line)
        self.assertEqual([loop["name"] for loop in whole["loops"]],
                         ["block", "cyclic", "dynamic", "guided", "trapezoid", "factoring",
                          "affinity", "clustered", "hierarchical"])
        done = self.run_job(STERNA, "info", "--mpi", "--json")
        self.assertIn("MPI_Send", json.loads(done.stdout)["implemented"])
        both = json.loads(self.run_job(STERNA, "info", "--drivers", "--policies", "--json").stdout)
        self.assertEqual(both, {key: whole[key] for key in ("drivers", "policies")})

    def test_what_an_empty_list_of_drivers_leaves_out_is_on_request(self):
        info = json.loads(self.run_job(STERNA, "info", "--json").stdout)
        self.assertEqual({driver["name"] for driver in info["drivers"] if driver["on_request"]},
                         {"unix", "fabric", "replay"})
        # Where each is polled is asked of those that a job would open: the others are not among them.
        self.assertEqual({row["name"] for row in info["polling"]},
                         {driver["name"] for driver in info["drivers"] if not driver["on_request"]})
        for line in self.run_job(STERNA, "info", "--drivers").stdout.splitlines():
            is_marked = line.split()[0] in ("unix", "fabric", "replay")
            self.assertEqual(line.endswith("(on request)"), is_marked, line)
        decorators = self.run_job(STERNA, "info", "--decorators").stdout
        for name in ("count", "delay", "drop", "record", "trace"):
            self.assertRegex(decorators, rf"(?m)^{name} ")
        text = self.run_job(STERNA, "info").stdout
        self.assertRegex(text, r"(?m)^  unix .*\(on request\)$")
        self.assertRegex(text, r"(?m)^  record ")

    def test_costs_are_those_of_the_profiles_and_of_this_machine_as_it_is_now(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**self.environment, "XDG_CACHE_HOME": folder}

            def costs():
                done = self.run_job(STERNA, "info", "--costs", "--json", env=environment)
                self.assertEqual(done.returncode, 0, done.stderr)
                return json.loads(done.stdout)

            def origins(told):
                return [(way["driver"], way["way"], way["figures"]["latency_ns"]["from"])
                        for way in told["ways"]]

            told = costs()
            profiles = origins(told)
            self.assertEqual({origin for _, _, origin in profiles}, {"profile"})
            self.assertIn(("tcp", "any", "profile"), profiles)
            path = pathlib.Path(told["file"])
            path.parent.mkdir()
            now = int(time.clock_gettime(time.CLOCK_MONOTONIC))
            way = f"way tcp far 65536 {now} 7000 500 250 10 0 0\n"
            path.write_text(f"sterna-costs 2\nmachine {told['machine']}\n{way}end 1\n")
            text = self.run_job(STERNA, "info", "--costs", env=environment).stdout
            self.assertIn(("tcp", "far", "cached"), origins(costs()))
            self.assertIn("latency_ns 7000 (cached)", text)
            path.write_text(f"sterna-costs 2\nmachine another\n{way}end 1\n")
            self.assertEqual(origins(costs()), profiles)
            self.assertIn("another machine", costs()["state"])
            path.write_text("garbage")
            self.assertEqual(origins(costs()), profiles)

    def test_why_tells_protocol_strategy_and_shares_of_rails(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**self.environment, "XDG_CACHE_HOME": folder}

            def ask(*question):
                return self.run_job(STERNA, "info", "--why", *question, env=environment)

            told = json.loads(ask("net", "tcp", "64K", "--json").stdout)
            self.assertEqual((told["bytes"], told["strategy"]), (65536, "auto"))
            self.assertIn("eager", told["ways"][0]["protocol"])
            self.assertNotEqual(told["ways"][0]["forming"], "")
            self.assertEqual(told["link"]["is_link"], False)
            self.assertIn("one rail that loses nothing", told["link"]["why"])
            told = json.loads(self.run_job(STERNA, "info", "--costs", "--json",
                                           env=environment).stdout)
            path = pathlib.Path(told["file"])
            path.parent.mkdir()
            now = int(time.clock_gettime(time.CLOCK_MONOTONIC))
            path.write_text(f"sterna-costs 2\nmachine {told['machine']}\n"
                            f"way tcp far 65536 {now} 7000 500 250 10 0 0\n"
                            f"way link(tcp) far 65536 {now} 7000 0 250 10 0 0\n"
                            f"way link(tcp@eth1) far 65536 {now} 7000 0 750 10 0 0\nend 3\n")
            # The job's drivers: shm reaches no other host, so one rail is left.
            self.assertEqual(json.loads(ask("net", "far", "64M", "--json").stdout)["link"]["is_link"],
                             False)
            # Of this host the first driver copies directly, and no second rail is used with it.
            told = json.loads(ask("net", "shm,tcp", "64M", "--json").stdout)
            self.assertEqual(told["link"]["is_link"], False)
            rails = "tcp,tcp@eth1"
            told = json.loads(ask("net", rails, "64M", "--json").stdout)["link"]
            self.assertEqual(told["is_link"], True)
            shares = {rail["driver"]: rail["bytes"] / 2**26 for rail in told["rails"]}
            self.assertAlmostEqual(shares["tcp"], 0.75, delta=0.01)
            self.assertIn("measured", told["rails"][0]["figures"])
            self.assertIn("rail 0: 72536 ns (latency 7000", told["choice"])
            self.assertIn("A link (tcp+tcp@eth1", ask("net", rails, "64M").stdout)
            environment["STERNA_DRIVERS"] = rails
            environment["STERNA_NET_STRATEGY"] = "split"
            told = json.loads(ask("net", "far", "64M", "--json").stdout)["link"]
            self.assertIn("rail 1: 1333 MB/s, a share of 25.0 %", told["choice"])
            environment["STERNA_NET_STRATEGY"] = "urgent"
            told = json.loads(ask("net", "far", "4K", "--json").stdout)["link"]
            self.assertIn("short ones take the quickest, rail 0 (latency 7000 ns)", told["choice"])
            environment["STERNA_DRIVERS"] = "shm"
            environment["STERNA_NET_CHECKSUMS"] = "on"
            told = json.loads(ask("net", "shm", "64M", "--json").stdout)["link"]
            self.assertIn("net_checksums", told["why"])
            for name in ("STERNA_DRIVERS", "STERNA_NET_STRATEGY", "STERNA_NET_CHECKSUMS"):
                del environment[name]
            for question in (("net", "mars", "1"), ("net", "tcp", "much"), ("cpu", "tcp", "1")):
                done = ask(*question)
                self.assertEqual(done.returncode, 2, question)
                self.assertIn("--why" if question[1] != "tcp" or question[0] != "net" else "much",
                              done.stderr)

    def test_a_missing_program_is_named(self):
        for words in (["nosuchprogram"], ["./nosuchprogram"], ["/etc/passwd"], ["/usr"]):
            done = self.run_job(STERNA, "run", "-n", 2, *words)
            self.assertEqual(done.returncode, 127)
            self.assertIn(words[0], done.stderr)

    def test_a_missing_folder_is_named(self):
        for program in ("true", "./true"):
            done = self.run_job(STERNA, "run", "-n", 2, "--wdir", "/no/folder", program)
            self.assertEqual(done.returncode, 127)
            self.assertIn("folder /no/folder", done.stderr)

    def test_a_binary_that_cannot_run_here_is_no_script(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "program")
            binary = bytearray(pathlib.Path(PROBE).read_bytes()[:4096])
            binary[18:20] = b"\xf7\x00"  # For another kind of machine (eBPF).
            for content, why in ((bytes(binary), "another kind of machine"),
                                 (b"#!/no/interpreter\n", "interpreter or loader")):
                file.write_bytes(content)
                file.chmod(0o755)
                for way in ([file], ["--wdir", folder, "./program"],
                            ["--env", f"PATH={folder}", "program"]):
                    with self.subTest(why=why, way=way):
                        done = self.run_job(STERNA, "run", "-n", 2, *way)
                        self.assertEqual(done.returncode, 127, done.stderr)
                        self.assertIn(why, done.stderr)

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

    def test_the_last_of_two_values_wins(self):
        for words in ([STERNA, "run", "--env", "A=1", "--env", "A=2"],
                      [MPIEXEC, "-x", "A=1", "-env", "A", "2"],
                      [MPIEXEC, "-env", "A", "2", "-genv", "A", "1"],
                      [MPIEXEC, "-genv", "A", "1", "-genv", "A", "2"]):
            with self.subTest(words=words):
                self.assertEqual(self.run_job(*words, "sh", "-c", "echo $A").stdout, "2\n")

    def test_variables_and_folders_of_one_program_are_not_those_of_another(self):
        show = ["sh", "-c", "echo $A-$B-$(pwd)"]
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder).resolve()
            done = self.run_job(MPIEXEC, "-l", "-n", 1, "-env", "A", 1, "-wdir", "/usr", *show, ":", "-n", 1,
                                "-env", "A", 2, *show, ":", "-n", 1, "-genv", "B", 3, *show, cwd=folder)
            self.assertEqual(sorted(done.stdout.splitlines()),
                             ["[0] 1-3-/usr", f"[1] 2-3-{folder}", f"[2] -3-{folder}"])

    def test_the_file_of_settings_is_one_file_wherever_the_ranks_run(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder).resolve() / "own.toml"
            file.write_text("log = 'warn'\n")
            environment = {**self.environment, "STERNA_CONFIG": file.name}
            for words in ([], ["--env", f"STERNA_CONFIG={file.name}"]):
                done = self.run_job(STERNA, "run", "--wdir", "/usr", *words, "sh", "-c",
                                    "echo $STERNA_CONFIG", cwd=folder, env=environment)
                self.assertEqual((done.stdout, done.stderr), (f"{file}\n", ""))

    def test_files_to_be_written_are_kept_until_the_job_is_there(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "precious"
            file.write_text("precious")
            file.chmod(0o755)
            for option in ("--trace", "--json"):
                for words in ([file.with_name("input.txt")], ["-n", "0", "true"], ["--hosts", ",", "true"]):
                    with self.subTest(option=option, words=words):
                        done = self.run_job(STERNA, "run", option, file, *words)
                        self.assertNotEqual(done.returncode, 0)
                        self.assertEqual(file.read_text(), "precious")

    def test_output_that_cannot_be_written_is_no_success(self):
        for words in (["info"], ["info", "--json"], ["topo"], ["bench", "--list"], ["--help"], ["ps"],
                      ["run", "--help"]):
            for where in (">/dev/full", ">&-"):
                with self.subTest(words=words, where=where):
                    done = self.run_job("sh", "-c", f'"$@" {where}', "sh", STERNA, *words)
                    self.assertEqual(done.returncode, 1)
                    self.assertIn("sterna: ", done.stderr)
        done = self.run_job("sh", "-c", '"$@" 2>/dev/full', "sh", STERNA, "run", "-v", "-n", 1, "true")
        self.assertEqual(done.returncode, 0)

    def test_a_folder_is_no_trace(self):
        done = self.run_job(STERNA, "trace", "/tmp")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/tmp: cannot be read", done.stderr)

    def test_what_scripts_say_to_other_launchers_is_accepted(self):
        done = self.run_job(MPIEXEC, "--mca", "btl", "self,tcp", "--bind-to", "none", "--map-by=core",
                            "--oversubscribe", "-rmk", "user", "-n", 2, "echo", "x")
        self.assertEqual((done.stdout, done.stderr), ("x\nx\n", ""))
        done = self.run_job(MPIEXEC, "--mca", "btl")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--mca btl needs a value", done.stderr)

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
    main()
