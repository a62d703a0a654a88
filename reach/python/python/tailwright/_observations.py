"""Observed requests."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _columns
from . import _tailwright as native
from ._cluster import PathLike
from ._errors import InputError

_OUTCOMES = ("done", "failed", "lost")


class Observations:
    """Requests that were observed, with when they were meant to be sent, were sent, and were answered.

    Instants count from one origin. They come from files (:meth:`read`), columns (:meth:`from_columns`) or
    :func:`tailwright.simulate_requests`, and are judged by :func:`tailwright.verify`.
    """

    __slots__ = ("_native",)
    _native: native.Observations

    def __init__(self) -> None:
        raise TypeError("use Observations.read or Observations.from_columns")

    @classmethod
    def _of(cls, observations: native.Observations) -> Observations:
        created = cls.__new__(cls)
        created._native = observations
        return created

    @classmethod
    def read(cls, paths: Union[PathLike, Sequence[PathLike]]) -> Observations:
        """Reads the Parquet files of one run (``tailwright verify --help`` lists their columns).

        Raises:
            InputError: A file cannot be read, or the files are not of one run.
        """
        several = [paths] if isinstance(paths, str) or hasattr(paths, "__fspath__") else list(paths)
        return cls._of(native.Observations.read(several))

    @classmethod
    def from_columns(
        cls,
        workload: Any,
        intended: Any,
        end: Any,
        *,
        sent: Any = None,
        op: Any = "read",
        size: Any = 0,
        outcome: Any = None,
        unit: Optional[str] = None,
    ) -> Observations:
        """Makes observations of columns of equal length.

        Args:
            workload: Name of the workload of each request, or one name for all.
            intended: When each request was meant to be sent: seconds as real numbers, nanoseconds as whole numbers, or
                datetime64; at least 0, in any order. Latency counts from here.
            end: When each was answered, of the same type. Of a lost request it is ignored; NaN and NaT mean lost.
            sent: When each was sent; default: as intended.
            op: "read" or "write", one for all or a column; or booleans that are true for writes.
            size: Bytes, at least 0, one number for all or a column. Limits are judged by it.
            outcome: "done", "failed" (answered with an error) or "lost" (not answered); default: done, where ``end``
                is a time.
            unit: Unit of the times, where it is another one: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``.

        Raises:
            InputError: A column is empty, of another length, shape or type, or has a value that cannot be.
        """
        begins = _columns.times(intended, "intended", unit)
        rows = len(begins)
        if rows == 0:
            raise InputError("intended is empty: there are no requests")
        end = _columns.array(end, "end")
        missing = np.isnat(end) if end.dtype.kind in "Mm" else np.isnan(end) if end.dtype.kind == "f" else None
        if missing is not None and missing.any():
            end = end.copy()
            end[missing] = end.dtype.type(0, "ns") if end.dtype.kind in "Mm" else 0
        ends = _columns.times(end, "end", unit)
        _columns.same_length(ends, "end", rows)
        sends = begins if sent is None else _columns.times(sent, "sent", unit)
        _columns.same_length(sends, "sent", rows)
        outcomes = np.zeros(rows, dtype=np.uint8)
        if outcome is not None:
            column = _columns.array(outcome, "outcome")
            _columns.same_length(column, "outcome", rows)
            outcomes = _columns.words(column, "outcome", _OUTCOMES)
        if missing is not None:
            outcomes[missing] = _OUTCOMES.index("lost")
        if isinstance(workload, str):
            names, numbers = [workload], np.zeros(rows, dtype=np.int64)
        else:
            column = _columns.array(workload, "workload")
            _columns.same_length(column, "workload", rows)
            found, inverse = np.unique(column.astype(str), return_inverse=True)
            names, numbers = found.tolist(), inverse.reshape(-1).astype(np.int64)
        is_write = _columns.is_write(op, rows)
        sizes = _columns.whole(size, "size", rows)
        observations = native.Observations.from_columns(
            names, numbers, is_write, sizes, begins, sends, ends, outcomes
        )
        return cls._of(observations)

    def to_columns(self) -> Dict[str, npt.NDArray[Any]]:
        """Returns the columns, by intended time: for ``pandas.DataFrame`` or ``polars.DataFrame``.

        ``workload``, ``op``, ``outcome`` are text, ``size`` is in bytes, ``intended_s``, ``sent_s``, ``latency_s``
        and ``stage_NAME_s`` are in seconds; the latency of a request that was not answered well is NaN.
        """
        columns = self._native.columns()
        latency = (columns["end"] - columns["intended"]) / 1e9
        latency[columns["outcome"] != 0] = np.nan
        table = {
            "workload": np.array(self.workloads)[columns["workload"]],
            "op": np.where(columns["is_write"], "write", "read"),
            "size": columns["size"],
            "intended_s": columns["intended"] / 1e9,
            "sent_s": columns["sent"] / 1e9,
            "outcome": np.array(_OUTCOMES)[columns["outcome"]],
            "latency_s": latency,
        }
        stages = [name for name in columns if name.startswith("stage_")]
        table.update({f"{name}_s": columns[name] / 1e9 for name in stages})
        return table

    def write(self, path: PathLike) -> None:
        """Writes a Parquet file, which :meth:`read` and ``tailwright verify`` read."""
        self._native.write(path)

    @property
    def workloads(self) -> List[str]:
        """Names of the workloads."""
        return self._native.workloads

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        return f"<Observations: {len(self)} requests of {', '.join(self.workloads)}>"
