"""tailwright_gat for services that opentelemetry-instrument starts, without a change of code:

    TAILWRIGHT_HOSTS='store,*.svc.cluster.local' OTEL_PROPAGATORS=tracecontext,tailwright_baggage \
    OTEL_PYTHON_CONTEXT=tailwright_context opentelemetry-instrument python service.py

The entry point adds TAILWRIGHT_ROLE=edge, and TAILWRIGHT_SLOS='/search=50ms,/api/*=5s' for deadlines by path. Requests of Flask
and of servers of wsgiref are wrapped as tailwright_gat.Wsgi does it. OpenTelemetry carries its baggage, and with it the tag that
was accepted, to other threads and tasks; http.client sends it to those hosts alone.
"""

import os
import re
import wsgiref.handlers

from opentelemetry import baggage, context
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators import textmap

import tailwright_gat
from tailwright_gat_context import tag_of

_UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
_SLO = re.compile(r"(/[^*=]*)(\*?)=([0-9]{1,18})(ns|us|ms|s)")
# No slash at the begin, an empty segment that is not the last, dots alone, and what may be decoded or cut off once more.
_AMBIGUOUS = re.compile(r"\A(?!/)|//|/\.\.?(?:/|\Z)|[;%\\\x00-\x1f\x7f\ufffd]")


def slos_of_paths(text):
    """A function for Edge(slo_ns_of=...) from `/search=50ms,/api/*=5s`; the first that matches counts. Raises ValueError.

    Paths are decoded. One that a part of the service may read as another path has the longest SLO, so that no spelling buys a
    shorter one; none is the longest, where not every path has one.
    """
    entries = []
    for piece in filter(None, (piece.strip() for piece in text.split(","))):
        match = _SLO.fullmatch(piece)
        if match is None:
            raise ValueError(f"{piece!r} is no SLO: expected PATH=TIME, for example /search=50ms or /api/*=5s")
        path, star, number, unit = match.groups()
        slo_ns = int(number) * _UNITS_NS[unit]
        if not 0 < slo_ns <= tailwright_gat.SLO_NS_MAX:
            raise ValueError(f"{piece!r}: expected an SLO of more than zero and at most a day")
        if _AMBIGUOUS.search(path + star):
            raise ValueError(f"{piece!r}: expected a decoded path without //, /./, /../, ; % and \\")
        if any(entry[:2] == (path, star) for entry in entries):
            raise ValueError(f"{piece!r}: the path has two SLOs")
        entries.append((path, star, slo_ns))

    covers_all = any(entry[:2] == ("/", "*") for entry in entries)
    longest_ns = max(ns for _, _, ns in entries) if covers_all else None

    def slo_ns_of(request):
        asked = _decoded_path(request)
        if _AMBIGUOUS.search(asked):
            return longest_ns
        return next((ns for path, star, ns in entries if (asked.startswith(path) if star else asked == path)), None)

    return slo_ns_of


def _decoded_path(request):
    """The path of WSGI's environ, whose characters are bytes, or of ASGI's scope."""
    if "PATH_INFO" in request:
        return request["PATH_INFO"].encode("latin-1", "replace").decode("utf-8", "replace")
    return request.get("path") or ""


def role_of(environment):
    """The Edge or InnerTier that TAILWRIGHT_ROLE and TAILWRIGHT_SLOS say. Raises ValueError."""
    name, slos = environment.get("TAILWRIGHT_ROLE", "inner"), environment.get("TAILWRIGHT_SLOS")
    if name not in ("edge", "inner"):
        raise ValueError(f"TAILWRIGHT_ROLE is {name!r}: expected edge or inner")
    if name == "edge":
        return tailwright_gat.Edge(slo_ns_of=slos_of_paths(slos or ""))
    if slos is not None:
        raise ValueError("TAILWRIGHT_SLOS needs TAILWRIGHT_ROLE=edge")
    return tailwright_gat.InnerTier()


_role = None


def role():
    """The one role of this process, which also counts."""
    global _role
    if _role is None:
        _role = role_of(os.environ)
    return _role


def switch_on():
    """Wraps applications and calls. OpenTelemetry logs an error of an entry point and goes on; a wrong setting ends the program."""
    try:
        role()
        tailwright_gat.hook_http_client(os.environ.get("TAILWRIGHT_HOSTS", ""))
    except ValueError as error:
        os.write(2, f"tailwright_gat: {error}\n".encode())
        os._exit(2)
    tailwright_gat.current_elsewhere = lambda: tag_of(context.get_current())
    _wrap_wsgiref()
    _wrap_flask()


def _admitted(app, environ, start_response):
    """One wrapper of several decides."""
    if tailwright_gat.ENVIRON_KEY in environ:
        return app(environ, start_response)
    return tailwright_gat.Wsgi(app, role())(environ, start_response)


def _wrap_wsgiref():
    handler = wsgiref.handlers.BaseHandler
    run = handler.run

    def wrapped(self, application):
        return run(self, lambda environ, start_response: _admitted(application, environ, start_response))

    handler.run = wrapped


def _wrap_flask():
    try:
        from flask import Flask
    except ImportError:
        return
    call = Flask.__call__

    def wrapped(self, environ, start_response):
        return _admitted(lambda *args: call(self, *args), environ, start_response)

    Flask.__call__ = wrapped


class AcceptedBaggagePropagator(W3CBaggagePropagator):
    """OpenTelemetry's baggage, with the tag that is accepted in the place of the one that came."""

    def extract(self, carrier, context=None, getter=textmap.default_getter):
        tag = carrier.get(tailwright_gat.ENVIRON_KEY) if isinstance(carrier, dict) else None
        if not isinstance(tag, tailwright_gat.Tag):
            request = carrier if isinstance(carrier, dict) else {}
            tag = role().receive(getter.get(carrier, "baggage") or [], request)
        extracted = super().extract(carrier, context, getter)
        for name in list(baggage.get_all(extracted)):
            if not tailwright_gat.strip([f"{name}=1"]):
                extracted = baggage.remove_baggage(name, extracted)
        extracted = baggage.set_baggage(tailwright_gat.START_KEY, str(tag.start_ns), extracted)
        if tag.deadline_ns is not None:
            extracted = baggage.set_baggage(tailwright_gat.DEADLINE_KEY, str(tag.deadline_ns), extracted)
        return extracted

    def inject(self, carrier, context=None, setter=textmap.default_setter):
        """Without the tag: who is called is not known here. http.client adds it for the hosts that may see it."""
        entries = baggage.get_all(context)
        for name in (tailwright_gat.START_KEY, tailwright_gat.DEADLINE_KEY):
            if name in entries:
                context = baggage.remove_baggage(name, context)
        super().inject(carrier, context, setter)
