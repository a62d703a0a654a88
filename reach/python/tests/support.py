"""What the tests share: the program, and streams of requests.

The variable TAILWRIGHT names the program, TAILWRIGHT_EXAMPLES the folder of its example scenarios. The working
directory is empty at first.
"""

import importlib
import os
import random
import re
import subprocess
from pathlib import Path

import numpy as np

EXAMPLES = Path(os.environ["TAILWRIGHT_EXAMPLES"])

#: Fields that say how long something took.
_ELAPSED = re.compile(
    r'"(elapsed_s|cpu_s|characterise_s|sketching_s|search_s|requests_per_wall_s)": [0-9.e+-]+'
)


def _optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


pandas = _optional("pandas")
polars = _optional("polars")
pyarrow = _optional("pyarrow")
if pyarrow is not None:
    importlib.import_module("pyarrow.dataset")
    importlib.import_module("pyarrow.parquet")


def skipped(reason):
    """Prints what the test program repeats where capture of its output does not swallow it."""
    print(f"SKIPPED {reason}", flush=True)


def run(*args):
    """Runs the program and returns its process."""
    command = [os.environ["TAILWRIGHT"], *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def untimed(text):
    """Returns a document without what differs from run to run."""
    return _ELAPSED.sub(r'"\1": 0', text)


def bursty(seed, count):
    """Returns times in ns, sizes, and which are writes, of a bursty stream."""
    draw = random.Random(seed)
    at, rows = draw.randrange(10**9), []
    for _ in range(count):
        at += draw.randrange(2 * 10**9) if draw.random() < 0.05 else draw.randrange(3 * 10**6)
        rows.append((at, 4096 << draw.randrange(6), draw.random() < 0.4))
    time, size, is_write = zip(*rows)
    return np.array(time), np.array(size), np.array(is_write)


class OnlyAStream:
    """An object that offers Arrow's stream and nothing else."""

    def __init__(self, column):
        self.column = column

    def __arrow_c_stream__(self, requested_schema=None):
        return self.column.__arrow_c_stream__(requested_schema)
