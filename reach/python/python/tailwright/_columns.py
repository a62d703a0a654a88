"""Columns of numbers as NumPy arrays, in place where their values can stay as they are.

A column is whatever ``numpy.asarray`` takes: an array, a pandas or Polars series, an Arrow array, a list. Objects that
only offer Arrow's stream (``__arrow_c_stream__``) go through pyarrow, where it is installed.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _tailwright as native
from ._errors import InputError

Array = npt.NDArray[Any]
#: A time: seconds as a number, or text such as ``"150ms"``.
Time = Union[float, str]

_NS_PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_INT64_MAX = 2**63 - 1


def array(values: Any, name: str) -> Array:
    """Returns the values as an array of one dimension, without a copy where they are one."""
    has_stream = hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    if has_stream and not hasattr(values, "__array__"):
        values = _from_arrow(values, name)
    column = np.asarray(values)
    if column.ndim != 1:
        raise InputError(f"{name} has the shape {column.shape}: expected one dimension, such as a column of a table")
    if not column.dtype.isnative:
        column = column.astype(column.dtype.newbyteorder("="))
    return column if column.flags.aligned else column.copy()


def _from_arrow(values: Any, name: str) -> Array:
    try:
        import pyarrow  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        raise InputError(f"{name} is an Arrow stream: expected a NumPy array, or pyarrow installed") from None
    make = pyarrow.chunked_array if hasattr(values, "__arrow_c_stream__") else pyarrow.array
    return np.asarray(make(values))


def _wrong_kind(column: Array, name: str, expected: str) -> InputError:
    hint = None
    if column.dtype.kind == "O":
        hint = "missing values make objects of numbers: drop or fill them; a column with a time zone loses it by .dt.tz_convert(None)"
    return InputError(f"{name} has the type {column.dtype}: expected {expected}", hint)


def times(values: Any, name: str, unit: Optional[str] = None) -> Array:
    """Returns float64 seconds or int64 nanoseconds."""
    if unit is not None and unit not in _NS_PER_UNIT:
        raise InputError(f"unit is {unit!r}: expected s, ms, us or ns")
    column = array(values, name)
    if column.dtype.kind in "Mm":
        if unit is not None:
            raise InputError(f"{name} has the type {column.dtype}, which has a unit: leave unit out")
        if np.isnat(column).any():
            raise InputError(f"{name}[{int(np.argmax(np.isnat(column)))}] is missing (NaT): expected a time")
        return column.astype(f"{column.dtype.kind}8[ns]", copy=False).view(np.int64)
    if column.dtype.kind == "f":
        seconds = column.astype(np.float64, copy=False)
        return seconds if unit in (None, "s") else seconds * (_NS_PER_UNIT[str(unit)] / 1e9)
    if column.dtype.kind in "iu":
        whole = _int64(column, name)
        scale = _NS_PER_UNIT[unit or "ns"]
        if scale == 1:
            return whole
        if whole.size and int(np.abs(whole).max()) > _INT64_MAX // scale:
            raise InputError(f"{name} has times beyond 292 years")
        return whole * scale
    raise _wrong_kind(column, name, "seconds as float64, nanoseconds as int64, or datetime64")


def numbers(values: Any, name: str) -> Array:
    """Returns float64 or int64."""
    column = array(values, name)
    if column.dtype.kind == "f":
        return column.astype(np.float64, copy=False)
    if column.dtype.kind in "iu":
        return _int64(column, name)
    raise _wrong_kind(column, name, "numbers")


def whole(values: Any, name: str, rows: int) -> Array:
    """Returns int64; one number stands for all rows."""
    if isinstance(values, (int, np.integer)) and not isinstance(values, bool):
        values = np.full(rows, values, dtype=np.int64)
    column = array(values, name)
    if column.dtype.kind not in "iu":
        raise _wrong_kind(column, name, "whole numbers")
    same_length(column, name, rows)
    return _int64(column, name)


def _int64(column: Array, name: str) -> Array:
    if column.dtype.kind == "u" and column.dtype.itemsize == 8 and column.size and int(column.max()) > _INT64_MAX:
        raise InputError(f"{name} has a number beyond 2^63")
    return column.astype(np.int64, copy=False)


def is_write(op: Any, rows: int) -> Array:
    """Returns True for each write, from "read" and "write", one for all rows or a column, or from booleans."""
    if isinstance(op, str):
        op = np.full(rows, op)
    column = array(op, "op")
    same_length(column, "op", rows)
    if column.dtype.kind == "b":
        return column
    if column.dtype.kind in "OUT":
        writes: Array = words(column, "op", ("read", "write")) == 1
        return writes
    raise _wrong_kind(column, "op", "'read' and 'write', or booleans that are true for writes")


def words(column: Array, name: str, known: Sequence[str]) -> Array:
    """Returns the number of each word among those that are known, as uint8."""
    numbers_of = np.full(column.shape, len(known), dtype=np.uint8)
    for number, word in enumerate(known):
        numbers_of[column == word] = number
    wrong = numbers_of == len(known)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"{name}[{row}] is {str(column[row])!r}: expected {' or '.join(known)}")
    return numbers_of


def same_length(column: Array, name: str, rows: int) -> None:
    """Refuses a column of another length."""
    if len(column) != rows:
        raise InputError(f"{name} has {len(column)} rows, and the times have {rows}")


def time_ns(value: Time, name: str) -> int:
    """Returns a single time in nanoseconds."""
    if isinstance(value, str):
        return native.time_ns(value)
    if not 0 <= value <= 1.8e10:
        raise InputError(f"{name} is {value!r}: expected seconds from 0 to 1.8e10, or text such as '150ms'")
    return round(value * 1e9)
