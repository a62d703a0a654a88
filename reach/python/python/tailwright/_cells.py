"""Plans of more workloads than one plan should have: cell by cell."""

from __future__ import annotations

import hashlib
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ._calls import plan
from ._cluster import Cluster, PathLike
from ._errors import InputError


@dataclass(frozen=True)
class Cell:
    """Some workloads that have servers of their own, with a policy of their own."""

    #: ``cell-0001``, or ``database-0001`` with the value of ``by``.
    name: str
    #: File of the plan, as :func:`plan` writes it.
    policy: Path
    workloads: int
    servers_used: int
    #: No placement of these workloads alone needs fewer servers.
    servers_lower_bound: int
    #: Names of workloads that no server can promise their SLO.
    refused: Tuple[str, ...]


@dataclass(frozen=True)
class FleetPlan:
    """The plans of all cells."""

    cells: Tuple[Cell, ...]

    @property
    def workloads(self) -> int:
        """Number of workloads."""
        return sum(cell.workloads for cell in self.cells)

    @property
    def servers_used(self) -> int:
        """Servers that the cells use together."""
        return sum(cell.servers_used for cell in self.cells)

    @property
    def servers_lower_bound(self) -> int:
        """No placement that keeps the cells apart needs fewer servers. One plan for all may."""
        return sum(cell.servers_lower_bound for cell in self.cells)

    @property
    def refused(self) -> Tuple[str, ...]:
        """Names of workloads that no server can promise their SLO."""
        return tuple(name for cell in self.cells for name in cell.refused)

    def __repr__(self) -> str:
        admitted = self.workloads - len(self.refused)
        cells = len(self.cells)
        return f"<FleetPlan: {admitted} of {self.workloads} workloads admitted, servers: {self.servers_used}, cells: {cells}>"


def plan_in_cells(
    workloads: Iterable[Mapping[str, Any]],
    server: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]],
    *,
    policies: PathLike,
    cell: int = 1000,
    by: Optional[str] = None,
    folder: PathLike = ".",
    safety_margin: Optional[float] = None,
    effort: Optional[int] = None,
    cache: bool = True,
    jobs: int = 1,
) -> FleetPlan:
    """Plans workloads in cells that share no servers, one :func:`plan` for each cell.

    A failure, a change or a new plan then concerns one cell. The time grows as the number of workloads does. It
    costs servers that are not full: docs/guides/fleets.md has figures.

    Args:
        workloads: Workloads with the fields of a cluster file. ``trace`` may be a file of :meth:`Footprint.write`.
        server: Server, or several classes, with the fields of a cluster file except ``count``: each cell may use as
            many as it has workloads.
        policies: Folder for the plans, one file for each cell. It is made if it is not there.
        cell: Most workloads of a cell. Cells differ by at most one workload. A hash of a workload's name decides its
            cell, so that all cells have the same mix, whatever the order of the workloads.
        by: A further field of every workload, such as a class of service. Workloads with different values are in
            different cells.
        folder: The folder that paths are relative to.
        safety_margin, cache: As for :meth:`Cluster.from_dict`.
        effort: As for :func:`plan`.
        jobs: Cells that are planned at a time. The plans do not depend on it.

    Raises:
        InputError: Two workloads have one name, a field is wrong, or a file cannot be read or written.
    """
    if jobs < 1:
        raise InputError(f"jobs is {jobs}: expected at least 1")
    if cell < 1:
        raise InputError(f"cell is {cell}: expected at least 1 workload")
    classes = [server] if isinstance(server, Mapping) else list(server)
    for each in classes:
        if "count" in each:
            raise InputError("a server has a count: leave it out, each cell uses as many servers as it needs")
    target = Path(policies)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{target}: {error}") from None

    def planned(numbered: Tuple[str, List[Dict[str, Any]]]) -> Cell:
        name, members = numbered
        servers = [{**each, "count": len(members)} for each in classes]
        cluster = Cluster.from_dict(
            {"server": servers, "workload": members}, folder=folder, safety_margin=safety_margin, cache=cache
        )
        answer = plan(cluster, effort=effort)
        path = target / f"{name}.json"
        answer.write(path)
        refused = tuple(answer.refused)
        return Cell(name, path, len(members), answer.servers_used, answer.servers_lower_bound, refused)

    cells = _cells(workloads, cell, by)
    if jobs == 1:
        return FleetPlan(tuple(map(planned, cells)))
    # Plans run without Python's global lock.
    with ThreadPoolExecutor(jobs) as threads:
        return FleetPlan(tuple(threads.map(planned, cells)))


def _cells(
    workloads: Iterable[Mapping[str, Any]], size: int, by: Optional[str]
) -> List[Tuple[str, List[Dict[str, Any]]]]:
    groups: Dict[str, List[Dict[str, Any]]] = {}
    names = set()
    for workload in workloads:
        described = dict(workload)
        if "name" not in described:
            raise InputError(f"a workload has no name: {json.dumps(described, default=str)[:200]}")
        if described["name"] in names:
            raise InputError(f"two workloads have the name {described['name']!r}")
        names.add(described["name"])
        group = "cell"
        if by is not None:
            if by not in described:
                raise InputError(f"workload {described['name']!r} has no field {by!r}")
            group = str(described.pop(by))
            if not group.replace("-", "").replace("_", "").isalnum():
                raise InputError(f"{by} is {group!r}: expected letters, digits, - and _, as it names files")
        groups.setdefault(group, []).append(described)
    cells = []
    for group in sorted(groups):
        # Dealt in the given order, every fourth workload might have the same SLO.
        members = sorted(groups[group], key=lambda member: hashlib.sha256(str(member["name"]).encode()).digest())
        count = -(-len(members) // size)
        cells += [(f"{group}-{number + 1:04}", members[number::count]) for number in range(count)]
    if not cells:
        raise InputError("there are no workloads to plan")
    return cells
