"""Tail latency: explain, predict, guarantee and enforce.

Burst curves of requests in arrays, and the questions of the program ``tailwright`` as functions. Answers are the
documents that the program prints with ``--json``. Times are seconds as real numbers, or nanoseconds as whole numbers.

>>> import numpy as np, tailwright as tw
>>> curve = tw.BurstCurve.from_requests(np.array([0.0, 0.1, 0.1]), np.array([4096, 4096, 8192]))
>>> round(curve.burst(0.0)), round(curve.burst(1e6))
(16384, 12288)

Long calls run without Python's global lock, and Ctrl-C ends them. Warnings have the category :class:`Caution`; notes
go to the logger ``tailwright``. Exceptions are subclasses of :class:`Error`.
"""

from __future__ import annotations

from ._answers import (
    Admission,
    Answer,
    Bounds,
    Explanation,
    Findings,
    IdealLatency,
    Plan,
    Policy,
    Simulation,
)
from ._calls import (
    admit,
    bound,
    explain,
    ideal,
    ideal_latencies,
    plan,
    simulate,
    simulate_requests,
    verify,
    write_trace,
)
from ._cluster import Cluster
from ._curve import BurstCurve
from ._errors import Caution, Error, InputError, InternalError, MachineError
from ._footprint import Device, Footprint
from ._observations import Observations
from ._tailwright import __version__

__all__ = [
    "Admission",
    "Answer",
    "Bounds",
    "BurstCurve",
    "Caution",
    "Cluster",
    "Device",
    "Error",
    "Explanation",
    "Findings",
    "Footprint",
    "IdealLatency",
    "InputError",
    "InternalError",
    "MachineError",
    "Observations",
    "Plan",
    "Policy",
    "Simulation",
    "__version__",
    "admit",
    "bound",
    "explain",
    "ideal",
    "ideal_latencies",
    "plan",
    "simulate",
    "simulate_requests",
    "verify",
    "write_trace",
]
