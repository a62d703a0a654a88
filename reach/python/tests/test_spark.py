"""Streams by workload on real Spark, with executors in processes of their own, against one machine: the same bits.

Skipped unless PySpark and Java are installed.
"""

import json
import os
import random
import shutil
import sys
import unittest
from pathlib import Path

import numpy as np
import tailwright as tw
from support import bursty, pyarrow, skipped

try:
    import pyspark
    from pyspark.sql import SparkSession
except ImportError:
    pyspark = None

#: Two executors of one core and 1 GiB each.
MASTER = os.environ.get("TAILWRIGHT_SPARK_MASTER", "local-cluster[2,1,1024]")


def spark():
    # Executors are Python processes with this package, and all traffic is on this machine.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"
    os.environ["SPARK_WORKER_DIR"] = os.path.abspath("executors")
    builder = SparkSession.builder.master(MASTER).appName("tailwright")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.local.dir": os.path.abspath("spark"),
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.session.timeZone": "UTC",
        # Small batches, so that partitions have several.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "300",
    }.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Spark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.spark = spark()
        cls.spark.sparkContext.setLogLevel("OFF")

    @classmethod
    def tearDownClass(cls):
        cls.spark.stop()

    def test_the_bits_of_one_machine(self):
        from tailwright.fleet import curves_by_workload, streams

        Path("ssd.json").write_text(json.dumps({"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 4e8, "writeBandwidth": 2e8}]}))
        draw = random.Random(1)
        rows = []
        for number in range(30):
            # One workload has most of the rows.
            time, size, is_write = bursty(number, 20_000 if number == 0 else draw.randrange(1, 300))
            # Microseconds, as Spark's timestamps have, and ties.
            time = time // 1_000_000 * 1000
            rows += [(int(t), f"w{number}", int(s), "write" if w else "read") for t, s, w in zip(time, size, is_write)]
        rows.sort(key=lambda row: row[0])
        time, workload, size, op = map(list, zip(*rows))
        stamps = pyarrow.array(np.array(time).astype("datetime64[ns]")).cast(pyarrow.timestamp("us"))
        table = pyarrow.table({"time": stamps, "workload": workload, "size": size, "op": op})
        footprint = {"size": "size", "op": "op", "storage": "ssd.json"}
        here = {kind: streams(curves_by_workload(table, **options)) for kind, options in [("curve", {"work": "size"}), ("footprint", footprint)]}
        mixed = table.take(draw.sample(range(table.num_rows), table.num_rows))
        # Files that follow each other in time, with their rows in any order; and files that do not.
        for folder, source in [("in-order", table), ("mixed", mixed)]:
            Path(folder).mkdir()
            for number, begin in enumerate(range(0, table.num_rows, 4000)):
                part = source.slice(begin, 4000)
                part = part.take(draw.sample(range(part.num_rows), part.num_rows))
                pyarrow.parquet.write_table(part, f"{folder}/{number:02}.parquet")
            pyarrow.parquet.write_table(table.slice(0, 0), f"{folder}/empty.parquet")
        # Spark packs small files into partitions, by size and not by time.
        in_order = self.spark.read.parquet(os.path.abspath("in-order"))
        mixed = self.spark.read.parquet(os.path.abspath("mixed"))
        self.assertLess(in_order.rdd.getNumPartitions(), 5)
        computed = {
            "in order": streams(curves_by_workload(in_order, work="size")),
            "shuffled": streams(curves_by_workload(mixed, work="size", shuffle=True)),
        }
        for name, found in computed.items():
            self.assertEqual({k: v.to_bytes() for k, v in found.items()}, {k: v.to_bytes() for k, v in here["curve"].items()}, name)
        found = streams(curves_by_workload(mixed, **footprint, shuffle=True))
        self.assertEqual({k: v.to_bytes() for k, v in found.items()}, {k: v.to_bytes() for k, v in here["footprint"].items()})
        with self.assertRaisesRegex(tw.InputError, "workload 'w.*': chunks overlap in time.*shuffle=True"):
            streams(curves_by_workload(mixed, work="size"))
        with self.assertRaisesRegex(tw.InputError, "no column 'weight'"):
            curves_by_workload(mixed, work="weight")
        # A table that is no file.
        joined = in_order.join(self.spark.createDataFrame([("w7",)], "workload string"), "workload").repartition(1)
        found = streams(curves_by_workload(joined, work="size"))
        self.assertEqual([(k, v.to_bytes()) for k, v in found.items()], [("w7", here["curve"]["w7"].to_bytes())])
        holes = self.spark.createDataFrame([("a", 1, None), ("a", 2, 5)], "workload string, time long, work long")
        with self.assertRaisesRegex(tw.InputError, "column 'work' has 1 missing"):
            streams(curves_by_workload(holes, work="work"))
        nothing = self.spark.createDataFrame([], "workload string, time long, work long")
        for shuffle in (False, True):
            self.assertEqual(streams(curves_by_workload(nothing, work="work", shuffle=shuffle)), {})
        print(f"Spark {pyspark.__version__} as {MASTER}: {len(here['curve'])} workloads, {table.num_rows} rows, equal bits")


if __name__ == "__main__":
    if pyspark is None or pyarrow is None or shutil.which("java") is None:
        skipped("fleets on Spark are not tested: pyspark, pyarrow and Java are not all installed (docs/guides/fleets.md)")
    else:
        unittest.main()
