"""Plays the same images under all modes, one after the other in random order, and prints what they took.

Exit codes: 0 done; 1 a service failed; 2 wrong arguments; 130 interrupted. run.py starts it, and says 3 where something that it
needs is missing.
"""

import argparse
import http.client
import json
import math
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

INTERRUPTED = 130


def interrupt(*_):
    """Ends this program by its usual way out, once: more interrupts do not disturb it on that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(INTERRUPTED)


# Before what takes a second to import.
signal.signal(signal.SIGINT, interrupt)
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "schedule" / "bindings" / "python"))

import tailwright_gat
import work

MODES = ["fair", "fcfs", "limited", "orf-admission"]
# Student's t for an interval of 95 % with so many degrees of freedom.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
HERE = pathlib.Path(__file__).parent
IN_FLIGHT_MAX = 400
SECONDS_MAX = 3600
REPETITIONS_MAX = 1000


class Stages:
    """The two services of a play, each on a CPU of its own where there are two."""

    def __init__(self, mode, settings):
        self._processes = []
        try:
            classify = self._start("classify", settings.cpus[-1], mode, settings)
            self.port = self._start("blur", settings.cpus[0], mode, settings, str(classify))
        except BaseException:
            self._end()
            raise

    def _start(self, role, cpu, mode, settings, *following):
        command = [sys.executable, "-B", str(HERE / "stage.py"), role, str(cpu), mode, str(settings.c)]
        # A terminal's interrupt is not for the stages, which end with their input.
        ways = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "process_group": 0}
        process = subprocess.Popen([*command, settings.library, *following], **ways)
        self._processes.append(process)
        port = process.stdout.readline()
        if not port:
            raise SystemExit(f"the stage '{role}' did not start; what it said stands above")
        return int(port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    def _end(self):
        # The last one that was started calls the others.
        for process in reversed(self._processes):
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ask(port, body, entry):
    """Sends an image with the start that it gets here, at the entry of the system."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        headers = {"baggage": tailwright_gat.write([], entry.receive([]))}
        connection.request("POST", "/", body, headers)
        reply = connection.getresponse()
        answer = reply.read()
        if reply.status != 200:
            raise OSError(f"{reply.status}: {answer[:200]}")
        return json.loads(answer)
    finally:
        connection.close()


def play(mode, arrivals_s, images, settings):
    """The latency of each image, counted from its intended time, when its answer came, and how many lines were told right."""
    entry, ends, right = tailwright_gat.Edge(), [None] * len(images), [0] * len(images)
    room, is_over = threading.Semaphore(IN_FLIGHT_MAX), threading.Event()

    def send(index, begin):
        body, flipped = images[index]
        try:
            answer = ask(stages.port, body, entry)
            ends[index] = time.monotonic() - begin
            right[index] = sum(told == is_so for told, is_so in zip(answer["flipped"], flipped, strict=True))
        except (OSError, http.client.HTTPException):
            # When the play is over early, the stages end with requests inside.
            if not is_over.is_set():
                raise
        finally:
            room.release()

    with Stages(mode, settings) as stages:
        try:
            for body, _ in images[:3]:
                ask(stages.port, body, entry)
            threads, begin = [], time.monotonic() + 0.1
            for index, arrival in enumerate(arrivals_s):
                time.sleep(max(0.0, begin + arrival - time.monotonic()))
                room.acquire()
                threads.append(threading.Thread(target=send, args=(index, begin)))
                threads[-1].start()
            for thread in threads:
                thread.join()
        finally:
            is_over.set()
    lost = ends.count(None)
    if lost:
        raise SystemExit(f"{mode}: {lost} of {len(images)} images got no answer")
    return ends, sum(right)


def work_of(images, settings):
    """The CPU time of each image at both stages, alone, in seconds."""
    entry = tailwright_gat.Edge()
    with Stages("fcfs", settings) as stages:
        ask(stages.port, images[0][0], entry)
        return [[ns / 1e9 for ns in ask(stages.port, body, entry)["work_ns"]] for body, _ in images]


def reordered(arrivals_s, works, ends):
    """The share of images whose place among the answers is not the one that they would have if none ever waited."""
    ideal = sorted(range(len(ends)), key=lambda index: arrivals_s[index] + sum(works[index]))
    found = sorted(range(len(ends)), key=lambda index: ends[index])
    return sum(a != b for a, b in zip(ideal, found)) / len(ends)


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def ratio(values, others):
    """The geometric mean of ratios, and its interval."""
    logs = [math.log(a / b) for a, b in zip(values, others, strict=True)]
    mean = statistics.mean(logs)
    if len(logs) < 2:
        return f"{math.exp(mean):.2f}"
    student = STUDENT.get(len(logs) - 1, 2.0)
    half = student * statistics.stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(mean):.2f} ({math.exp(mean - half):.2f} to {math.exp(mean + half):.2f})"


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("-c", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    settings = parser.parse_args()
    # What is no number is in no range.
    if not 0 < settings.load < 1:
        parser.error(f"--load {settings.load}: expected a number between 0 and 1")
    if not 0 < settings.seconds <= SECONDS_MAX:
        parser.error(f"--seconds {settings.seconds}: expected a number above 0 and at most {SECONDS_MAX}")
    for name, value, most in [("--repetitions", settings.repetitions, REPETITIONS_MAX), ("-c", settings.c, IN_FLIGHT_MAX)]:
        if not 1 <= value <= most:
            parser.error(f"{name} {value}: expected a whole number from 1 to {most}")
    settings.cpus = sorted(os.sched_getaffinity(0))[:2]
    return settings


def main():
    settings = arguments()
    choose = random.Random(settings.seed)
    pool = [work.image(choose) for _ in range(60)]
    works_of_pool = work_of(pool, settings)
    means = [statistics.mean(works[stage] for works in works_of_pool) for stage in (0, 1)]
    # With one CPU it has the work of both stages.
    busiest = max(means) if len(settings.cpus) > 1 else sum(means)
    rate = settings.load / busiest
    print(f"blur {1000 * means[0]:.1f} ms and classify {1000 * means[1]:.1f} ms in the mean; {rate:.0f} images a second")
    plays = {mode: [] for mode in MODES}
    for repetition in range(settings.repetitions):
        chosen, arrivals, now = [], [], choose.expovariate(rate)
        while now < settings.seconds:
            arrivals.append(now)
            chosen.append(choose.randrange(len(pool)))
            now += choose.expovariate(rate)
        if not chosen:
            print("error: no image arrives in that time; give more --seconds", file=sys.stderr)
            sys.exit(2)
        images, works = [pool[index] for index in chosen], [works_of_pool[index] for index in chosen]
        for mode in choose.sample(MODES, len(MODES)):
            ends, right = play(mode, arrivals, images, settings)
            latencies = [end - arrival for end, arrival in zip(ends, arrivals)]
            lines = sum(len(flipped) for _, flipped in images)
            plays[mode].append((latencies, reordered(arrivals, works, ends), right / lines))
        print(f"repetition {repetition + 1} of {settings.repetitions}: {len(images)} images", file=sys.stderr)
    show(plays)


def show(plays):
    print(f"{'mode':14} {'p50 ms':>8} {'p99 ms':>8} {'mean ms':>8} {'reordered':>10} {'told right':>11}   p99 ÷ fair")
    p99s = {mode: [percentile(latencies, 99) for latencies, _, _ in of_mode] for mode, of_mode in plays.items()}
    for mode, of_mode in plays.items():
        latencies = [1000 * latency for each, _, _ in of_mode for latency in each]
        figures = [percentile(latencies, 50), percentile(latencies, 99), statistics.mean(latencies)]
        shares = [100 * statistics.mean(play[place] for play in of_mode) for place in (1, 2)]
        against = "" if mode == "fair" else ratio(p99s[mode], p99s["fair"])
        print(f"{mode:14}", *(f"{figure:8.1f}" for figure in figures), f"{shares[0]:9.0f}% {shares[1]:10.1f}%   {against}")


main()
