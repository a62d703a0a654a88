"""The gate of libtailwright_schedule_abi for threads of Python. A call gives other threads Python's own lock meanwhile."""

import contextlib
import ctypes

_BY_ARRIVAL, _ADMISSION_ONLY = 1, 2
_PATIENCE_NS = 10**9


class _Settings(ctypes.Structure):
    _fields_ = [
        ("limit", ctypes.c_uint32),
        ("workers", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("patience_ns", ctypes.c_uint64),
        ("sentinel_ns", ctypes.c_uint64),
    ]


class Gate:
    """Admits the oldest requests, or those that came first. No thread is demoted: one that has Python's lock and no CPU
    would hold up all others."""

    def __init__(self, library, limit, by_arrival):
        self._abi = ctypes.CDLL(library)
        if self._abi.tailwright_schedule_abi() != 1:
            raise OSError(f"{library}: expected version 1 of its interface")
        self._abi.tailwright_gate_new.restype = ctypes.c_void_p
        self._abi.tailwright_gate_enter.restype = ctypes.c_void_p
        self._abi.tailwright_gate_enter.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
        self._abi.tailwright_permit_leave.argtypes = [ctypes.c_void_p]
        flags = _ADMISSION_ONLY | (_BY_ARRIVAL if by_arrival else 0)
        settings = _Settings(limit, 1, flags, _PATIENCE_NS, 0)
        self._gate = self._abi.tailwright_gate_new(ctypes.byref(settings))

    @contextlib.contextmanager
    def entered(self, key_ns):
        """Waits until the request with this key may run; it leaves at the end."""
        permit = self._abi.tailwright_gate_enter(self._gate, key_ns, 0)
        try:
            yield
        finally:
            self._abi.tailwright_permit_leave(permit)
