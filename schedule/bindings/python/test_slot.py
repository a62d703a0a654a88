"""The thread's slot of libtailwright_gat (TAILWRIGHT_GAT_LIBRARY) follows OpenTelemetry's context, where threads do the work."""

import asyncio
import ctypes
import os
import threading

from opentelemetry import baggage, context

from tailwright_gat_context import ThreadTaggingContext, _AbiTag

library = ctypes.CDLL(os.environ["TAILWRIGHT_GAT_LIBRARY"])


def slot():
    tag = _AbiTag()
    return (tag.start_ns, tag.deadline_ns) if library.tailwright_gat_current(ctypes.byref(tag)) else None


def of(start, deadline=None):
    ctx = baggage.set_baggage("tailwright-start", start, context.Context())
    return ctx if deadline is None else baggage.set_baggage("tailwright-deadline", deadline, ctx)


assert isinstance(context._RUNTIME_CONTEXT, ThreadTaggingContext)
assert slot() is None
outer = context.attach(of("5", "9"))
assert slot() == (5, 9)
inner = context.attach(of(str(2**64 - 1)))
assert slot() == (2**64 - 1, 0)
others = []


def other():
    others.append(slot())
    token = context.attach(of("7"))
    others.append(slot())
    context.detach(token)
    others.append(slot())


thread = threading.Thread(target=other)
thread.start()
thread.join()
assert others == [None, (7, 0), None], others
assert slot() == (2**64 - 1, 0)
wrong = context.attach(of("no number"))
assert slot() is None
context.detach(wrong)
context.detach(inner)
assert slot() == (5, 9)
context.detach(outer)
assert slot() is None


async def task():
    context.attach(of("8"))
    return slot()


assert asyncio.run(task()) is None, "tasks change without a call of the context"
