"""OpenTelemetry's context (OTEL_PYTHON_CONTEXT=tailwright_context), which tells libtailwright_gat what a thread works for."""

import asyncio
import ctypes
import os
import threading

from opentelemetry.context.contextvars_context import ContextVarsRuntimeContext

import tailwright_gat


def tag_of(ctx):
    """The tag in OpenTelemetry's baggage, which AcceptedBaggagePropagator has put there; None without one."""
    from opentelemetry import baggage  # It needs the context, which is what is being made when this file is imported.

    entries = baggage.get_all(ctx)
    if tailwright_gat.START_KEY not in entries:
        return None
    values = [f"{key}={entries[key]}" for key in (tailwright_gat.START_KEY, tailwright_gat.DEADLINE_KEY) if key in entries]
    try:
        return tailwright_gat.read(values)
    except tailwright_gat.Malformed:
        return None


class _AbiTag(ctypes.Structure):
    _fields_ = [("start_ns", ctypes.c_uint64), ("deadline_ns", ctypes.c_uint64)]


def _library():
    """libtailwright_gat, which tells the kernel's scheduler what a thread works for; None where it is not installed."""
    named = os.environ.get("TAILWRIGHT_GAT_LIBRARY")
    try:
        library = ctypes.CDLL(named or "libtailwright_gat.so")
    except OSError as error:
        if named is None:
            return None
        os.write(2, f"tailwright_gat: TAILWRIGHT_GAT_LIBRARY: {error}\n".encode())
        os._exit(2)
    library.tailwright_gat_set_current.argtypes = [ctypes.POINTER(_AbiTag)]
    library.tailwright_gat_set_current.restype = None
    return library


class ThreadTaggingContext(ContextVarsRuntimeContext):
    """OpenTelemetry's context; where it is attached and detached, the thread's slot of libtailwright_gat follows.

    Tasks of asyncio change without that: threads with an event loop have no tag.
    """

    def __init__(self):
        super().__init__()
        self._set_current = getattr(_library(), "tailwright_gat_set_current", None)
        self._thread = threading.local()

    def attach(self, context):
        token = super().attach(context)
        self._tag_thread()
        return token

    def detach(self, token):
        super().detach(token)
        self._tag_thread()

    def _tag_thread(self):
        if self._set_current is None:
            return
        tag = None if asyncio._get_running_loop() is not None else tag_of(self.get_current())
        if tag != getattr(self._thread, "tag", None):
            self._thread.tag = tag
            self._set_current(None if tag is None else _AbiTag(tag.start_ns, tag.deadline_ns or 0))
