#!/usr/bin/env python3
"""Two services, one that removes noise from images and one that classifies them, with and without serving the oldest first.

    examples/image-pipeline/run.py                        # about four minutes
    examples/image-pipeline/run.py --seconds 20 --repetitions 9 --load 0.85

Needs Python from 3.11 with venv, cargo, and packages of PyPI (requirements.txt), which it installs into a folder of its own that
is deleted at the end. `--venv FOLDER` keeps them, and uses them again. `--library FILE` is libtailwright_schedule_abi.so
if it is built already. The measurement takes --load, --seconds, --repetitions, -c and --seed.
Exit codes: 0 done; 1 a service failed; 2 wrong arguments; 3 something that it needs is missing; 130 interrupted.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import venv

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def missing(what):
    print(f"error: {what}", file=sys.stderr)
    sys.exit(3)


def built_library():
    if shutil.which("cargo") is None:
        missing("there is no cargo to build the gate; give --library")
    command = ["cargo", "build", "--quiet", "--release", "-p", "tailwright-schedule-abi"]
    if subprocess.run(command, cwd=ROOT).returncode:
        missing("the gate cannot be built; what cargo said stands above")
    target = os.environ.get("CARGO_TARGET_DIR", "target")
    return ROOT / target / "release" / "libtailwright_schedule_abi.so"


def make_environment(folder, python):
    try:
        venv.create(folder, with_pip=True)
    except BaseException as error:
        # The next run makes it again.
        with contextlib.suppress(OSError):
            python.unlink(missing_ok=True)
        if not isinstance(error, (OSError, subprocess.CalledProcessError)):
            raise
        missing(f"{folder}: no environment of Python can be made: {error}; Debian has it in python3-venv")


def python_with_packages(folder):
    python = folder / "bin" / "python"
    # Pip is the last to come.
    if not (python.exists() and (folder / "bin" / "pip").exists()):
        make_environment(folder, python)
    wanted = HERE / "requirements.txt"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "-r", wanted]
    if subprocess.run(pip).returncode:
        missing("packages of PyPI cannot be installed; what pip said stands above")
    return python


@contextlib.contextmanager
def kept_or_temporary(folder):
    if folder is not None:
        yield folder.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="image-pipeline-") as temporary:
        yield pathlib.Path(temporary)


def run_to_its_end(command):
    """Runs the measurement, which ends its services before itself when it is interrupted."""
    with subprocess.Popen(command) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            # Not every interrupt is one of the terminal, which it gets as well; it heeds the first.
            process.send_signal(signal.SIGINT)
            process.wait()
            raise


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--venv", type=pathlib.Path)
    parser.add_argument("--library", type=pathlib.Path)
    own, others = parser.parse_known_args()
    if own.library is not None and not own.library.exists():
        missing(f"{own.library}: there is no such library")
    library = own.library.resolve() if own.library else built_library()
    with kept_or_temporary(own.venv) as folder:
        python = python_with_packages(folder)
        return run_to_its_end([python, "-B", HERE / "bench.py", library, *others])


try:
    sys.exit(main())
except KeyboardInterrupt:
    sys.exit(130)
