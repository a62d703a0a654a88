"""Descriptions of clusters."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from ._errors import InputError

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Cluster:
    """Servers, workloads, SLOs, and how traces are read. Made by :meth:`read` or :meth:`from_dict`.

    Nothing is opened until the cluster is used.
    """

    path: Path
    text: Optional[str] = field(default=None, repr=False)
    safety_margin: Optional[float] = None
    trace_format: Optional[str] = None
    lenient: bool = False
    sort_window: int = 0
    cache: bool = True

    def __post_init__(self) -> None:
        margin = self.safety_margin
        if margin is not None and not 1 <= margin <= 1000:
            raise InputError(f"safety_margin is {margin!r}: expected a factor from 1 to 1000, such as 1.1")
        if self.sort_window < 0:
            raise InputError(f"sort_window is {self.sort_window}: expected at least 0")

    @classmethod
    def read(
        cls,
        path: PathLike,
        *,
        safety_margin: Optional[float] = None,
        trace_format: Optional[str] = None,
        lenient: bool = False,
        sort_window: int = 0,
        cache: bool = True,
    ) -> Cluster:
        """A cluster file, TOML or JSON (docs/reference/cluster-file.md). Paths in it are relative to it.

        Args:
            path: The file.
            safety_margin: Factor on all work for behaviour beyond the traces, 1 to 1000; default: that of the file.
            trace_format: Format of the traces, such as ``"csv"``; default: detected.
            lenient: Skip and count malformed and out-of-order requests.
            sort_window: A request may come this many requests late in a nearly sorted trace.
            cache: Use and store what was read of traces, in ``~/.cache/tailwright/footprints``.
        """
        return cls(Path(path), None, safety_margin, trace_format, lenient, sort_window, cache)

    @classmethod
    def from_dict(
        cls,
        description: Mapping[str, Any],
        *,
        folder: PathLike = ".",
        safety_margin: Optional[float] = None,
        trace_format: Optional[str] = None,
        lenient: bool = False,
        sort_window: int = 0,
        cache: bool = True,
    ) -> Cluster:
        """A cluster with the fields of a cluster file: ``{"server": [...], "workload": [...]}``.

        Args:
            description: The fields. Paths may be ``Path`` objects.
            folder: The folder that paths are relative to.

        The other arguments are those of :meth:`read`.

        Raises:
            InputError: A value has no form in JSON. Everything else is checked when the cluster is used.
        """
        try:
            text = json.dumps(description, default=os.fspath, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"cluster: {error}") from None
        return cls(Path(folder), text, safety_margin, trace_format, lenient, sort_window, cache)


def as_cluster(cluster: Union[Cluster, PathLike, Mapping[str, Any]]) -> Cluster:
    """Returns a cluster, from a file or a description where it is one."""
    if isinstance(cluster, Cluster):
        return cluster
    if isinstance(cluster, Mapping):
        return Cluster.from_dict(cluster)
    return Cluster.read(cluster)
