"""Streams of requests that merge: what a chunk of a trace leaves, and chunks of tables by workload."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Union

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]
import pyarrow.compute as pc  # type: ignore[import-untyped,unused-ignore]

from . import _columns
from . import _tailwright as native
from ._curve import BurstCurve
from ._errors import InputError
from ._footprint import Device, Footprint

Array = npt.NDArray[Any]
Demand = Union[BurstCurve, Footprint]

#: Rows of a partition that are in memory at a time.
ROWS_MAX = 1 << 22
#: Columns of a table of streams.
SCHEMA = pa.schema([("workload", pa.string()), ("stream", pa.binary())])

_MARK = b"tws1"
_SUM = 4
_SQUARES = 16
_KINDS: Dict[bytes, Callable[[bytes], Demand]] = {b"tbc": BurstCurve.from_bytes, b"tfp": Footprint.from_bytes}


@dataclass(frozen=True)
class Stream:
    """What is kept of a workload's requests: its burst curve or footprint, and the sum of its squared gaps.

    Streams of consecutive parts merge to that of the whole, bit for bit: ``a | b``.
    """

    #: :class:`BurstCurve` of the work, or :class:`Footprint` where operation, size and device are known.
    demand: Demand
    #: Sum of the squares of the times between consecutive requests, ns².
    gaps_squared: int

    @property
    def curve(self) -> BurstCurve:
        """The burst curve of the work; of a footprint, that of the device time."""
        return self.demand.storage if isinstance(self.demand, Footprint) else self.demand

    @property
    def count(self) -> int:
        """Number of requests."""
        return self.curve.count

    @property
    def rate(self) -> Optional[float]:
        """Requests per second from the first to the last; None if all come at one instant."""
        span = self._span
        return (self.count - 1) * 1e9 / span if span else None

    @property
    def gap_c2(self) -> Optional[float]:
        """Squared coefficient of variation of the times between requests: 0 if regular, 1 if Poisson; or None."""
        span = self._span
        gaps = self.count - 1
        return (gaps * self.gaps_squared - span * span) / (span * span) if span else None

    @property
    def _span(self) -> int:
        curve = self.curve
        return curve.last_ns - curve.first_ns

    def merge(self, later: Stream) -> Stream:
        """Returns the stream of these requests followed by those of ``later``.

        Raises:
            InputError: ``later`` begins before this one ends, or is of another kind.
        """
        ours, theirs = self.demand, later.demand
        gap = later.curve.first_ns - self.curve.last_ns
        if isinstance(ours, Footprint) and isinstance(theirs, Footprint):
            merged: Demand = ours.merge(theirs)
        elif isinstance(ours, BurstCurve) and isinstance(theirs, BurstCurve):
            merged = ours.merge(theirs)
        else:
            raise InputError("a stream with a footprint does not merge with one of a burst curve: expected one kind")
        return Stream(merged, self.gaps_squared + gap * gap + later.gaps_squared)

    def __or__(self, later: object) -> Stream:
        return self.merge(later) if isinstance(later, Stream) else NotImplemented

    def to_bytes(self) -> bytes:
        """Returns the stream as bytes, which are equal for equal streams."""
        body = self.gaps_squared.to_bytes(_SQUARES, "little") + self.demand.to_bytes()
        return _MARK + zlib.crc32(body).to_bytes(_SUM, "little") + body

    @classmethod
    def from_bytes(cls, data: bytes) -> Stream:
        """Reads what :meth:`to_bytes` wrote.

        Raises:
            InputError: The bytes are something else, damaged, or of another version.
        """
        data = bytes(data)
        begin = len(_MARK) + _SUM
        body = data[begin:]
        read = _KINDS.get(body[_SQUARES : _SQUARES + 3])
        if not data.startswith(_MARK) or read is None:
            raise InputError("the bytes are no stream: expected what Stream.to_bytes wrote with this version")
        if zlib.crc32(body) != int.from_bytes(data[len(_MARK) : begin], "little"):
            raise InputError("stream: damaged or truncated, the checksum differs")
        stream = cls(read(body[_SQUARES:]), int.from_bytes(body[:_SQUARES], "little"))
        span, gaps = stream._span, stream.count - 1
        # The sum of squares is least if all gaps are equal, and largest if one is the whole span.
        if not (stream.gaps_squared <= span * span <= gaps * stream.gaps_squared):
            raise InputError("the bytes are no stream: no requests have these gaps")
        return stream


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table of requests, and how they become work."""

    workload: str
    time: str
    work: Optional[str]
    size: Optional[str]
    op: Optional[str]
    storage: Optional[Device]
    unit: Optional[str]

    def names(self) -> List[str]:
        """Returns the names of the columns that are read, each once."""
        named = (self.workload, self.time, self.work, self.size, self.op)
        return list(dict.fromkeys(name for name in named if name is not None))


def streams_of_partition(tables: Iterable[pa.Table], columns: Columns) -> Iterator[Tuple[str, Stream]]:
    """Yields workloads and the streams of their requests in a partition, consecutive ones merged where they follow."""
    open_streams: Dict[str, Stream] = {}
    for table in _buffered(tables):
        for workload, stream in _streams_of_table(table, columns):
            earlier = open_streams.get(workload)
            if earlier is not None and stream.curve.first_ns >= earlier.curve.last_ns:
                stream = earlier.merge(stream)
            elif earlier is not None:
                yield workload, earlier
            open_streams[workload] = stream
    yield from open_streams.items()


def merged(workload: str, streams: List[Stream]) -> Stream:
    """Returns the stream of all requests of a workload, from streams in any order.

    Raises:
        InputError: Two of them overlap in time, or are of different kinds.
    """
    # Streams of one instant go before those that begin there; equal ones commute.
    streams = sorted(streams, key=lambda stream: (stream.curve.first_ns, stream.curve.last_ns))
    whole = streams[0]
    for stream in streams[1:]:
        if stream.curve.first_ns < whole.curve.last_ns:
            raise InputError(
                f"workload {workload!r}: chunks overlap in time, one ends at {whole.curve.last_ns} ns and the next "
                f"starts at {stream.curve.first_ns} ns: expected partitions that follow each other in time",
                "shuffle=True sorts the table by workload and time first",
            )
        whole = whole.merge(stream)
    return whole


def _buffered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Joins small tables, and cuts large ones."""
    waiting: List[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows < ROWS_MAX:
            continue
        joined = pa.concat_tables(waiting)
        whole = rows - rows % ROWS_MAX
        for begin in range(0, whole, ROWS_MAX):
            yield joined.slice(begin, ROWS_MAX)
        waiting = [joined.slice(whole)]
        rows -= whole
    if rows:
        yield pa.concat_tables(waiting)


def _streams_of_table(table: pa.Table, columns: Columns) -> Iterator[Tuple[str, Stream]]:
    if table.num_rows == 0:
        return
    for name in columns.names():
        missing = table[name].null_count
        if missing:
            raise InputError(f"column {name!r} has {missing} missing values: expected a value in every row")
    names, codes = _encoded(table[columns.workload], columns.workload)
    time = _times(table[columns.time], columns)
    values = _values(table, columns)
    order: Optional[Array] = None
    if not _is_sorted(codes, time):
        order = np.lexsort((time, codes))
        codes, time = codes[order], time[order]
        values = [value[order] for value in values]
    begins = np.concatenate(([0], np.flatnonzero(codes[1:] != codes[:-1]) + 1, [len(codes)]))
    for begin, end in zip(begins[:-1].tolist(), begins[1:].tolist()):
        part = time[begin:end]
        demand = _demand(part, [value[begin:end] for value in values], columns)
        squares = int.from_bytes(native.gaps_squared(part), "little")
        yield names[int(codes[begin])], Stream(demand, squares)


def _demand(time: Array, values: List[Array], columns: Columns) -> Demand:
    if columns.storage is None:
        return BurstCurve._of(native.BurstCurve.from_columns(time, values[0]))
    return Footprint._of(native.Footprint.from_columns(time, values[0], values[1], columns.storage._native))


def _is_sorted(codes: Array, time: Array) -> bool:
    rises = codes[1:] > codes[:-1]
    return bool((rises | ((codes[1:] == codes[:-1]) & (time[1:] >= time[:-1]))).all())


def _encoded(column: Any, name: str) -> Tuple[List[str], Array]:
    """Returns the names of workloads in the order of their numbers, and the number of each row."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        column = column.cast(kind)
    if pa.types.is_integer(kind):
        column = column.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or _is_string_view(kind)):
        raise InputError(f"column {name!r} has the type {kind}: expected names as text or whole numbers")
    elif _is_string_view(kind):
        column = column.cast(pa.large_string())
    encoded = pc.dictionary_encode(column)
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0)
    return encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)


def _is_string_view(kind: Any) -> bool:
    return bool(getattr(pa.types, "is_string_view", lambda _: False)(kind))


def _times(column: Any, columns: Columns) -> Array:
    """Returns float64 seconds or int64 nanoseconds."""
    name, kind = columns.time, column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        if columns.unit is not None:
            raise InputError(f"column {name!r} has the type {kind}, which has a unit: leave unit out")
        whole = _numpy(column.cast(pa.int64()))
        return _columns.times(whole, name, kind.unit)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise InputError(f"column {name!r} has the type {kind}: expected a timestamp, seconds or nanoseconds")
    return _columns.times(_numpy(column), name, columns.unit)


def _values(table: pa.Table, columns: Columns) -> List[Array]:
    """Returns the work; or sizes, and which requests are writes."""
    if columns.storage is None:
        work = table[str(columns.work)]
        if pa.types.is_decimal(work.type):
            work = work.cast(pa.float64())
        return [_columns.numbers(_numpy(work), str(columns.work))]
    size = _columns.whole(_numpy(table[str(columns.size)]), str(columns.size), table.num_rows)
    if columns.op is None:
        return [size, np.zeros(table.num_rows, dtype=bool)]
    op = table[columns.op]
    if pa.types.is_boolean(op.type):
        return [size, _numpy(op)]
    words, codes = _encoded(op, columns.op)
    for word in words:
        if word not in ("read", "write"):
            raise InputError(f"column {columns.op!r} has {word!r}: expected read or write")
    return [size, np.array([word == "write" for word in words], dtype=bool)[codes]]


def _numpy(column: Any) -> Array:
    array: Array = column.to_numpy()
    return array
