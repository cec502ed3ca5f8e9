"""What the tests with programs of others share: where they are kept, how they are obtained."""

import os
import pathlib
import subprocess
import sys

SKIPPED = 77  # What ctest takes for "not run".
FOLDER = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
CACHE = FOLDER / "sterna" / "clients"


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def output_of(words, seconds=600, **options):
    """(exit code, stdout and stderr) of a command; a code of 124 says that it took too long."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=seconds, check=False, **options)
    except subprocess.TimeoutExpired as late:
        text = late.stdout or b""
        return 124, text if isinstance(text, str) else text.decode(errors="replace")
    return done.returncode, done.stdout


def obtain(what, words, **options):
    """Runs a command that needs a registry; what cannot be had is skipped, not failed."""
    code, text = output_of(words, **options)
    if code != 0:
        skip(f"{what} cannot be obtained here: {' '.join(map(str, words))}\n{text[-1500:]}")
    return text


def build(what, words, **options):
    """Runs a command that must work."""
    code, text = output_of(words, **options)
    if code != 0:
        sys.exit(f"{what} cannot be built: {' '.join(map(str, words))}\n{text[-4000:]}")
    return text


def python_with(*packages):
    """The bin folder of a virtual environment in the cache with these packages from PyPI."""
    CACHE.mkdir(parents=True, exist_ok=True)
    tools = CACHE / "venv" / "bin"
    if not (tools / "pip").exists():
        obtain("a virtual environment", [sys.executable, "-m", "venv", CACHE / "venv"])
    obtain(" ".join(packages), [tools / "pip", "install", "-q", "--disable-pip-version-check",
                                *packages])
    return tools
