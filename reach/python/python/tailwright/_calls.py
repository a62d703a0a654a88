"""The questions: plan, bound, admit, explain, ideal, simulate, verify."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _columns
from . import _tailwright as native
from ._answers import (
    Admission,
    Bounds,
    Explanation,
    Findings,
    IdealLatency,
    Plan,
    Policy,
    Simulation,
    policy_text,
)
from ._cluster import Cluster, PathLike, as_cluster
from ._columns import Time
from ._errors import InputError
from ._observations import Observations

ClusterLike = Union[Cluster, PathLike, Mapping[str, Any]]
PolicyLike = Union[Policy, PathLike, Mapping[str, Any]]

_SIDE_BY_SIDE = ("worst-case", "probabilistic", "replayed")


@dataclass(frozen=True)
class Method:
    """The choices that decide a plan; read by the native half."""

    name: str
    order: Optional[str]
    effort: Optional[int]
    preemptive: bool


@dataclass(frozen=True)
class Prediction:
    """What a prediction is about; read by the native half."""

    cluster: Cluster
    server_class: Optional[str]
    link_only: bool
    groups: Optional[PathLike]
    preemptive: bool
    coverage: float
    horizon_ns: Optional[int]
    coverage_of: str


def _prediction(
    cluster: ClusterLike,
    server_class: Optional[str],
    link_only: bool,
    groups: Optional[PathLike],
    preemptive: bool,
    coverage: float,
    horizon: Optional[Time],
    coverage_of: str,
) -> Prediction:
    horizon_ns = None if horizon is None else _columns.time_ns(horizon, "horizon")
    if horizon_ns == 0:
        raise InputError("horizon is 0: expected a time such as '5min'")
    return Prediction(
        as_cluster(cluster), server_class, link_only, groups, preemptive, coverage, horizon_ns, coverage_of
    )


def _percentile(percentile: Optional[float]) -> Optional[float]:
    return None if percentile is None else float(percentile)


def plan(
    cluster: ClusterLike,
    *,
    method: str = "tailwright",
    order: Optional[str] = None,
    effort: Optional[int] = None,
    preemptive: bool = False,
    keep: Optional[PolicyLike] = None,
    compare: bool = False,
    model: Optional[str] = None,
    groups: Optional[PathLike] = None,
    coverage: float = 0.95,
    horizon: Optional[Time] = None,
    coverage_of: str = "workload",
) -> Plan:
    """Places workloads on servers, with priorities and rate limits that guarantee their tail latencies.

    The same as ``tailwright plan CLUSTER --json``: equal inputs give equal plans, except for elapsed times. Bounds are
    worst cases of network calculus with strict priority and token buckets (Zhu, *Meeting tail latency SLOs in shared
    networked storage*, chapters 3 and 5).

    Args:
        cluster: A cluster, its file, or its description as a dictionary.
        method: ``"tailwright"``, or a published method to compare with: ``"workload-compactor"``,
            ``"effective-bandwidth"``, ``"effective-bandwidth-even"``, ``"knee"``, ``"average-K"``.
        order: ``"best"`` (fewest servers) or ``"given"`` (first fit); default: best for tailwright, else given.
        effort: Maximum number of trials of the search; default: by the number of workloads.
        preemptive: Bounds of servers that interrupt what they have begun, to compare; no real server does.
        keep: A policy whose workloads stay where they are; new ones are placed beside them.
        compare: Also plan with the published methods (``plan["compared"]``).
        model: Place by what this model predicts, not by guaranteed limits: one of those of :func:`bound`.
        groups: With ``model``: a file of the workloads that may burst together.
        coverage: With ``model="calibrated"``: probability that a prediction holds, 0.5 to below 1.
        horizon: With ``model="calibrated"``: length of the next window; default: half of each trace.
        coverage_of: With ``model="calibrated"``: ``"workload"``, ``"server"`` or ``"plan"``.

    Raises:
        InputError: A file, a value or a combination of arguments is wrong.
    """
    if model is None:
        if groups is not None:
            raise InputError("groups goes with model only")
        described = as_cluster(cluster)
        kept = None if keep is None else policy_text(keep)
        return Plan(native.plan(described, Method(method, order, effort, preemptive), kept, compare))
    if method != "tailwright" or order is not None or effort is not None or keep is not None or compare:
        raise InputError("method, order, effort, keep and compare do not go with model")
    question = _prediction(cluster, None, False, groups, preemptive, coverage, horizon, coverage_of)
    return Plan(native.plan_by_model(question, model))


def bound(
    cluster: ClusterLike,
    *,
    models: Union[str, Sequence[str]] = _SIDE_BY_SIDE,
    percentile: Optional[float] = None,
    server_class: Optional[str] = None,
    link_only: bool = False,
    groups: Optional[PathLike] = None,
    preemptive: bool = False,
    coverage: float = 0.95,
    horizon: Optional[Time] = None,
    coverage_of: str = "workload",
) -> Bounds:
    """Predicts the tail latency of every workload when all share one server, by models that assume more or less.

    The same as ``tailwright bound CLUSTER --json``. docs/explanation/predictions.md says what each model assumes.

    Args:
        cluster: As for :func:`plan`.
        models: ``"worst-case"``, ``"probabilistic"``, ``"replayed"``, ``"calibrated"``, ``"published-snc"`` or
            ``"snc-by-stage"``, one or several.
        percentile: The percentile that is asked for, above 0 and at most 100; default: that of each SLO.
        server_class: Class of the server; default: the first of the cluster.
        link_only: Requests pass a network link alone, and no storage.
        groups, preemptive, coverage, horizon, coverage_of: As for :func:`plan`.

    Raises:
        InputError: A file or a value is wrong.
    """
    names = [models] if isinstance(models, str) else list(models)
    if not names:
        raise InputError("models is empty: expected at least one")
    question = _prediction(
        cluster, server_class, link_only, groups, preemptive, coverage, horizon, coverage_of
    )
    return Bounds(native.bound(question, names, _percentile(percentile)))


def admit(
    cluster: ClusterLike,
    *,
    model: str = "worst-case",
    events: Optional[Union[PathLike, Sequence[str]]] = None,
    server_class: Optional[str] = None,
    link_only: bool = False,
    groups: Optional[PathLike] = None,
    preemptive: bool = False,
    coverage: float = 0.95,
    horizon: Optional[Time] = None,
    coverage_of: str = "workload",
) -> Admission:
    """Decides on arriving and departing workloads, one after the other, and says why one is refused.

    The same as ``tailwright admit CLUSTER --json``. A workload goes to the first server where all SLOs are met, its
    own included.

    Args:
        cluster: As for :func:`plan`.
        model: A model of :func:`bound`, or ``"priority-meister"``, ``"silo"``, ``"silo++"``, ``"qjump"``,
            ``"qjump++"``.
        events: A file, or a list of lines such as ``"arrive mail"``, ``"arrive web-1 web-2"`` (together or not at
            all) and ``"depart mail"``; default: all workloads arrive, in the order of the cluster.

    The other arguments are those of :func:`bound`.

    Raises:
        InputError: A file, a line or a value is wrong.
    """
    question = _prediction(
        cluster, server_class, link_only, groups, preemptive, coverage, horizon, coverage_of
    )
    if events is None or isinstance(events, str) or isinstance(events, os.PathLike):
        return Admission(*native.admit(question, model, events))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "events"
        file.write_text("".join(f"{line}\n" for line in events), encoding="utf-8")
        return Admission(*native.admit(question, model, file))


def explain(
    workload: str,
    cluster: ClusterLike,
    *,
    plan: Optional[PolicyLike] = None,
    method: str = "tailwright",
    order: Optional[str] = None,
    effort: Optional[int] = None,
    preemptive: bool = False,
    model: Optional[str] = None,
    percentile: Optional[float] = None,
    link_only: bool = False,
    groups: Optional[PathLike] = None,
    coverage: float = 0.95,
    horizon: Optional[Time] = None,
    coverage_of: str = "workload",
) -> Explanation:
    """Derives the latency bound of one workload, term by term, or says why it is refused and what would admit it.

    The same as ``tailwright explain WORKLOAD CLUSTER --json``.

    Args:
        workload: Name of the workload.
        cluster: As for :func:`plan`.
        plan: The policy to explain; default: a new plan by ``method``, ``order`` and ``effort``.
        model: Derive what this model predicts on one shared server instead, as :func:`bound` has it.
        percentile, link_only, groups, coverage, horizon, coverage_of: With ``model``, as for :func:`bound`.

    Raises:
        InputError: There is no such workload, or a file or a value is wrong.
    """
    if model is None:
        if percentile is not None or link_only or groups is not None:
            raise InputError("percentile, link_only and groups go with model only")
        kept = None if plan is None else policy_text(plan)
        chosen = Method(method, order, effort, preemptive)
        return Explanation(native.explain(workload, as_cluster(cluster), chosen, kept))
    if plan is not None:
        raise InputError("plan does not go with model")
    question = _prediction(cluster, None, link_only, groups, preemptive, coverage, horizon, coverage_of)
    return Explanation(native.explain_prediction(workload, question, model, _percentile(percentile)))


def ideal(
    arrivals: Any,
    service: Time,
    workers: int = 1,
    *,
    discipline: Union[str, Sequence[str]] = "fifo",
    requests: int = 200_000,
    load: Optional[float] = None,
    seed: int = 1,
    unit: Optional[str] = None,
) -> IdealLatency:
    """Computes the latencies that queueing alone causes, for a stream, a service time and a number of workers.

    The same as ``tailwright ideal --json``. FIFO is the recursion of Kiefer and Wolfowitz, Lindley's for one worker
    (Li, Sharma, Ports, Gribble, *Tales of the Tail*, §2).

    Args:
        arrivals: A column of times in order, as for :meth:`BurstCurve.from_requests`; or text, a process such as
            ``"poisson(500/s)"``; or a ``pathlib.Path``, a trace file.
        service: Service time of a request: seconds, or text such as ``"50us"``, or a law such as ``"exp(50us)"``.
            For a time per request there is :func:`ideal_latencies`.
        workers: Number of requests that are served at a time, at least 1.
        discipline: ``"fifo"``, ``"lifo"``, ``"random-request"`` or ``"random-worker"``; several to compare them.
        requests: Number of requests of a process.
        load: Utilisation of the workers, above 0 and below 1, to which arrivals are compressed or stretched.
        seed: Seed of everything random, at least 0.
        unit: Unit of a column of times, where it is another one.

    Raises:
        InputError: A value is wrong, or the workers cannot do the work.
    """
    stream: Any = arrivals
    if not isinstance(arrivals, (str, os.PathLike)):
        stream = _columns.times(arrivals, "arrivals", unit)
    law = service if isinstance(service, str) else f"{_columns.time_ns(service, 'service')}ns"
    orders = [discipline] if isinstance(discipline, str) else list(discipline)
    if not orders:
        raise InputError("discipline is empty: expected at least one")
    if load is not None and not 0 < load < 1:
        raise InputError(f"load is {load!r}: expected a share above 0 and below 1")
    return IdealLatency(
        native.ideal(stream, _at_least(requests, "requests", 1), law, _at_least(workers, "workers", 1), orders, load, _seed(seed))
    )


def ideal_latencies(
    arrivals: Any,
    service: Any,
    workers: int = 1,
    *,
    discipline: str = "fifo",
    seed: int = 1,
    unit: Optional[str] = None,
) -> npt.NDArray[np.float64]:
    """Computes the latency of each request when queueing is all that delays it: wait and service.

    Args:
        arrivals: A column of times in order, shape (n,), as for :meth:`BurstCurve.from_requests`.
        service: Service time of each request, shape (n,), in the same forms; or one for all, as seconds or text such
            as ``"50us"``.
        workers: As for :func:`ideal`, as are ``discipline`` and ``seed``.
        unit: Unit of the columns, where it is another one.

    Returns:
        Array of shape (n,): seconds from arrival to completion, in the order of arrivals, of whole nanoseconds.

    Raises:
        InputError: A column is of another length, shape or type, or has a value that cannot be.
    """
    times = _columns.times(arrivals, "arrivals", unit)
    if isinstance(service, (str, float, int)):
        services = np.full(len(times), _columns.time_ns(service, "service"), dtype=np.int64)
    else:
        services = _columns.times(service, "service", unit)
    _columns.same_length(services, "service", len(times))
    latencies = native.ideal_latencies(
        times, services, _at_least(workers, "workers", 1), discipline, _seed(seed)
    )
    return latencies / 1e9


def simulate(
    scenario: PolicyLike,
    cluster: Optional[ClusterLike] = None,
    *,
    set: Optional[Mapping[str, Any]] = None,
    load: Optional[float] = None,
    seed: int = 1,
    flood: bool = True,
    without_bounds: bool = False,
) -> Simulation:
    """Simulates a policy on the cluster that it was planned for, or a scenario file, with confidence intervals.

    The same as ``tailwright simulate --json``.

    Args:
        scenario: With ``cluster``: a policy, its file or its dictionary. Without: a scenario file
            (docs/reference/scenario.md).
        cluster: The cluster of the policy, as for :func:`plan`.
        set: Values of the scenario to replace: ``{"run.load": 0.8, "station.*.discipline": "lifo"}``.
        load: Utilisation of the busiest station of a scenario; all arrivals are scaled.
        seed: Seed of everything random, at least 0.
        flood: Flood the servers of a policy with best-effort requests, as large as its bounds assume.
        without_bounds: Accept servers that are used in another way than the policy's bounds assume.

    Raises:
        InputError: A file or a value is wrong.
    """
    if cluster is not None:
        if set is not None or load is not None:
            raise InputError("set and load are for scenarios, not for a policy")
        text = policy_text(scenario)
        return Simulation(
            native.simulate_policy(text, as_cluster(cluster), _seed(seed), flood, without_bounds)
        )
    if isinstance(scenario, (Policy, Mapping)):
        raise InputError("a policy does not say where its traces are: expected its cluster, too")
    if not flood:
        raise InputError("flood is for a policy: a scenario says what is sent")
    settings = [f"{path}={_toml(value)}" for path, value in (set or {}).items()]
    return Simulation(native.simulate_scenario(scenario, settings, load, _seed(seed), without_bounds))


def simulate_requests(policy: PolicyLike, cluster: ClusterLike, *, seed: int = 1) -> Observations:
    """Simulates one run of a policy, all traces from their beginning, and returns every request.

    The same as ``tailwright simulate POLICY.json --cluster CLUSTER -o FILE``.
    """
    return Observations._of(native.simulate_requests(policy_text(policy), as_cluster(cluster), _seed(seed)))


def verify(
    observations: Union[Observations, PathLike, Sequence[PathLike]],
    policy: Optional[PolicyLike] = None,
    *,
    slos: Optional[Mapping[str, Union[str, Sequence[str]]]] = None,
    storage: Union[PathLike, Sequence[PathLike]] = (),
    hosts: Optional[PathLike] = None,
    without_bounds: bool = False,
    confidence: float = 0.95,
    window: Time = "3min",
) -> Findings:
    """Judges observed requests: which SLOs are met, with confidence, and which workloads kept to their limits.

    The same as ``tailwright verify --json``. docs/reference/verify.md says what is judged and how.

    Args:
        observations: Observations, or the Parquet files of one run.
        policy: The policy with SLOs, bounds and limits.
        slos: SLOs by workload, such as ``{"mail": "99.9% < 50ms"}``, or a list for each; they replace those of the policy.
        storage: Device profile of the servers, by which limits of storage are judged; one for each that the policy
            names, or one for all.
        hosts: A hosts file, to compare the servers with what the bounds assume.
        without_bounds: As for :func:`simulate`.
        confidence: Of each verdict, 0.5 to below 1.
        window: Length of the windows in which percentiles are also taken.

    Raises:
        InputError: There is nothing to judge against, or a file or a value is wrong.
    """
    if not isinstance(observations, Observations):
        observations = Observations.read(observations)
    text = None if policy is None else policy_text(policy)
    objectives = []
    for name, given in (slos or {}).items():
        objectives.extend(f"{name}={slo}" for slo in ([given] if isinstance(given, str) else given))
    profiles: List[PathLike]
    if isinstance(storage, str) or isinstance(storage, os.PathLike):
        profiles = [storage]
    else:
        profiles = list(storage)
    return Findings(
        native.verify(
            observations._native,
            text,
            objectives,
            profiles,
            hosts,
            without_bounds,
            float(confidence),
            _columns.time_ns(window, "window"),
        )
    )


def write_trace(
    path: PathLike,
    time: Any,
    size: Any,
    op: Any = "read",
    *,
    offset: Any = None,
    format: Optional[str] = None,
    unit: Optional[str] = None,
) -> int:
    """Writes a trace file of columns, for the ``trace`` of a workload. Returns the number of requests.

    Args:
        path: The file; ``.parquet`` and ``.csv`` (also ``.csv.gz``, ``.csv.zst``) say their format.
        time: Arrivals in order of time, shape (n,), as for :meth:`BurstCurve.from_requests`.
        size: Bytes of each request, at least 0, or one number for all.
        op: "read" or "write", one for all or a column; or booleans that are true for writes.
        offset: Position of each request on the device in bytes, where it is known.
        format: Format of the file, where its name does not say it (docs/reference/trace-formats.md).
        unit: Unit of the times, where it is another one.

    Raises:
        InputError: A column is of another length, shape or type, a value cannot be, times decrease, or the file
            cannot be written.
    """
    times = _columns.times(time, "time", unit)
    rows = len(times)
    offsets = None if offset is None else _columns.whole(offset, "offset", rows)
    sizes = _columns.whole(size, "size", rows)
    return native.write_trace(path, format, times, sizes, _columns.is_write(op, rows), offsets)


def _at_least(value: int, name: str, least: int) -> int:
    if not least <= value < 2**63:
        raise InputError(f"{name} is {value!r}: expected at least {least}")
    return int(value)


def _seed(seed: int) -> int:
    return _at_least(seed, "seed", 0)


def _toml(value: Any) -> str:
    """Writes a value as the option --set takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
