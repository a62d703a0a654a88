"""Answers: the documents that the command line prints with ``--json``, with names for what is used most."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Type, TypeVar, Union

from ._cluster import PathLike
from ._errors import InputError

Document = Dict[str, Any]
Rows = List[Document]
_Answer = TypeVar("_Answer", bound="Answer")


class Answer:
    """A JSON document (docs/schemas has the schema of each).

    Attributes:
        json: The document, character for character as the command line prints it.
    """

    def __init__(self, text: str) -> None:
        self.json = text
        self._document: Document = json.loads(text)

    def to_dict(self) -> Document:
        """Returns the document as a new dictionary."""
        document: Document = json.loads(self.json)
        return document

    def __getitem__(self, field: str) -> Any:
        """Returns a field of the document."""
        return self._document[field]

    def get(self, field: str, default: Any = None) -> Any:
        """Returns a field of the document, or the default where it is absent."""
        return self._document.get(field, default)

    def write(self, path: PathLike) -> None:
        """Writes the document to a file."""
        Path(path).write_text(self.json, encoding="utf-8")

    def __eq__(self, other: object) -> bool:
        return self._document == other._document if isinstance(other, Answer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.json)

    def _rows(self, field: str) -> Rows:
        return [dict(row) for row in self._document.get(field, [])]


class Policy(Answer):
    """Where each workload goes, with which priority and limits, and what it is promised (docs/reference/policy.md)."""

    @classmethod
    def read(cls: Type[_Answer], path: PathLike) -> _Answer:
        """Reads a policy file, as ``plan -o`` writes it. It is checked when it is used.

        Raises:
            InputError: The file cannot be read, or is no JSON.
        """
        try:
            return cls(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: {error}") from None

    @property
    def workloads(self) -> Rows:
        """A row per workload, in the order of the cluster: name, admitted, server, priority, slo, bound_s, limits."""
        return self._rows("workloads")

    @property
    def limits(self) -> Rows:
        """A row per limit: workload, server, stage, rate (share of capacity), burst (seconds), rate_per_s, burst_work."""
        rows = []
        for workload in self._rows("workloads"):
            for limit in workload.get("limits") or []:
                rows.append({"workload": workload["name"], "server": workload["server"], **limit})
        return rows

    @property
    def admitted(self) -> List[str]:
        """Names of the workloads with a promise."""
        return [row["name"] for row in self._document["workloads"] if row["admitted"]]

    @property
    def refused(self) -> Dict[str, Optional[str]]:
        """Names of the other workloads, each with the reason."""
        rows = self._document["workloads"]
        return {row["name"]: row.get("refusal") for row in rows if not row["admitted"]}

    @property
    def servers(self) -> List[str]:
        """Names of the servers in use."""
        return [server["name"] for server in self._document["servers"]]

    def bound(self, workload: str) -> Optional[float]:
        """Returns the promised latency of a workload in seconds; ``None`` without a promise.

        Raises:
            InputError: There is no such workload.
        """
        for row in self._document["workloads"]:
            if row["name"] == workload:
                bound: Optional[float] = row["bound_s"]
                return bound
        raise InputError(f"there is no workload {workload!r}")

    def __repr__(self) -> str:
        count = len(self._document["workloads"])
        name = type(self).__name__
        return f"<{name}: {len(self.admitted)} of {count} workloads admitted, servers: {len(self.servers)}>"


class Plan(Policy):
    """A policy with figures of the search that found it."""

    @property
    def servers_used(self) -> int:
        """Number of servers with workloads."""
        return int(self["servers_used"])

    @property
    def servers_lower_bound(self) -> int:
        """No plan needs fewer servers."""
        return int(self["servers_lower_bound"])


class Bounds(Answer):
    """Predicted latencies of workloads that share one server."""

    @property
    def workloads(self) -> Rows:
        """A row per model and workload: name, model, percentile, priority, bound_s, slo_s, within_slo."""
        return self._rows("workloads")

    def __repr__(self) -> str:
        rows = self._document["workloads"]
        return f"<Bounds: {sum(row['within_slo'] for row in rows)} of {len(rows)} within their SLO>"


class Admission(Answer):
    """Decisions on arrivals and departures.

    Attributes:
        policy: The final placement, with priorities and limits.
    """

    def __init__(self, text: str, policy: str) -> None:
        super().__init__(text)
        self.policy = Policy(policy)

    @property
    def admitted(self) -> List[str]:
        """Names of the workloads that are present in the end."""
        return list(self["admitted"])

    @property
    def refused(self) -> Dict[str, str]:
        """Names of the workloads that were refused when they last asked, each with the reason."""
        return {row["name"]: row["reason"] for row in self["refused"]}

    @property
    def decisions(self) -> Rows:
        """A row per event: event, names, accepted, server, reason, elapsed_s."""
        return self._rows("decisions")

    @property
    def workloads(self) -> Rows:
        """A row per workload that is present: name, server, priority, bound_s, slo_s."""
        return self._rows("workloads")

    def __repr__(self) -> str:
        return f"<Admission: {len(self.admitted)} admitted, {len(self.refused)} refused>"


class Explanation(Answer):
    """The derivation of a bound, or the reason of a refusal with its remedies."""

    @property
    def is_admitted(self) -> bool:
        """False for the explanation of a refusal."""
        return bool(self["format"] != "tailwright.refusal")

    @property
    def bound(self) -> Optional[float]:
        """The derived latency in seconds; ``None`` where there is none."""
        derivation = self._document if self.is_admitted else self.get("derivation") or {}
        bound: Optional[float] = derivation.get("bound_s")
        return bound

    @property
    def reason(self) -> Optional[str]:
        """Why the workload is refused or has no bound; otherwise ``None``."""
        reason: Optional[str] = self.get("reason")
        return reason

    def __repr__(self) -> str:
        return f"<Explanation of {self['workload']}: {self.reason or f'{self.bound:g} s'}>"


class IdealLatency(Answer):
    """Latencies that queueing alone causes."""

    @property
    def disciplines(self) -> Rows:
        """A row per discipline: discipline, mean_s, p50_s, p90_s, p99_s, p99_9_s, and ``ci`` with their intervals."""
        first = {key: value for key, value in self._document.items() if key not in _IDEAL_COMMON}
        return [first, *self._rows("compared")]

    @property
    def mean(self) -> Optional[float]:
        """Mean latency of the first discipline in seconds; ``None`` where it is infinite."""
        mean: Optional[float] = self["mean_s"]
        return mean

    @property
    def p99(self) -> float:
        """99th percentile of the first discipline in seconds."""
        return float(self["p99_s"])

    @property
    def utilisation(self) -> float:
        """Share of the time that workers are busy, 0 to 1."""
        return float(self["utilisation"])

    def __repr__(self) -> str:
        mean = "infinite" if self.mean is None else f"{self.mean:.4g} s"
        return f"<IdealLatency: utilisation {self.utilisation:.3g}, mean {mean}, p99 {self.p99:.4g} s>"


_IDEAL_COMMON = {
    "format",
    "version",
    "stream",
    "service",
    "workers",
    "utilisation",
    "seed",
    "requests_needed",
    "compared",
}


class Simulation(Answer):
    """A simulated scenario or policy."""

    @property
    def variants(self) -> Rows:
        """A row per variant of a scenario that varies something, with its ``choices``; otherwise empty."""
        return self._rows("variants")

    @property
    def workloads(self) -> Rows:
        """A row per workload of a storage server: name, measured_s, verdict; of a policy also server, bound_s, bound."""
        rows = self._rows("workloads")
        for server in self._document.get("servers", []):
            rows.extend({"server": server["name"], **workload} for workload in server["workloads"])
        return rows

    def __repr__(self) -> str:
        name = self.get("scenario") or self.get("policy")
        return f"<Simulation of {name}, seed {self['seed']}>"


class Findings(Answer):
    """Verdicts on observed requests, with what they rest on (docs/reference/verify.md)."""

    @property
    def verdict(self) -> str:
        """The verdict on all workloads with a guarantee together: met, not_met, bound_broken, too_few or spoiled."""
        return str(self["verdict"])

    @property
    def workloads(self) -> Rows:
        """A row per workload with an SLO: name, verdict, slo, measured_s, ci_low_s, ci_high_s, requests, over."""
        return self._rows("workloads")

    @property
    def is_met(self) -> bool:
        """True if every SLO of an admitted workload is met (exit code 0 of the command line)."""
        return self.verdict == "met"

    def __repr__(self) -> str:
        return f"<Findings: {self.verdict}, {len(self['workloads'])} workloads>"


def policy_text(policy: Union[Policy, PathLike, Mapping[str, Any]]) -> str:
    """Returns a policy as JSON, from a file or a dictionary where it is one."""
    if isinstance(policy, Policy):
        return policy.json
    if isinstance(policy, Mapping):
        return json.dumps(policy)
    return Policy.read(policy).json
