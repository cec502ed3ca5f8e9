"""Runs the examples of the user guide: lines of docs/guide/*.md that begin with `$`.

What follows two spaces is a remark. In the folder of the examples; none may fail.
"""

import os
import pathlib
import re
import subprocess
import sys

root, bin_folder, examples = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
failed = 0
count = 0
for page in sorted((root / "docs" / "guide").glob("*.md")):
    for number, line in enumerate(page.read_text().splitlines(), 1):
        found = re.match(r"    \$ (.*)", line)
        if found is None:
            continue
        command = re.split(r" {2,}", found[1])[0]
        count += 1
        try:
            done = subprocess.run(command, shell=True, cwd=examples, env=environment, timeout=240,
                                  capture_output=True, text=True, check=False)
            code, output = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            code, output = "none within 240 s", ""
        if code != 0:
            failed += 1
            print(f"{page.name}:{number}: {command}\nexit code {code}\n{output}")
print(f"{count} commands, {failed} failed")
sys.exit(1 if failed != 0 or count == 0 else 0)
