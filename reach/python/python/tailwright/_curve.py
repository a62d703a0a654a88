"""Burst curves of columns of requests."""

from __future__ import annotations

from typing import Any, Iterable, Optional, Tuple, Union, overload

import numpy as np
import numpy.typing as npt

from . import _columns
from . import _tailwright as native
from ._errors import InputError

Floats = npt.NDArray[np.float64]


class BurstCurve:
    """For every rate r, the smallest token bucket b(r) that never delays a stream of requests.

    For requests (t_i, w_i) in order of time, b(r) is the maximum of ``sum(w[i:j+1]) - r * (t[j] - t[i])`` over all
    i ≤ j (Zhu, *Meeting tail latency SLOs in shared networked storage*, §2.3.1). The curve has the upper hull of the
    points (duration, work) of all intervals, which gives b(r) for every r, exactly: times are whole nanoseconds, work
    is whole thousandths of a unit, and results round up. It takes a few kilobytes, whatever the number of requests.

    Curves of consecutive parts of a stream merge to the curve of the whole, bit for bit: ``a | b``. Curves can be
    compared, pickled and stored (:meth:`to_bytes`, :meth:`to_json`).
    """

    __slots__ = ("_native",)
    _native: native.BurstCurve

    def __init__(self) -> None:
        raise TypeError("use BurstCurve.from_requests or BurstCurve.from_json")

    @classmethod
    def _of(cls, curve: native.BurstCurve) -> BurstCurve:
        created = cls.__new__(cls)
        created._native = curve
        return created

    @classmethod
    def from_requests(cls, time: Any, work: Any, *, unit: Optional[str] = None) -> BurstCurve:
        """Computes the curve of requests.

        Args:
            time: Arrivals, shape (n,), n ≥ 1, in order of time, at least 0. Real numbers are seconds, whole numbers
                are nanoseconds; datetime64 and timedelta64 are as they say.
            work: Work of each request, shape (n,), from 0 to 1.8e16, in any unit: bytes, or nanoseconds of device
                time. It is rounded up to thousandths of the unit, so that seconds are too coarse a unit.
            unit: ``"s"``, ``"ms"``, ``"us"`` or ``"ns"``, where ``time`` has another one.

        float64, int64, datetime64[ns] and timedelta64[ns] are read in place, whatever their stride; other types are
        converted. The arrays must not change meanwhile: other threads run. Takes O(n log n).

        Raises:
            InputError: A column is empty, of another length, shape or type; a value is missing, negative or too
                large; times decrease; or all work together exceeds 1.8e16.
        """
        times = _columns.times(time, "time", unit)
        works = _columns.numbers(work, "work")
        _columns.same_length(works, "work", len(times))
        return cls._of(native.BurstCurve.from_columns(times, works))

    @classmethod
    def merge_all(cls, parts: Iterable[BurstCurve]) -> BurstCurve:
        """Merges the curves of consecutive parts, in order of time.

        Raises:
            InputError: There are no parts, or two of them overlap.
        """
        merged: Optional[BurstCurve] = None
        for part in parts:
            merged = part if merged is None else merged.merge(part)
        if merged is None:
            raise InputError("there are no curves to merge")
        return merged

    def merge(self, later: BurstCurve) -> BurstCurve:
        """Returns the curve of these requests followed by those of ``later``. The two may touch.

        Raises:
            InputError: ``later`` begins before this curve ends, or the total work is too large.
        """
        return self._of(self._native.merge(later._native))

    def __or__(self, later: object) -> BurstCurve:
        return self.merge(later) if isinstance(later, BurstCurve) else NotImplemented

    def shifted(self, by: _columns.Time) -> BurstCurve:
        """Returns the curve of the same requests, each later by this time: seconds, or text such as ``"1h"``."""
        return self._of(self._native.shifted(_columns.time_ns(by, "by")))

    @overload
    def burst(self, rate: float) -> float: ...

    @overload
    def burst(self, rate: npt.ArrayLike) -> Union[float, Floats]: ...

    def burst(self, rate: Any) -> Union[float, Floats]:
        """Returns b(rate), in units of work, rounded up: a number for a number, an array of its shape for an array.

        Args:
            rate: Units of work per second, at least 0.

        Raises:
            InputError: A rate is negative or not a number.
        """
        rates = np.asarray(rate, dtype=np.float64)
        bursts = self._native.burst(rates.reshape(-1))
        return float(bursts[0]) if rates.ndim == 0 else bursts.reshape(rates.shape)

    def work_within(self, duration: Any, *, unit: Optional[str] = None) -> Union[float, Floats]:
        """Returns the most work that arrives in any closed interval of this duration, by the hull, rounded up.

        Args:
            duration: A time, as a number of seconds or text, or a column of times as for :meth:`from_requests`.
            unit: As for :meth:`from_requests`.
        """
        if isinstance(duration, (str, float, int)):
            ns = np.array([_columns.time_ns(duration, "duration")], dtype=np.int64)
            return float(self._native.work_within(ns)[0])
        return self._native.work_within(_columns.times(duration, "duration", unit))

    def limits(self, count: Optional[int] = None) -> Floats:
        """Returns the token buckets of which the curve is the least, by falling rate.

        Args:
            count: At most this many, at least 1. The curve of fewer buckets lies above this one, by the least factor
                that this number allows.

        Returns:
            Array of shape (m, 2): rate in units per second, burst in units, rounded up. Each of them alone delays
            no request, and traffic within all of them has no larger burst at any rate. The last one has rate 0 and
            the total work as burst.
        """
        if count is not None and count < 1:
            raise InputError(f"count is {count}: expected at least 1")
        return np.column_stack(self._native.limits(count))

    def vertices(self) -> Tuple[Floats, Floats]:
        """Returns the corners of the hull: durations in seconds, rising from 0, and the most work within each."""
        return self._native.vertices()

    @property
    def count(self) -> int:
        """Number of requests, at least 1."""
        return self._native.count

    @property
    def total(self) -> float:
        """Work of all requests, in units."""
        return self._native.total

    @property
    def first(self) -> float:
        """Arrival of the first request, seconds; ``first_ns`` is exact."""
        return self._native.first_ns / 1e9

    @property
    def last(self) -> float:
        """Arrival of the last request, seconds; ``last_ns`` is exact."""
        return self._native.last_ns / 1e9

    @property
    def first_ns(self) -> int:
        """Arrival of the first request, nanoseconds."""
        return self._native.first_ns

    @property
    def last_ns(self) -> int:
        """Arrival of the last request, nanoseconds."""
        return self._native.last_ns

    def to_json(self) -> str:
        """Returns the curve as JSON of whole numbers, which :meth:`from_json` reads."""
        return self._native.to_json()

    @classmethod
    def from_json(cls, text: str) -> BurstCurve:
        """Reads what :meth:`to_json` wrote.

        Raises:
            InputError: The text is none, or no requests can have this curve.
        """
        return cls._of(native.BurstCurve.from_json(text))

    def to_bytes(self) -> bytes:
        """Returns the curve as bytes, a few hundred for most streams; equal curves have equal bytes."""
        return self._native.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> BurstCurve:
        """Reads what :meth:`to_bytes` wrote.

        Raises:
            InputError: The bytes are something else, damaged, or of another version; or no requests can have this
                curve.
        """
        return cls._of(native.BurstCurve.from_bytes(bytes(data)))

    def __reduce__(self) -> Tuple[Any, Tuple[bytes]]:
        return _read, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return self._native == other._native if isinstance(other, BurstCurve) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.count, self.first_ns, self.last_ns, self.total))

    def __repr__(self) -> str:
        corners = len(self.vertices()[0])
        return f"<BurstCurve of {self.count} requests in {self.last - self.first:.6g} s, {corners} corners>"


def _read(data: Union[bytes, str]) -> BurstCurve:
    """Reads a pickled curve; text is of earlier versions."""
    return BurstCurve.from_json(data) if isinstance(data, str) else BurstCurve.from_bytes(data)
