"""Answers are those of the program, character for character, and what a closed form or a count gives."""

import doctest
import heapq
import json
import pickle
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
from pathlib import Path

import numpy as np
import tailwright as tw
from support import EXAMPLES, bursty, run, untimed

PROFILE = '{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 100e6, "writeBandwidth": 100e6}]}'


def kiefer_wolfowitz(arrivals, services, workers):
    """Returns the latencies of FIFO with several workers, ns."""
    free = [0] * workers
    latencies = []
    for arrival, service in zip(arrivals, services):
        start = max(int(arrival), heapq.heappop(free))
        heapq.heappush(free, start + int(service))
        latencies.append(start + int(service) - int(arrival))
    return latencies


class Ideals(unittest.TestCase):
    def test_fifo_is_the_recursion(self):
        draw = np.random.default_rng(1)
        arrivals = np.cumsum(draw.exponential(1e6, 3000)).astype(np.int64)
        services = draw.exponential(1.7e6, 3000).astype(np.int64)
        for workers in (1, 2, 5):
            latencies = tw.ideal_latencies(arrivals, services, workers)
            expected = kiefer_wolfowitz(arrivals, services, workers)
            self.assertEqual(np.rint(latencies * 1e9).astype(int).tolist(), expected)
        same = tw.ideal_latencies(arrivals, "1ms", 2)
        self.assertEqual(np.rint(same * 1e9).tolist(), kiefer_wolfowitz(arrivals, [10**6] * 3000, 2))
        self.assertTrue((tw.ideal_latencies(arrivals, 1e-3, 2) == same).all())
        # No order of service without preemption changes the work that is done.
        lifo = tw.ideal_latencies(arrivals, services, discipline="lifo")
        fifo = tw.ideal_latencies(arrivals, services)
        self.assertEqual(np.max(arrivals / 1e9 + lifo), np.max(arrivals / 1e9 + fifo))
        self.assertGreater(lifo.max(), fifo.max())

    def test_md1_is_the_formula_of_pollaczek_and_khinchine(self):
        answer = tw.ideal("poisson(800/s)", "1ms", requests=400_000)
        mean = 1e-3 + 0.8 * 1e-3 / (2 * (1 - 0.8))
        low, high = answer["ci"]["mean_s"]
        self.assertTrue(low <= mean * 1.01 and mean * 0.99 <= high, (low, mean, high))
        self.assertAlmostEqual(answer.utilisation, 0.8)

    def test_answers_are_those_of_the_program(self):
        at, size, is_write = bursty(7, 800)
        self.assertEqual(tw.write_trace("ideal.csv", at, size, is_write), 800)
        options = ["--service", "exp(5ms)", "--workers", 2, "--discipline", "fifo,lifo", "--seed", 9, "--json"]
        arguments = {"service": "exp(5ms)", "workers": 2, "discipline": ["fifo", "lifo"], "seed": 9}
        for load in (None, 0.7):
            of_load = [] if load is None else ["--load", load]
            printed = run("ideal", "--trace", "ideal.csv", *options, *of_load)
            self.assertEqual(printed.returncode, 0, printed.stderr)
            answer = tw.ideal(Path("ideal.csv"), **arguments, load=load)
            self.assertEqual(untimed(answer.json), untimed(printed.stdout))
            in_memory = tw.ideal(at, **arguments, load=load)
            renamed = untimed(in_memory.json).replace('"arrivals"', '"ideal.csv"')
            self.assertEqual(renamed, untimed(printed.stdout))
        printed = run("ideal", "--arrivals", "poisson(100/s)", "--requests", 20000, *options)
        answer = tw.ideal("poisson(100/s)", **arguments, requests=20000)
        self.assertEqual(untimed(answer.json), untimed(printed.stdout))
        self.assertEqual(answer.to_dict(), json.loads(answer.json))
        self.assertEqual([row["discipline"] for row in answer.disciplines], ["fifo", "lifo"])

    def test_wrong_questions_are_refused(self):
        for ask, said in [
            (lambda: tw.ideal("poisson(2000/s)", "1ms"), "unstable"),
            (lambda: tw.ideal("poison(2000/s)", "1ms"), "poison"),
            (lambda: tw.ideal([0.0, 1.0], "1 parsec"), "parsec"),
            (lambda: tw.ideal([1.0, 0.0], 0.1), "arriv"),
            (lambda: tw.ideal([], 0.1), "there are no requests|arrivals"),
            (lambda: tw.ideal([0.0, 1.0], 0.1, 0), "workers is 0"),
            (lambda: tw.ideal([0.0, 1.0], 0.1, load=1.0), "load is 1.0"),
            (lambda: tw.ideal([0.0, 1.0], -0.1), "service is -0.1"),
            (lambda: tw.ideal([0.0, 1.0], 0.1, discipline="filo"), "filo"),
            (lambda: tw.ideal_latencies([0.0], [0.1, 0.1]), "service has 2 rows"),
            (lambda: tw.ideal_latencies([1.0, 0.0], [0.1, 0.1]), "arriv"),
            (lambda: tw.ideal_latencies([0.0] * 9, [1.7e10] * 9), "292 years"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                ask()


class Clusters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Path("ssd.json").write_text(PROFILE)
        workloads = []
        text = '[[server]]\nclass = "ssd"\ncount = 3\nstorage = "ssd.json"\nnetwork = "125MB/s"\n'
        for number in range(5):
            at, size, is_write = bursty(number, 300)
            tw.write_trace(f"w{number}.parquet", at, size, np.where(is_write, "write", "read"))
            # No server can promise the last one its latency.
            slo = "99.9% < 1ms" if number == 4 else f"99.9% < {100 << number % 3}ms"
            row = {"name": f"w{number}", "trace": f"w{number}.parquet", "slo": slo}
            workloads.append(row)
            text += "[[workload]]\n" + "".join(f'{key} = "{value}"\n' for key, value in row.items())
        Path("cluster.toml").write_text(text)
        server = {"class": "ssd", "count": 3, "storage": Path("ssd.json"), "network": "125MB/s"}
        cls.description = {"server": [server], "workload": workloads}
        cls.cluster = tw.Cluster.read("cluster.toml")
        cls.plan = tw.plan(cls.cluster)
        cls.plan.write("plan.json")

    def assert_printed(self, answer, *args, code=0):
        printed = run(*args, "--json")
        self.assertEqual(printed.returncode, code, printed.stderr)
        self.assertEqual(untimed(answer.json), untimed(printed.stdout))

    def test_plan(self):
        plan = self.plan
        self.assert_printed(plan, "plan", "cluster.toml", code=1)
        self.assertEqual(untimed(tw.plan(self.description).json), untimed(plan.json))
        self.assertEqual(untimed(tw.plan("cluster.toml").json), untimed(plan.json))
        self.assertEqual(plan.admitted, ["w0", "w1", "w2", "w3"])
        self.assertEqual(list(plan.refused), ["w4"])
        self.assertTrue(all(plan.bound(name) <= 0.4 for name in plan.admitted))
        self.assertIsNone(plan.bound("w4"))
        self.assertEqual(len(plan.servers), plan.servers_used)
        self.assertLessEqual(plan.servers_lower_bound, plan.servers_used)
        self.assertEqual({limit["workload"] for limit in plan.limits}, set(plan.admitted))
        arguments = ("plan", "cluster.toml", "--method", "knee", "--order", "given", "--safety-margin", 1.2)
        margin = tw.Cluster.read("cluster.toml", safety_margin=1.2)
        self.assert_printed(tw.plan(margin, method="knee", order="given"), *arguments, code=1)
        kept = tw.plan(self.cluster, keep=plan, compare=True)
        self.assert_printed(kept, "plan", "cluster.toml", "--keep", "plan.json", "--compare", code=1)
        self.assertEqual(tw.Policy.read("plan.json"), plan)
        by_model = tw.plan(self.cluster, model="replayed")
        self.assert_printed(by_model, "plan", "cluster.toml", "--model", "replayed", code=1)

    def test_bound(self):
        bounds = tw.bound(self.cluster)
        self.assert_printed(bounds, "bound", "cluster.toml")
        self.assertEqual(len(bounds.workloads), 15)
        one = tw.bound(self.cluster, models="worst-case", percentile=99)
        self.assert_printed(one, "bound", "cluster.toml", "--model", "worst-case", "--percentile", 99)
        goal = {"coverage": 0.6, "horizon": "1s", "coverage_of": "server"}
        calibrated = tw.bound(self.cluster, models="calibrated", **goal)
        options = ["--coverage", "60%", "--horizon", "1s", "--coverage-of", "server"]
        self.assert_printed(calibrated, "bound", "cluster.toml", "--model", "calibrated", *options)

    def test_admit(self):
        events = ["arrive w0 w1", "arrive w4", "depart w0", "depart w4", "arrive w2"]
        Path("events").write_text("\n".join(events))
        admission = tw.admit(self.cluster, events=events)
        self.assert_printed(admission, "admit", "cluster.toml", "--events", "events", code=1)
        self.assertEqual((admission.admitted, list(admission.refused)), (["w1", "w2"], ["w4"]))
        self.assertEqual([row["accepted"] for row in admission.decisions], [True, False, True, False, True])
        run("admit", "cluster.toml", "--events", "events", "-o", "admitted.json")
        self.assertEqual(admission.policy, tw.Policy.read("admitted.json"))
        all_of_them = tw.admit(self.cluster, model="probabilistic")
        self.assert_printed(all_of_them, "admit", "cluster.toml", "--model", "probabilistic", code=1)

    def test_explain(self):
        explanation = tw.explain("w1", self.cluster, plan=self.plan)
        self.assert_printed(explanation, "explain", "w1", "cluster.toml", "--plan", "plan.json")
        self.assertTrue(explanation.is_admitted)
        self.assertAlmostEqual(explanation.bound, self.plan.bound("w1"), places=12)
        refusal = tw.explain("w4", self.cluster)
        self.assert_printed(refusal, "explain", "w4", "cluster.toml", code=1)
        self.assertEqual((refusal.is_admitted, refusal.reason), (False, self.plan.refused["w4"]))
        predicted = tw.explain("w1", self.cluster, model="worst-case")
        self.assert_printed(predicted, "explain", "w1", "cluster.toml", "--model", "worst-case")
        for answer, name in [(explanation, "w1"), (refusal, "w4"), (predicted, "w1")]:
            self.assertIn(f"Explanation of {name}: ", repr(answer))

    def test_simulate_and_verify(self):
        simulation = tw.simulate(self.plan, self.cluster, seed=3)
        arguments = ["simulate", "plan.json", "--cluster", "cluster.toml", "--seed", 3]
        printed = run(*arguments, "-o", "observed.parquet", "--json")
        self.assertEqual(untimed(simulation.json), untimed(printed.stdout), printed.stderr)
        self.assertLessEqual(set(self.plan.admitted), {row["name"] for row in simulation.workloads})
        observed = tw.simulate_requests(self.plan, self.cluster, seed=3)
        columns = observed.to_columns()
        of_file = tw.Observations.read("observed.parquet").to_columns()
        self.assertEqual(list(columns), list(of_file))
        for name, column in columns.items():
            self.assertTrue(np.array_equal(column, of_file[name]), name)
        findings = tw.verify(observed, self.plan, storage="ssd.json", window="2s")
        options = ["--storage", "ssd.json", "--window", "2s", "--json"]
        judged = run("verify", "plan.json", "observed.parquet", *options)
        self.assertEqual(findings.json, judged.stdout, judged.stderr)
        within_limits = {row["name"]: row["assumption"] is None for row in simulation.workloads}
        self.assertTrue(any(within_limits.values()), within_limits)
        rows = [row for row in findings.workloads if row["admitted"]]
        self.assertEqual([row["name"] for row in rows], self.plan.admitted)
        for row in rows:
            latencies = columns["latency_s"][columns["workload"] == row["name"]]
            self.assertEqual((row["requests"], row["max_s"]), (len(latencies), latencies.max()))
            self.assertEqual(row["over"], (latencies > row["slo_s"]).sum())
            # A trace that begins again may exceed limits that lie on its curve; then no bound is promised.
            if within_limits[row["name"]]:
                self.assertLessEqual(latencies.max(), self.plan.bound(row["name"]))

    def test_scenarios(self):
        file = EXAMPLES / "mm1.toml"
        answer = tw.simulate(file, set={"run.requests": 2000, "run.replications": 3}, load=0.5)
        settings = ["--set", "run.requests=2000", "--set", "run.replications=3", "--load", 0.5]
        self.assert_printed(answer, "simulate", file, *settings)

    def test_errors_are_those_of_the_program(self):
        Path("broken.toml").write_text("[[server]]\nclas = 1\n")
        for ask, args in [
            (lambda: tw.plan("missing.toml"), ["plan", "missing.toml"]),
            (lambda: tw.plan("broken.toml"), ["plan", "broken.toml"]),
            (lambda: tw.explain("w9", "cluster.toml"), ["explain", "w9", "cluster.toml"]),
            (lambda: tw.admit("cluster.toml", model="silo"), ["admit", "cluster.toml", "--model", "silo"]),
            (lambda: tw.bound("cluster.toml", server_class="x"), ["bound", "cluster.toml", "--class", "x"]),
            (lambda: tw.verify("missing.parquet"), ["verify", "missing.parquet"]),
        ]:
            with self.assertRaises(tw.InputError) as caught:
                ask()
            printed = run(*args)
            self.assertEqual(printed.returncode, 2)
            said = " ".join(printed.stderr.split())
            self.assertIn(" ".join(caught.exception.message.split()), said)
        error = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((error.message, error.hint), (caught.exception.message, caught.exception.hint))

    def test_wrong_questions_are_refused(self):
        for ask, said in [
            (lambda: tw.plan(self.cluster, method="best"), "there is no policy 'best'"),
            (lambda: tw.plan(self.cluster, order="last"), "there is no order 'last'"),
            (lambda: tw.plan(self.cluster, model="replayd"), "did you mean replayed"),
            (lambda: tw.plan(self.cluster, model="replayed", keep=self.plan), "do not go with model"),
            (lambda: tw.plan(self.cluster, keep={"format": "x"}), "the policy: "),
            (lambda: tw.bound(self.cluster, models=[]), "models is empty"),
            (lambda: tw.bound(self.cluster, percentile=0), "percentile is 0"),
            (lambda: tw.bound(self.cluster, models="calibrated", coverage=1.0), "coverage is 1"),
            (lambda: tw.Cluster.read("x", safety_margin=0.5), "safety_margin is 0.5"),
            (lambda: tw.Cluster.from_dict({"server": {1, 2}}), "cluster: "),
            (lambda: tw.plan({"server": []}), "cluster: there are no servers"),
            (lambda: tw.simulate(self.plan), "expected its cluster"),
            (lambda: tw.simulate(self.plan, self.cluster, seed=-1), "seed is -1"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                ask()

    def test_warnings_are_pythons(self):
        tw.write_trace("instant.csv", [5, 5], 4096)
        workload = {"name": "a", "trace": "instant.csv", "slo": "99% < 1s"}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            tw.plan(dict(self.description, workload=[workload]))
        [warning] = [one for one in caught if "arrive at one instant" in str(one.message)]
        self.assertEqual((warning.category, warning.filename), (tw.Caution, __file__))
        with self.assertLogs("tailwright", "INFO") as logged:
            tw.plan(self.description)
        self.assertIn("traces: ", logged.output[0])


class Judgements(unittest.TestCase):
    def test_columns_are_judged_as_counted(self):
        draw = np.random.default_rng(5)
        count = 20_000
        workload = draw.choice(["mail", "web"], count)
        intended = np.sort(draw.uniform(0, 100, count))
        latency = draw.exponential(np.where(workload == "mail", 0.01, 0.02))
        outcome = draw.choice(["done", "failed", "lost"], count, p=[0.998, 0.001, 0.001])
        slos = {"mail": "99% < 60ms", "web": "99% < 60ms"}
        order = draw.permutation(count)
        columns = (workload[order], intended[order], (intended + latency)[order])
        observed = tw.Observations.from_columns(*columns, outcome=outcome[order], op="write", size=512)
        self.assertEqual((len(observed), observed.workloads), (count, ["mail", "web"]))
        findings = tw.verify(observed, slos=slos)
        self.assertEqual((findings.verdict, findings.is_met), ("not_met", False))
        verdicts = {row["name"]: row["verdict"] for row in findings.workloads}
        self.assertEqual(verdicts, {"mail": "met", "web": "not_met"})
        is_over = (latency > 0.06) | (outcome != "done")
        for row in findings.workloads:
            of_it = workload == row["name"]
            self.assertEqual((row["requests"], row["over"]), (of_it.sum(), (is_over & of_it).sum()))
            self.assertEqual(row["lost"], (of_it & (outcome == "lost")).sum())
        observed.write("judged.parquet")
        options = [f"--slo={name}={slo}" for name, slo in slos.items()]
        printed = run("verify", "judged.parquet", *options, "--json")
        self.assertEqual((printed.returncode, printed.stdout), (1, findings.json), printed.stderr)
        self.assertEqual(tw.verify("judged.parquet", slos=slos), findings)
        ends = np.where(outcome == "lost", np.nan, intended + latency)
        failed = np.where(outcome == "failed", "failed", "done")
        again = tw.Observations.from_columns(workload, intended, ends, outcome=failed)
        self.assertEqual(tw.verify(again, slos=slos)["workloads"], findings["workloads"])
        instants = (np.nan_to_num(ends) * 1e9).astype("datetime64[ns]")
        instants[np.isnan(ends)] = np.datetime64("NaT", "ns")
        begins = (intended * 1e9).astype("datetime64[ns]")
        stamped = tw.Observations.from_columns(workload, begins, instants).to_columns()
        self.assertEqual((stamped["outcome"] == "lost").tolist(), (outcome == "lost").tolist())
        self.assertEqual(np.isnan(stamped["latency_s"]).tolist(), (outcome == "lost").tolist())

    def test_what_cannot_be_observed_is_refused(self):
        make = tw.Observations.from_columns
        one = make("a", [1.0], [2.0])
        for ask, said in [
            (lambda: make("a", [], []), "intended is empty"),
            (lambda: make("a", [1.0], [0.5]), r"end\[0\] is before intended\[0\]"),
            (lambda: make("a", [1.0, 2.0], [3.0]), "end has 1 rows"),
            (lambda: make(["a"], [1.0, 2.0], [3.0, 3.0]), "workload has 1 rows"),
            (lambda: make(["a\nb"], [1.0], [3.0]), "workload"),
            (lambda: make("a", [1.0], [2.0], outcome=["gone"]), r"outcome\[0\] is 'gone'"),
            (lambda: make("a", [1.0], [2.0], op="append"), r"op\[0\] is 'append'"),
            (lambda: make("a", [1.0], [2.0], size=-1), r"size\[0\] is -1"),
            (lambda: make("a", [1.0], [2.0], size=1.5), "size has the shape"),
            (lambda: tw.verify(one), "nothing to judge against"),
            (lambda: tw.verify(one, slos={"a": "99 of 100"}), "99 of 100"),
            (lambda: tw.verify(one, slos={"b": "99% < 1s"}), "b"),
            (lambda: tw.verify(one, slos={"a": "99% < 1s"}, window=0), "window is 0"),
            (lambda: tw.verify(one, slos={"a": "99% < 1s"}, confidence=2), "confidence is 2"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                ask()


class Traces(unittest.TestCase):
    def test_the_program_reads_what_was_written(self):
        at, size, is_write = bursty(11, 200)
        for name in ("trace.csv", "trace.csv.gz", "trace.parquet"):
            self.assertEqual(tw.write_trace(name, at, size, is_write, offset=size * 3), 200)
            printed = run("trace", "info", name, "--json").stdout
            self.assertIn(200, json.loads(printed).values(), printed)
        for ask, said in [
            (lambda: tw.write_trace("trace", at, size), "does not say which format"),
            (lambda: tw.write_trace("trace.csv", at[::-1], size), "arriv|earlier"),
            (lambda: tw.write_trace("trace.csv", at, -size), r"size\[0\] is -"),
            (lambda: tw.write_trace("no/folder.csv", at, size), "no/folder.csv"),
        ]:
            with self.subTest(said), self.assertRaisesRegex(tw.InputError, said):
                ask()


def wait_for_call(process):
    """Waits until the process has the thread of a call."""
    while process.poll() is None:
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            if (task / "comm").read_text() == "tailwright\n":
                return
        time.sleep(0.01)


class Interpreters(unittest.TestCase):
    def test_other_threads_run_during_a_call(self):
        turns = []
        is_over = threading.Event()

        def count():
            while not is_over.is_set():
                turns.append(1)
                is_over.wait(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        before = len(turns)
        tw.ideal("poisson(800/s)", "exp(1ms)", requests=300_000)
        during = len(turns) - before
        is_over.set()
        thread.join()
        self.assertGreater(during, 1)

    def test_ctrl_c_ends_a_call(self):
        for call in (
            "tw.ideal('poisson(800/s)', 'exp(1ms)', requests=10**12)",
            "tw.simulate(sys.argv[1], set={'run.requests': 10**9})",
        ):
            # A process that was started in the background of a shell ignores the signal otherwise.
            heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
            script = f"{heard}\nimport sys, tailwright as tw\nprint('begun', flush=True)\n{call}\n"
            with subprocess.Popen(
                [sys.executable, "-c", script, str(EXAMPLES / "mm1.toml")],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            ) as process:
                self.assertEqual(process.stdout.readline(), "begun\n")
                wait_for_call(process)
                process.send_signal(signal.SIGINT)
                _, said = process.communicate()
            self.assertTrue(said.rstrip().endswith("KeyboardInterrupt"), said)
            self.assertEqual(process.returncode, -signal.SIGINT)

    def test_every_name_is_there_and_described(self):
        for name in set(tw.__all__) - {"__version__"}:
            self.assertTrue(getattr(tw, name).__doc__, name)
        self.assertEqual(tw.__version__, run("--version").stdout.split()[1])
        self.assertEqual(doctest.testmod(tw), (0, 3))


if __name__ == "__main__":
    unittest.main()
