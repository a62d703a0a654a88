"""Burst curves against brute force over all intervals."""

import itertools
import pickle
import random
import tracemalloc
import unittest

import numpy as np
import tailwright as tw
from support import OnlyAStream, bursty, pandas, polars, pyarrow


def brute_force(time_ns, work, rate):
    """Returns b(rate) by its definition."""
    best = 0.0
    for i, j in itertools.combinations_with_replacement(range(len(work)), 2):
        best = max(best, sum(work[i : j + 1]) - rate * (time_ns[j] - time_ns[i]) / 1e9)
    return best


class BurstCurves(unittest.TestCase):
    def assert_close_above(self, value, exact, scale):
        self.assertGreaterEqual(value, exact - 1e-12 * scale)
        self.assertLessEqual(value, exact + 1e-11 * scale)

    def test_bursts_are_those_of_all_intervals(self):
        for seed in range(30):
            draw = random.Random(seed)
            count = draw.randrange(1, 40)
            time = np.cumsum([draw.choice([0, 1, 1000, 10**6, 10**9]) for _ in range(count)])
            work = np.array([draw.randrange(0, 10**6) for _ in range(count)])
            curve = tw.BurstCurve.from_requests(time, work)
            self.assertEqual((curve.count, curve.first_ns, curve.last_ns), (count, time[0], time[-1]))
            self.assertEqual(curve.total, work.sum())
            rates = [0.0, 0.5, 1e3, 1e5, 1e6, 1e9, 1e15]
            for rate, burst in zip(rates, curve.burst(rates)):
                self.assertEqual(curve.burst(rate), burst)
                exact = brute_force([int(t) for t in time], [int(w) for w in work], rate)
                scale = float(work.sum()) + rate * float(time[-1] - time[0]) / 1e9
                self.assert_close_above(burst, exact, scale)

    def test_parts_merge_to_the_whole_bit_for_bit(self):
        time, work, _ = bursty(1, 500)
        whole = tw.BurstCurve.from_requests(time, work)
        for cuts in ([250], [1, 2, 3], [100, 499], [64, 128, 320]):
            ends = zip([0, *cuts], [*cuts, len(time)])
            parts = [tw.BurstCurve.from_requests(time[a:b], work[a:b]) for a, b in ends]
            merged = tw.BurstCurve.merge_all(parts)
            self.assertEqual(merged, whole)
            self.assertEqual(merged.to_json(), whole.to_json())
        a, b, c = (tw.BurstCurve.from_requests(time[i : i + 100], work[i : i + 100]) for i in (0, 100, 200))
        self.assertEqual((a | b) | c, a | (b | c))
        later = whole.shifted("1h")
        self.assertEqual(later.first_ns, whole.first_ns + 3600 * 10**9)
        with self.assertRaisesRegex(tw.InputError, "segments overlap"):
            whole.merge(whole)
        with self.assertRaisesRegex(tw.InputError, "no curves"):
            tw.BurstCurve.merge_all([])

    def test_limits_are_the_curve_again(self):
        time, work, _ = bursty(2, 400)
        curve = tw.BurstCurve.from_requests(time, work)
        limits = curve.limits()
        durations, works = curve.vertices()
        self.assertEqual(limits.shape, (len(durations), 2))
        self.assertTrue((np.diff(limits[:, 0]) < 0).all())
        self.assertEqual(limits[-1, 0], 0)
        for rate, burst in limits:
            self.assert_close_above(burst, curve.burst(rate), curve.total)
        for duration, most in zip(durations, works):
            self.assert_close_above(np.min(limits[:, 1] + limits[:, 0] * duration), most, curve.total)
        self.assertEqual([curve.work_within(float(d)) for d in durations], works.tolist())
        few = curve.limits(3)
        self.assertLessEqual(len(few), 3)
        for rate, burst in few:
            self.assertGreaterEqual(burst, curve.burst(rate) * (1 - 1e-12))

    def test_whatever_numpy_takes_is_the_same_curve(self):
        time, work, _ = bursty(3, 300)
        curve = tw.BurstCurve.from_requests(time, work)
        wide = np.zeros((len(time), 3), dtype=np.int64)
        wide[:, 1] = time
        frozen = work.copy()
        frozen.flags.writeable = False
        alike = [
            (wide[:, 1], frozen),
            (time[::-1].copy()[::-1], work.astype(">i8")),
            (time.astype("datetime64[ns]"), work.astype(np.uint64)),
            (time.astype("timedelta64[ns]"), work.astype(np.float32)),
            (time.tolist(), work.tolist()),
            (time.astype(np.uint64), work.astype(np.int32)),
        ]
        if pandas is not None:
            table = pandas.DataFrame({"time": pandas.to_datetime(time), "work": work})
            alike.append((table["time"], table["work"]))
        if polars is not None:
            table = polars.DataFrame({"time": time.astype("datetime64[ns]"), "work": work})
            alike.append((table["time"], table["work"]))
        if pyarrow is not None:
            chunks = pyarrow.chunked_array([work[:100], work[100:]])
            alike.append((pyarrow.array(time), chunks))
            alike.append((OnlyAStream(pyarrow.chunked_array([time])), OnlyAStream(chunks)))
        for times, works in alike:
            self.assertEqual(tw.BurstCurve.from_requests(times, works), curve, (type(times), type(works)))
        micros = time // 1000
        of_micros = tw.BurstCurve.from_requests(micros, work, unit="us")
        self.assertEqual(of_micros, tw.BurstCurve.from_requests(micros * 1000, work))
        self.assertEqual(of_micros, tw.BurstCurve.from_requests(micros / 1e6, work))
        self.assertEqual(of_micros, tw.BurstCurve.from_requests(micros / 1e3, work, unit="ms"))

    def test_columns_are_read_in_place(self):
        rows = 1 << 20
        time = np.arange(rows * 2, dtype=np.int64).reshape(rows, 2)[:, 0]
        work = np.ones(rows)
        for times in (time, time.view("datetime64[ns]"), time[::-1].copy()[::-1]):
            tracemalloc.start()
            tw.BurstCurve.from_requests(times, work)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            # A copy of either column takes 8 MiB; the search for NaT makes a mask of 1 MiB.
            self.assertLess(peak, 2 << 20)

    def test_curves_survive_pickles_and_files(self):
        curve = tw.BurstCurve.from_requests([0.0, 0.5], [1.5, 2.5])
        self.assertEqual(pickle.loads(pickle.dumps(curve)), curve)
        self.assertEqual(hash(tw.BurstCurve.from_json(curve.to_json())), hash(curve))
        self.assertNotEqual(curve, tw.BurstCurve.from_requests([0.0, 0.5], [1.5, 2.4]))
        for text in ("", "{}", curve.to_json().replace("500000000", "5", 1)):
            with self.assertRaisesRegex(tw.InputError, "burst curve"):
                tw.BurstCurve.from_json(text)

    def test_what_cannot_be_a_stream_is_refused(self):
        nan, inf = float("nan"), float("inf")
        for time, work, said in [
            ([], [], "no arrivals"),
            ([1.0, 0.5], [1, 1], r"arrival 1 \(counted from 0\) is earlier"),
            ([0.0, nan], [1, 1], r"time\[1\] is NaN: expected seconds from 0"),
            ([0.0, inf], [1, 1], r"time\[1\] is inf"),
            ([-1e-9], [1], r"time\[0\] is -1e-9"),
            ([-1], [1], r"time\[0\] is -1: expected nanoseconds"),
            ([1e11], [1], r"time\[0\] is 100000000000"),
            ([0.0, 1.0], [1, nan], r"work\[1\] is NaN"),
            ([0.0, 1.0], [1, -1], r"work\[1\] is -1: expected a number from 0"),
            ([0.0], [1e17], r"work\[0\] is 1e17"),
            ([0.0] * 3, [9e15] * 3, "total work exceeds"),
            ([0.0, 1.0], [1], "work has 1 rows, and the times have 2"),
            ([[0.0, 1.0]], [[1, 1]], r"time has the shape \(1, 2\)"),
            (0.0, 1.0, r"time has the shape \(\)"),
            (["a"], [1], "time has the type <U1"),
            ([True], [1], "time has the type bool"),
            ([1j], [1], "time has the type complex128"),
            ([0.0, None], [1, 1], "time has the type object.*missing values"),
            ([0.0], ["1"], "work has the type <U1"),
            (np.array([2**63], dtype=np.uint64), [1], r"time has a number beyond 2\^63"),
            (np.array(["NaT"], dtype="datetime64[ns]"), [1], r"time\[0\] is missing"),
            (np.array(["1969-01-01"], dtype="datetime64[ns]"), [1], r"time\[0\] is -\d+: expected nanoseconds"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                tw.BurstCurve.from_requests(time, work)
        curve = tw.BurstCurve.from_requests([0.0], [1])
        for ask, said in [
            (lambda: curve.burst(-1), "a rate is -1"),
            (lambda: curve.burst([1, nan]), "a rate is NaN"),
            (lambda: curve.limits(0), "count is 0"),
            (lambda: curve.work_within("1 parsec"), "1 parsec"),
            (lambda: curve.shifted(-1), "by is -1"),
            (lambda: tw.BurstCurve.from_requests([0], [1], unit="h"), "unit is 'h'"),
            (lambda: tw.BurstCurve.from_requests([2**62], [1], unit="s"), "beyond 292 years"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                ask()


if __name__ == "__main__":
    unittest.main()
