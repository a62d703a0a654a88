"""Footprints: burst curves of requests at every stage of a server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional, Tuple, Union

from . import _columns
from . import _tailwright as native
from ._cluster import PathLike
from ._curve import BurstCurve
from ._errors import InputError


class Device:
    """A device profile that was read: an SSD, whose work depends on operation and size."""

    __slots__ = ("_native", "_text")
    _native: native.Device
    _text: str

    def __init__(self, text: str) -> None:
        self._native = native.Device.from_json(text)
        self._text = text

    @classmethod
    def read(cls, path: PathLike) -> Device:
        """Reads a file that ``tailwright profile`` wrote, or another one as docs/reference/profile.md describes.

        Raises:
            InputError: The file cannot be read or is no profile.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{os.fspath(path)}: {error}") from None
        try:
            return cls(text)
        except InputError as error:
            raise InputError(f"{os.fspath(path)}: {error.message}", error.hint) from None

    def __reduce__(self) -> Tuple[Any, Tuple[str]]:
        return Device, (self._text,)


class Footprint:
    """Burst curves of the same requests at every stage of a server, and the extremes that bounds depend on.

    It is what :func:`plan` keeps of a trace, and a file of it (:meth:`write`) stands in the place of one in a cluster.
    Footprints of consecutive parts of a trace merge to that of the whole, bit for bit: ``a | b``.
    """

    __slots__ = ("_native",)
    _native: native.Footprint

    def __init__(self) -> None:
        raise TypeError("use Footprint.from_requests or Footprint.from_bytes")

    @classmethod
    def _of(cls, footprint: native.Footprint) -> Footprint:
        created = cls.__new__(cls)
        created._native = footprint
        return created

    @classmethod
    def from_requests(
        cls,
        time: Any,
        size: Any,
        op: Any = "read",
        *,
        storage: Union[Device, PathLike],
        unit: Optional[str] = None,
    ) -> Footprint:
        """Computes the footprint of requests on servers with a device.

        Args:
            time: As for :meth:`BurstCurve.from_requests`.
            size: Bytes of each request as whole numbers, shape (n,), or one number for all.
            op: ``"read"``, ``"write"``, a column of these, or booleans that are true for writes.
            storage: Device profile, or its file.
            unit: As for :meth:`BurstCurve.from_requests`.

        Raises:
            InputError: As for :meth:`BurstCurve.from_requests`; or the device is a disk, where the time of a request
                depends on the one before.
        """
        device = storage if isinstance(storage, Device) else Device.read(storage)
        times = _columns.times(time, "time", unit)
        sizes = _columns.whole(size, "size", len(times))
        writes = _columns.is_write(op, len(times))
        return cls._of(native.Footprint.from_columns(times, sizes, writes, device._native))

    def merge(self, later: Footprint) -> Footprint:
        """Returns the footprint of these requests followed by those of ``later``. The two may touch.

        Raises:
            InputError: ``later`` begins before this one ends, or was made for another device.
        """
        return self._of(self._native.merge(later._native))

    def __or__(self, later: object) -> Footprint:
        return self.merge(later) if isinstance(later, Footprint) else NotImplemented

    @property
    def network_in(self) -> BurstCurve:
        """Bytes into the server."""
        return BurstCurve._of(self._native.curves()[0])

    @property
    def storage(self) -> BurstCurve:
        """Nanoseconds of device time."""
        return BurstCurve._of(self._native.curves()[1])

    @property
    def network_out(self) -> BurstCurve:
        """Bytes out of the server."""
        return BurstCurve._of(self._native.curves()[2])

    def to_bytes(self) -> bytes:
        """Returns the footprint as bytes, which are equal for equal footprints."""
        return self._native.to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Footprint:
        """Reads what :meth:`to_bytes` wrote.

        Raises:
            InputError: The bytes are something else, damaged, or of another version.
        """
        return cls._of(native.Footprint.from_bytes(bytes(data)))

    def write(self, path: PathLike) -> None:
        """Writes a file that a cluster may name as ``trace``, for servers with the same device."""
        Path(path).write_bytes(self.to_bytes())

    def __reduce__(self) -> Tuple[Any, Tuple[bytes]]:
        return Footprint.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return self._native == other._native if isinstance(other, Footprint) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        curve = self.network_in
        return f"<Footprint of {curve.count} requests in {curve.last - curve.first:.6g} s>"
