"""Figures of fleets: rows per second, cost per terabyte, and what cells cost in servers.

    python fleet.py rows 20e6 80e6          # one machine, two sizes
    python fleet.py spark 20e6 80e6         # Spark in local-cluster mode
    python fleet.py cells 1000 10000        # one plan against cells
    python fleet.py one 10000               # one plan
    python fleet.py fleet 100000            # a fleet in cells of 100, without and with classes

Files are kept in the working directory. Times are CPU times of this
machine, in which other work beside them counts little.
"""

import json
import math
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tailwright as tw
from tailwright.fleet import curves_by_workload, plan_in_cells, streams

SSD = {"bandwidthTable": [
    {"requestSize": 4096, "readBandwidth": 400e6, "writeBandwidth": 200e6},
    {"requestSize": 65536, "readBandwidth": 1500e6, "writeBandwidth": 900e6},
]}
#: Price of a core for an hour, to turn core-hours into money; a list price of 2026 within a factor of two.
CORE_HOUR = 0.04
FILE_ROWS = 2_000_000
WORKLOADS = 1000
#: Length of the traces of a fleet that is planned.
SPAN_S = 120


def files(rows):
    """Writes requests of many workloads, in order of time, and returns their folder and size in bytes."""
    folder = Path(f"requests-{rows}")
    if not folder.exists():
        part = Path(f"{folder}.part")
        part.mkdir(exist_ok=True)
        draw = np.random.default_rng(1)
        names = pa.array([f"volume-{number:05}" for number in range(WORKLOADS)])
        # The first workload has about a seventh of the requests.
        share = 1 / np.arange(1, WORKLOADS + 1)
        begin = 1_700_000_000 * 10**9
        for number, first in enumerate(range(0, rows, FILE_ROWS)):
            count = min(FILE_ROWS, rows - first)
            gaps = draw.exponential(5_000, count)
            gaps[draw.random(count) < 0.001] += 2_000_000
            times = begin + np.cumsum(gaps).astype(np.int64)
            begin = int(times[-1]) + 1
            workload = pa.DictionaryArray.from_arrays(draw.choice(WORKLOADS, count, p=share / share.sum()).astype(np.int32), names)
            size = draw.choice([4096, 16384, 65536], count, p=[0.7, 0.2, 0.1])
            table = pa.table({
                "workload": workload.cast(pa.string()),
                # Spark reads nanoseconds as whole numbers only.
                "time": times,
                "size": size,
                "op": np.where(draw.random(count) < 0.3, "write", "read"),
            })
            pq.write_table(table, part / f"{number:05}.parquet", compression="zstd")
        part.rename(folder)
    return folder, sum(file.stat().st_size for file in folder.iterdir())


def report(name, measured):
    """Prints rows per second of CPU time of each size, the growth, and what a terabyte costs by it."""
    for count, size, seconds in measured:
        rate = count / seconds
        print(f"{name}: {count:,} rows, {size / 1e6:.0f} MB of Parquet: {seconds:.1f} s of CPU time, {rate:,.0f} rows/s")
    (few, _, fast), (many, size, slow) = measured[0], measured[-1]
    growth = math.log(slow / fast) / math.log(many / few)
    # Nothing that reads every row grows more slowly than their number.
    hours = slow * (1e12 / size) ** max(growth, 1) / 3600
    print(
        f"{name}: time grows as size to the power of {growth:.2f}; "
        f"1 TB takes {hours:.0f} core-hours, {hours * CORE_HOUR:.2f} dollars",
        flush=True,
    )


def cpu_seconds():
    """Returns the CPU time of this process and its descendants, which are the driver and executors of Spark."""
    spent, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        parents[int(folder.name)] = int(fields[1])
        spent[int(folder.name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def is_ours(process):
        while process and process != os.getpid():
            process = parents.get(process, 0)
        return bool(process)

    return sum(seconds for process, seconds in spent.items() if is_ours(process))


def options():
    Path("ssd.json").write_text(json.dumps(SSD))
    return {"curve": {"work": "size"}, "footprint": {"size": "size", "op": "op", "storage": "ssd.json"}}


def rows(sizes):
    import polars

    tables = {"Parquet": str, "Polars": lambda folder: polars.scan_parquet(f"{folder}/*.parquet")}
    for kind, chosen in options().items():
        for name, table in tables.items():
            measured = []
            for count in sizes:
                folder, size = files(count)
                before = cpu_seconds()
                found = streams(curves_by_workload(table(folder), **chosen))
                spent = cpu_seconds() - before
                assert sum(stream.count for stream in found.values()) == count
                measured.append((count, size, spent))
            report(f"{name}, {kind}", measured)
    state = [len(stream.to_bytes()) for stream in found.values()]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"a stream has {np.median(state):.0f} bytes (median) to {max(state)}; memory {memory:.1f} GB")


def spark(sizes):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    os.environ.setdefault("TAILWRIGHT_EXAMPLES", ".")
    import test_spark

    session = test_spark.spark()
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100000")
    session.sparkContext.setLogLevel("OFF")
    session.range(100).count()
    for kind, chosen in options().items():
        for shuffle in (False, True):
            measured = []
            for count in sizes:
                folder, size = files(count)
                table = session.read.parquet(os.path.abspath(folder))
                before = cpu_seconds()
                found = streams(curves_by_workload(table, **chosen, shuffle=shuffle))
                measured.append((count, size, cpu_seconds() - before))
            here = streams(curves_by_workload(str(folder), **chosen))
            equal = {k: v.to_bytes() for k, v in found.items()} == {k: v.to_bytes() for k, v in here.items()}
            assert equal, "the bits differ"
            report(f"Spark, {kind}{', shuffled' if shuffle else ''}", measured)
    session.stop()


def fleet(count):
    """Writes footprints of different workloads, and returns their entries and a server."""
    options()
    folder = Path("footprints")
    folder.mkdir(exist_ok=True)
    device = tw.Device.read("ssd.json")
    entries = []
    for number in range(count):
        draw = np.random.default_rng([2, number])
        name = f"w{number:06}"
        file = folder / f"{name}.footprint"
        if not file.exists():
            # One to a hundred requests per second in two minutes, in bursts.
            mean = 10 ** draw.uniform(0, 2)
            total = max(3, int(mean * SPAN_S / 20))
            starts = draw.uniform(0, SPAN_S, max(1, total // 10))
            at = np.sort(np.concatenate([starts, draw.choice(starts, total) + draw.exponential(0.05, total)]))
            size = draw.choice([4096, 16384, 65536], len(at), p=[0.7, 0.2, 0.1])
            # Twenty of them at a time.
            at, size = np.repeat(at, 20), np.repeat(size, 20)
            writes = draw.random(len(at)) < 0.3
            tw.Footprint.from_requests(at, size, writes, storage=device).write(file)
        number = int(np.random.default_rng([3, number]).integers(4))
        slo = ["30ms", "60ms", "120ms", "250ms"][number]
        kind = ["gold", "silver", "bronze", "bronze"][number]
        entries.append({"name": name, "trace": str(file), "slo": f"99.9% < {slo}", "class": kind})
    return entries, {"class": "ssd", "storage": "ssd.json", "network": "10Gbps"}


def planned(entries, server, cell, by=None, jobs=1):
    given = entries if by else [{k: v for k, v in entry.items() if k != "class"} for entry in entries]
    begin = time.process_time()
    answer = plan_in_cells(given, server, jobs=jobs, policies=f"policies-{len(entries)}-{cell}{by or ''}", cell=cell, by=by)
    # CPU time of all threads: what runs beside does not count.
    seconds = time.process_time() - begin
    print(
        f"{len(entries):,} workloads in {len(answer.cells)} cells of at most {cell:,}{' by class' if by else ''}: "
        f"{answer.servers_used:,} servers (at least {answer.servers_lower_bound:,} for these cells), "
        f"{len(answer.refused)} refused, {seconds:.1f} s of CPU time",
        flush=True,
    )
    return answer


def cells(counts):
    for count in counts:
        entries, server = fleet(count)
        for cell in (100, 250, 500, 1000, 2500):
            if cell < count:
                planned(entries, server, cell)
        planned(entries, server, 250, "class")
        planned(entries, server, count)


if __name__ == "__main__":
    what, *numbers = sys.argv[1:]
    numbers = [int(float(number)) for number in numbers]
    if what == "rows":
        rows(numbers)
    elif what == "spark":
        spark(numbers)
    elif what == "cells":
        cells(numbers)
    elif what == "one":
        for count in numbers:
            planned(*fleet(count), count)
    elif what == "fleet":
        entries, server = fleet(numbers[0])
        planned(entries, server, 100, jobs=2)
        planned(entries, server, 100, "class", jobs=2)
    else:
        sys.exit(__doc__)
