"""Streams by workload from tables, against one pass over each workload; and plans in cells."""

import fractions
import json
import pickle
import random
import unittest
from pathlib import Path

import numpy as np
import tailwright as tw
from support import bursty, pandas, polars, pyarrow, skipped

if pyarrow is None:
    skipped("fleets are not tested: pyarrow is not installed")
else:
    from tailwright import _streams, fleet
    from tailwright.fleet import Stream, curves_by_workload, plan_in_cells, streams

SSD = {"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 4e8, "writeBandwidth": 2e8}]}


def requests(seed, workloads=5, rows=400):
    """Returns columns of several workloads in order of time, one of which has most of the rows."""
    draw = random.Random(seed)
    named = []
    for number in range(workloads):
        count = rows * 10 if number == 0 else draw.randrange(1, rows)
        time, size, is_write = bursty(seed * 100 + number, count)
        named += [(int(t), f"w{number}", int(s), bool(w)) for t, s, w in zip(time, size, is_write)]
    named.sort(key=lambda row: row[0])
    return {
        "time": np.array([row[0] for row in named]),
        "workload": [row[1] for row in named],
        "size": np.array([row[2] for row in named]),
        "op": ["write" if row[3] else "read" for row in named],
    }


def expected(columns, storage=None):
    """Returns the stream of each workload by one pass over its requests."""
    names = np.array(columns["workload"])
    found = {}
    for name in sorted(set(columns["workload"])):
        mine = names == name
        time, size = columns["time"][mine], columns["size"][mine]
        if storage is None:
            demand = tw.BurstCurve.from_requests(time, size)
        else:
            demand = tw.Footprint.from_requests(time, size, np.array(columns["op"])[mine], storage=storage)
        gaps = [int(b) - int(a) for a, b in zip(time, time[1:])]
        found[name] = Stream(demand, sum(gap * gap for gap in gaps))
    return found


def bits(found):
    return {name: stream.to_bytes() for name, stream in found.items()}


def device():
    Path("ssd.json").write_text(json.dumps(SSD))
    return tw.Device.read("ssd.json")


class Bytes(unittest.TestCase):
    def test_curves_and_footprints_survive_bytes_and_pickles(self):
        time, size, is_write = bursty(1, 300)
        ssd = device()
        curve = tw.BurstCurve.from_requests(time, size)
        footprint = tw.Footprint.from_requests(time, size, is_write, storage=ssd)
        self.assertEqual(footprint, tw.Footprint.from_requests(time / 1e9, size, is_write, storage="ssd.json"))
        self.assertEqual(footprint.network_in.count, 300)
        self.assertEqual(tw.Footprint.from_requests([0], [100], storage=ssd).network_out.total, 310)
        for part in (curve, footprint):
            self.assertEqual(type(part).from_bytes(part.to_bytes()), part)
            self.assertEqual(pickle.loads(pickle.dumps(part)), part)
            self.assertEqual(hash(type(part).from_bytes(part.to_bytes())), hash(part))
        parts = [
            tw.Footprint.from_requests(time[a:b], size[a:b], is_write[a:b], storage=pickle.loads(pickle.dumps(ssd)))
            for a, b in ((0, 100), (100, 101), (101, 300))
        ]
        self.assertEqual((parts[0] | parts[1] | parts[2]).to_bytes(), footprint.to_bytes())
        self.assertEqual((parts[0] | (parts[1] | parts[2])).to_bytes(), footprint.to_bytes())

    def test_hostile_bytes_are_refused_in_words(self):
        time, size, is_write = bursty(2, 50)
        curve = tw.BurstCurve.from_requests(time, size)
        footprint = tw.Footprint.from_requests(time, size, is_write, storage=device())
        good = [curve, footprint]
        if pyarrow is not None:
            good.append(Stream(curve, curve.last_ns**2))
        draw = random.Random(7)
        for value in good:
            whole = value.to_bytes()
            read = type(value).from_bytes
            wrong = [b"", b"tbc1", whole[:-1], whole + b"\0", whole[: len(whole) // 2], b"\xff" * 40]
            for _ in range(200):
                flipped = bytearray(whole)
                flipped[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
                wrong.append(bytes(flipped))
            for data in wrong:
                with self.assertRaises(tw.InputError) as raised:
                    read(data)
                self.assertRegex(raised.exception.message, "no |checksum|truncated|version|corner")
        with self.assertRaisesRegex(tw.InputError, "burst curve of version 9: expected version 1"):
            tw.BurstCurve.from_bytes(b"tbc9" + curve.to_bytes()[4:])
        with self.assertRaisesRegex(tw.InputError, "another device"):
            Path("other.json").write_text(json.dumps({"bandwidthTable": [{**SSD["bandwidthTable"][0], "readBandwidth": 1e8}]}))
            footprint | tw.Footprint.from_requests(time + 10**12, size, storage="other.json")
        with self.assertRaisesRegex(tw.InputError, "segments overlap"):
            footprint | footprint
        with self.assertRaisesRegex(tw.InputError, "no-such.json"):
            tw.Device.read("no-such.json")

    def test_a_plan_from_footprints_is_that_from_traces(self):
        device()
        workloads = []
        for number in range(4):
            time, size, is_write = bursty(number, 4000)
            time = time - time[0]
            tw.write_trace(f"w{number}.parquet", time, size, np.where(is_write, "write", "read"))
            halves = [
                tw.Footprint.from_requests(time[part], size[part], is_write[part], storage="ssd.json")
                for part in (slice(1000), slice(1000, None))
            ]
            (halves[0] | halves[1]).write(f"w{number}.footprint")
            workloads.append({"name": f"w{number}", "slo": f"99.9% < {50 + 100 * number}ms"})
        server = {"class": "ssd", "count": 4, "storage": "ssd.json", "network": "1Gbps"}
        plans = []
        for ending in ("parquet", "footprint"):
            members = [{**row, "trace": f"{row['name']}.{ending}"} for row in workloads]
            answer = tw.plan({"server": [server], "workload": members}).to_dict()
            plans.append(json.dumps([answer["workloads"], answer["servers"]]).replace(f".{ending}", ""))
        self.assertEqual(plans[0], plans[1])
        other = {**server, "storage": "other.json"}
        Path("other.json").write_text(json.dumps({"bandwidthTable": [{**SSD["bandwidthTable"][0], "readBandwidth": 1e8}]}))
        row = {**workloads[0], "trace": "w0.footprint"}
        with self.assertRaisesRegex(tw.InputError, "workload 'w0'.*another device"):
            tw.plan({"server": [other], "workload": [row]})
        data = Path("w0.footprint").read_bytes()
        Path("w0.footprint").write_bytes(data[:-3])
        with self.assertRaisesRegex(tw.InputError, "w0.footprint: footprint: damaged or truncated"):
            tw.plan({"server": [server], "workload": [row]})


@unittest.skipIf(pyarrow is None, "pyarrow is not installed")
class Tables(unittest.TestCase):
    def test_every_kind_of_table_has_the_same_bits(self):
        columns = requests(1)
        ssd = device()
        table = pyarrow.table(columns)
        pyarrow.parquet.write_table(table, "one.parquet", row_group_size=500)
        Path("parts").mkdir()
        for number, begin in enumerate(range(0, table.num_rows, 700)):
            pyarrow.parquet.write_table(table.slice(begin, 700), f"parts/{number:03}.parquet")
        stamps = table.set_column(0, "time", pyarrow.array(columns["time"].astype("datetime64[ns]")))
        alike = [table, "one.parquet", "parts", pyarrow.dataset.dataset("parts"), stamps, table.to_reader(max_chunksize=99)]
        alike.append(table.set_column(1, "workload", table["workload"].dictionary_encode()))
        alike.append(table.set_column(1, "workload", table["workload"].cast(pyarrow.large_string())))
        if pandas is not None:
            alike.append(table.to_pandas())
        if polars is not None:
            alike += [polars.DataFrame(columns), polars.DataFrame(columns).lazy(), polars.scan_parquet("parts/*.parquet")]
            named = polars.col("workload").cast(polars.Categorical)
            alike.append(polars.DataFrame(columns).with_columns(named))
        for options in ({"work": "size"}, {"size": "size", "op": "op", "storage": ssd}):
            whole = bits(expected(columns, options.get("storage")))
            for kind in alike:
                if isinstance(kind, pyarrow.RecordBatchReader):
                    kind = table.to_reader(max_chunksize=99)
                self.assertEqual(bits(streams(curves_by_workload(kind, **options))), whole, type(kind))

    def test_partitions_in_any_order_and_of_any_size(self):
        for seed in range(12):
            draw = random.Random(seed)
            columns = requests(seed, rows=60)
            # Ties across the seams.
            columns["time"] = columns["time"] // (10 ** draw.randrange(8, 10)) * 10**8
            whole = bits(expected(columns))
            table = pyarrow.table(columns)
            cuts = sorted(draw.randrange(table.num_rows + 1) for _ in range(6))
            parts = [table.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, table.num_rows])]
            folder = Path(f"parts-{seed}")
            folder.mkdir()
            draw.shuffle(parts)
            for number, part in enumerate(parts):
                rows = list(range(part.num_rows))
                draw.shuffle(rows)
                pyarrow.parquet.write_table(part.take(pyarrow.array(rows, pyarrow.int64())), folder / f"{number}.parquet")
            self.assertEqual(bits(streams(curves_by_workload(folder, work="size"))), whole, seed)
            # Rows anywhere.
            shuffled = table.take(draw.sample(range(table.num_rows), table.num_rows))
            halves = pyarrow.Table.from_batches(shuffled.to_batches(max_chunksize=50))
            for table_, options in [(halves, {}), (halves, {"shuffle": True})]:
                self.assertEqual(bits(streams(curves_by_workload(table_, work="size", **options))), whole, seed)

    def test_small_buffers_merge_or_refuse(self):
        columns = requests(3)
        table = pyarrow.table(columns)
        whole = bits(expected(columns))
        before = _streams.ROWS_MAX
        try:
            for rows in (1, 7, 100):
                _streams.ROWS_MAX = rows
                self.assertEqual(bits(streams(curves_by_workload(table, work="size"))), whole)
                mixed = table.take(list(range(1, table.num_rows, 2)) + list(range(0, table.num_rows, 2)))
                with self.assertRaisesRegex(tw.InputError, "workload 'w.': chunks overlap in time.*shuffle=True"):
                    curves_by_workload(mixed, work="size")
                self.assertEqual(bits(streams(curves_by_workload(mixed, work="size", shuffle=True))), whole)
        finally:
            _streams.ROWS_MAX = before

    def test_statistics_are_those_of_the_gaps(self):
        columns = requests(4)
        found = streams(curves_by_workload(pyarrow.table(columns), work="size"))
        names = np.array(columns["workload"])
        for name, stream in found.items():
            time = [int(t) for t in columns["time"][names == name]]
            gaps = [fractions.Fraction(b - a) for a, b in zip(time, time[1:])]
            if not sum(gaps):
                self.assertIsNone(stream.rate)
                continue
            mean = sum(gaps) / len(gaps)
            c2 = sum(gap * gap for gap in gaps) / len(gaps) / mean**2 - 1
            self.assertEqual(stream.gap_c2, float(c2))
            self.assertEqual(stream.rate, float(10**9 / mean))
            self.assertEqual(stream.count, len(time))
        alone = Stream(tw.BurstCurve.from_requests([5], [1]), 0)
        self.assertEqual((alone.rate, alone.gap_c2, alone.count), (None, None, 1))

    def test_extreme_gaps_do_not_overflow(self):
        top = 2**63 - 1
        time = [0, top // 2, top]
        table = pyarrow.table({"workload": ["a"] * 3, "time": time, "work": [1, 2, 3]})
        stream = streams(curves_by_workload(table, work="work"))["a"]
        self.assertEqual(stream.gaps_squared, (top // 2) ** 2 + (top - top // 2) ** 2)
        self.assertEqual(Stream.from_bytes(stream.to_bytes()), stream)

    def test_empty_tables_have_no_workloads(self):
        table = pyarrow.table({"workload": pyarrow.array([], pyarrow.string()), "time": pyarrow.array([], pyarrow.int64()), "work": pyarrow.array([], pyarrow.float64())})
        self.assertEqual(streams(curves_by_workload(table, work="work")), {})
        self.assertEqual(streams(curves_by_workload(table, work="work", shuffle=True)), {})

    def test_what_is_no_table_of_requests_is_refused(self):
        good = {"workload": ["a", "b"], "time": [1, 2], "size": [1, 2], "op": ["read", "write"]}
        ssd = device()
        for change, options, said in [
            ({"workload": ["a", None]}, {}, "column 'workload' has 1 missing"),
            ({"time": [None, 2]}, {}, "column 'time' has 1 missing"),
            ({"size": [1, None]}, {}, "column 'size' has 1 missing"),
            ({"workload": [1.5, 2.5]}, {}, "column 'workload' has the type double: expected names"),
            ({"time": ["a", "b"]}, {}, "column 'time' has the type string: expected a timestamp"),
            ({"time": [1, -2]}, {}, r"is -2: expected nanoseconds of at least 0"),
            ({"time": [1.0, float("nan")]}, {}, "is NaN: expected seconds"),
            ({"size": [1, -2]}, {}, "is -2: expected"),
            ({"size": ["1", "2"]}, {}, "size has the type"),
            ({}, {"work": "weight"}, "no column 'weight': expected one of workload"),
            ({}, {"work": None}, "either work, or size and storage"),
            ({}, {"storage": ssd}, "go together"),
            ({}, {"op": "op"}, "op goes with size"),
            ({"op": ["read", "erase"]}, {"work": None, "size": "size", "op": "op", "storage": ssd}, "has 'erase'"),
            ({}, {"unit": "h"}, "unit is 'h'"),
        ]:
            table = pyarrow.table({**good, **change})
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                curves_by_workload(table, **{"work": "size", **options})
        with self.assertRaisesRegex(tw.InputError, "a table is a int"):
            curves_by_workload(5, work="size")
        with self.assertRaisesRegex(tw.InputError, "no-such"):
            curves_by_workload("no-such", work="size")
        curve, footprint = expected(requests(1))["w1"], expected(requests(1), ssd)["w1"]
        with self.assertRaisesRegex(tw.InputError, "does not merge with one of a burst curve"):
            curve | footprint

    def test_whole_numbers_name_workloads(self):
        table = pyarrow.table({"workload": [10, 9, 10], "time": [1, 2, 3], "work": [1, 1, 1]})
        self.assertEqual(list(streams(curves_by_workload(table, work="work"))), ["10", "9"])


@unittest.skipIf(pyarrow is None, "pyarrow is not installed")
class Cells(unittest.TestCase):
    def workloads(self, count):
        device()
        rows = []
        for number in range(count):
            time, size, is_write = bursty(number, 300)
            tw.Footprint.from_requests(time, size, is_write, storage="ssd.json").write(f"{number}.footprint")
            kind = "gold" if number % 3 == 0 else "bronze"
            rows.append({"name": f"w{number}", "trace": f"{number}.footprint", "slo": f"99.9% < {80 + number}ms", "class": kind})
        return rows

    def test_every_workload_is_in_one_cell_and_each_cell_is_its_plan(self):
        rows = self.workloads(23)
        server = {"class": "ssd", "storage": "ssd.json", "network": "1Gbps"}
        planned = plan_in_cells(rows, server, policies="plans", cell=6, by="class")
        self.assertEqual([cell.name for cell in planned.cells], ["bronze-0001", "bronze-0002", "bronze-0003", "gold-0001", "gold-0002"])
        self.assertEqual(planned.workloads, 23)
        sizes = [cell.workloads for cell in planned.cells]
        self.assertEqual((sizes[:3], sizes[3:]), ([5, 5, 5], [4, 4]))
        seen = []
        for cell in planned.cells:
            policy = tw.Policy.read(cell.policy)
            names = [row["name"] for row in policy.workloads]
            seen += names
            self.assertEqual(len(policy.servers), cell.servers_used)
            members = [{k: v for k, v in row.items() if k != "class"} for row in rows if row["name"] in names]
            again = tw.plan({"server": [{**server, "count": len(members)}], "workload": members})
            self.assertEqual(again["servers"], policy["servers"])
            self.assertLessEqual(cell.servers_lower_bound, cell.servers_used)
        self.assertEqual(sorted(seen), sorted(row["name"] for row in rows))
        self.assertEqual(planned.servers_used, sum(cell.servers_used for cell in planned.cells))
        self.assertIn("23 of 23", repr(planned))
        together = plan_in_cells(rows[::-1], server, policies="plans-3", cell=6, by="class", jobs=3)
        for ours, theirs in zip(planned.cells, together.cells):
            self.assertEqual((ours.name, ours.servers_used), (theirs.name, theirs.servers_used))
            names = [{row["name"] for row in tw.Policy.read(cell.policy).workloads} for cell in (ours, theirs)]
            self.assertEqual(names[0], names[1])

    def test_refusals_are_reported(self):
        rows = [{k: v for k, v in row.items() if k != "class"} for row in self.workloads(4)]
        rows[2]["slo"] = "99.9% < 1us"
        server = {"class": "ssd", "storage": "ssd.json", "network": "1Gbps"}
        planned = plan_in_cells(rows, server, policies="plans", cell=2)
        self.assertEqual(planned.refused, ("w2",))
        for workloads, servers, options, said in [
            (rows + rows[:1], server, {}, "two workloads have the name 'w0'"),
            (rows, {**server, "count": 3}, {}, "has a count"),
            (rows, server, {"cell": 0}, "cell is 0"),
            (rows, server, {"jobs": 0}, "jobs is 0"),
            (rows, server, {"by": "class"}, "has no field 'class'"),
            ([{**rows[0], "class": "../x"}], server, {"by": "class"}, "letters, digits"),
            ([{"trace": "x"}], server, {}, "has no name"),
            ([], server, {}, "no workloads"),
            (rows, server, {"policies": "ssd.json"}, "ssd.json"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                plan_in_cells(workloads, servers, **{"policies": "plans", **options})


if __name__ == "__main__":
    unittest.main()
