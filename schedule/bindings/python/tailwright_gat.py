"""Carries the start of a request from the edge to every service on its way, in the W3C `baggage` header.

A service behind the edge wraps its application and switches on the hook of `http.client`, which urllib, requests and
urllib3 use:

    import tailwright_gat
    tailwright_gat.hook_http_client("store,*.svc.cluster.local")
    app = tailwright_gat.Wsgi(app)        # Asgi(app) for ASGI

The entry point says `Wsgi(app, Edge())`. `current()` is the tag of the request that this thread or task works for: what
a queue inside the service orders by. Values of headers are text whose characters stand for bytes (Latin-1), as in WSGI.
"""

import contextvars
import dataclasses
import http.client
import ipaddress
import re
import string
import threading
import time
from typing import Optional

START_KEY = "tailwright-start"
DEADLINE_KEY = "tailwright-deadline"
# A day: what is longer is a mistake of a unit.
SLO_NS_MAX = 86400 * 10**9
BYTES_MAX = 8192
MEMBERS_MAX = 180
NS_MAX = 2**64 - 1
_HEX = re.compile("[0-9A-Fa-f]{2}")
_FOLD = re.compile("\r?\n")

# Where WSGI applications find the tag of their request in the environ.
ENVIRON_KEY = "tailwright.gat.tag"

_current: contextvars.ContextVar = contextvars.ContextVar("tailwright_gat", default=None)

# A function that knows the tag where the context variable has none: what carries contexts to other threads may carry tags.
current_elsewhere = None


@dataclasses.dataclass(frozen=True)
class Tag:
    """When a request entered, and when its answer is due: nanoseconds of CLOCK_REALTIME since 1970."""

    start_ns: int
    deadline_ns: Optional[int] = None


class Malformed(ValueError):
    """Something with our name is no tag."""


def current() -> Optional[Tag]:
    """The tag of the request that this thread or task works for; None outside of requests."""
    return _current.get() or (current_elsewhere and current_elsewhere())


def members(values):
    """The members of header values in order, without the white space around them; empty ones are left out."""
    pieces = (piece.strip(" \t") for value in values for piece in value.split(","))
    return [piece for piece in pieces if piece]


def read(values) -> Optional[Tag]:
    """The tag in the values of all `baggage` headers of a request; None without one. Raises Malformed."""
    start_ns = deadline_ns = None
    for member in members(values):
        key, equals, value = member.partition("=")
        key, value = key.strip(" \t"), value.partition(";")[0].strip(" \t")
        if equals and key == START_KEY:
            start_ns = _once(start_ns, _number(value, 0))
        elif equals and key == DEADLINE_KEY:
            deadline_ns = _once(deadline_ns, _number(value, 1))
    if start_ns is None and deadline_ns is not None:
        raise Malformed("a deadline without a start")
    return None if start_ns is None else Tag(start_ns, deadline_ns)


def write(values, tag: Tag) -> str:
    """The one value that takes the place of all: this tag, then all that is not ours, as far as 8192 bytes and 180 members go."""
    kept = [f"{START_KEY}={tag.start_ns}"]
    if tag.deadline_ns is not None:
        kept.append(f"{DEADLINE_KEY}={tag.deadline_ns}")
    length = len(",".join(kept))
    for member in _others(values):
        if len(kept) == MEMBERS_MAX or length + 1 + len(member) > BYTES_MAX:
            break
        length += 1 + len(member)
        kept.append(member)
    return ",".join(kept)


def strip(values) -> list:
    """The values without anything of ours, and without what some library might take for it."""
    values = list(values)
    others = _others(values)
    if len(others) == len(members(values)):
        return values
    return [",".join(others)] if others else []


def _others(values):
    return [member for member in members(values) if not _is_ours(member)]


def _is_ours(member):
    raw = re.split("[=;]", member, maxsplit=1)[0].strip(" \t")
    return _folded(raw) in (START_KEY, DEADLINE_KEY)


def _folded(key):
    """Lower case; what is percent-encoded is decoded, in as many layers as there are, and what libraries trim is left out."""
    if not re.fullmatch(r"[A-Za-z0-9._-]*", key):
        decoded = []
        for c in key:
            decoded.append(c)
            # What is decoded may complete the code before it.
            while len(decoded) > 2 and decoded[-3] == "%" and _HEX.fullmatch("".join(decoded[-2:])):
                decoded[-3:] = chr(int("".join(decoded[-2:]), 16))
        key = "".join(c for c in decoded if "!" <= c <= "~" and c != "+")
    return key.lower()


def _number(digits, least):
    if not re.fullmatch("[0-9]{1,20}", digits) or not least <= int(digits) <= NS_MAX:
        raise Malformed(f"{digits!r} is no number of nanoseconds")
    return int(digits)


def _once(former, value):
    if former not in (None, value):
        raise Malformed("two members of one name differ")
    return value


class Edge:
    """Stamps requests from outside, whatever tags they carry. Starts increase strictly.

    The SLO is one for all requests, `slo_ns`, or that of the class of a request: `slo_ns_of(request)` is called with WSGI's
    environ or ASGI's scope, and gives nanoseconds, or None for a request without a deadline. An SLO is a whole number of
    nanoseconds above zero and at most a day; any other is a ValueError.
    """

    def __init__(self, slo_ns: Optional[int] = None, clock_ns=time.time_ns, slo_ns_of=None):
        if slo_ns is not None and slo_ns_of is not None:
            raise ValueError("slo_ns and slo_ns_of; expected one of them")
        self._slo_ns, self._slo_ns_of, self._clock_ns = _checked_slo(slo_ns), slo_ns_of, clock_ns
        self._last_ns, self._lock = 0, threading.Lock()

    def receive(self, values, request=None) -> Tag:
        """The tag of a request that enters now."""
        with self._lock:
            self._last_ns = start_ns = max(self._last_ns + 1, self._clock_ns())
        slo_ns = self._slo_ns if self._slo_ns_of is None else _checked_slo(self._slo_ns_of(request))
        return Tag(start_ns, None if slo_ns is None else start_ns + slo_ns)


def _checked_slo(slo_ns):
    is_whole = isinstance(slo_ns, int) and not isinstance(slo_ns, bool)
    if slo_ns is not None and not (is_whole and 0 < slo_ns <= SLO_NS_MAX):
        raise ValueError(f"an SLO of {slo_ns} ns; expected a whole number, more than zero, and at most a day")
    return slo_ns


class InnerTier:
    """Accepts tags as far as clocks may err, and counts the cases. Without a tag a request starts at its arrival."""

    CASES = ("accepted", "untagged", "malformed", "future", "too_old", "deadline_before_start", "deadline_too_far")

    def __init__(self, ahead_ns_max=10**9, age_ns_max=3600 * 10**9, slo_ns_max=SLO_NS_MAX, clock_ns=time.time_ns):
        self._ahead_ns_max, self._age_ns_max, self._slo_ns_max = ahead_ns_max, age_ns_max, slo_ns_max
        self._clock_ns = clock_ns
        self._counts, self._lock = dict.fromkeys(self.CASES, 0), threading.Lock()

    def counts(self) -> dict:
        """How often each case occurred."""
        with self._lock:
            return dict(self._counts)

    def receive(self, values, request=None) -> Tag:
        """The tag by which a request is served here, and which its calls to other services carry."""
        tag, case = self._judge(values, self._clock_ns())
        with self._lock:
            self._counts[case] += 1
        return tag

    def _judge(self, values, now_ns):
        try:
            tag = read(values)
        except Malformed:
            return Tag(now_ns), "malformed"
        oldest_ns = max(0, now_ns - self._age_ns_max)
        if tag is None:
            return Tag(now_ns), "untagged"
        if tag.start_ns > now_ns + self._ahead_ns_max:
            return Tag(now_ns), "future"
        due = tag.deadline_ns
        if tag.start_ns < oldest_ns:
            possible = due is not None and oldest_ns <= due <= oldest_ns + self._slo_ns_max
            return Tag(oldest_ns, due if possible else None), "too_old"
        if due is not None and due < tag.start_ns:
            return Tag(tag.start_ns), "deadline_before_start"
        if due is not None and due > tag.start_ns + self._slo_ns_max:
            return Tag(tag.start_ns), "deadline_too_far"
        return tag, "accepted"


class Wsgi:
    """A WSGI application whose requests have a current tag, in headers, too, and whose replies have none."""

    def __init__(self, app, role=None):
        self._app, self._role = app, role or InnerTier()

    def __call__(self, environ, start_response):
        # A header may go on in further lines, which servers leave in its value.
        values = [_FOLD.sub(" ", environ["HTTP_BAGGAGE"])] if "HTTP_BAGGAGE" in environ else []
        tag = self._role.receive(values, environ)
        environ["HTTP_BAGGAGE"] = write(values, tag)
        environ[ENVIRON_KEY] = tag
        context = contextvars.copy_context()
        context.run(_current.set, tag)

        def start(status, headers, *rest):
            return start_response(status, _stripped_pairs(headers, "baggage"), *rest)

        body = context.run(self._app, environ, start)
        # Servers know the length of a list, and send files by themselves: there is nothing to run for these.
        wrapper = environ.get("wsgi.file_wrapper")
        is_made = isinstance(body, (list, tuple)) or (isinstance(wrapper, type) and isinstance(body, wrapper))
        return body if is_made else _ContextIterator(context, body)


class _ContextIterator:
    """Makes the body in the context of its request."""

    def __init__(self, context, body):
        self._context, self._body, self._iterator = context, body, None

    def __iter__(self):
        return self

    def __next__(self):
        if self._iterator is None:
            self._iterator = self._context.run(iter, self._body)
        return self._context.run(next, self._iterator)

    def close(self):
        if hasattr(self._body, "close"):
            self._context.run(self._body.close)


class Asgi:
    """The same for ASGI: HTTP requests and WebSockets."""

    def __init__(self, app, role=None):
        self._app, self._role = app, role or InnerTier()

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            return await self._app(scope, receive, send)
        pairs = scope.get("headers") or []
        values = [value.decode("latin-1") for name, value in pairs if name.lower() == b"baggage"]
        tag = self._role.receive(values, scope)
        others = [(name, value) for name, value in pairs if name.lower() != b"baggage"]
        others.append((b"baggage", write(values, tag).encode("latin-1")))

        async def stripped_send(message):
            if "headers" in message:
                pairs = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in message["headers"]]
                encoded = ((n.encode("latin-1"), v.encode("latin-1")) for n, v in _stripped_pairs(pairs, "baggage"))
                message = {**message, "headers": list(encoded)}
            await send(message)

        token = _current.set(tag)
        try:
            await self._app({**scope, "headers": others}, receive, stripped_send)
        finally:
            _current.reset(token)


def _stripped_pairs(pairs, name):
    values = [value for key, value in pairs if key.lower() == name]
    others = [(key, value) for key, value in pairs if key.lower() != name]
    return others + [(name, value) for value in strip(values)]


class Domain:
    """Hosts that may see tags: names, addresses and *.SUFFIX, separated by commas; `*` is every host."""

    def __init__(self, patterns: str):
        self._patterns = [_pattern(text.strip()) for text in patterns.split(",") if text.strip()]

    def contains(self, host: str) -> bool:
        """Whether a host, without a port, may see tags."""
        name = _host(host)
        return bool(name) and any(
            pattern in ("*", name) or (pattern.startswith(".") and name.endswith(pattern) and name != pattern)
            for pattern in self._patterns
        )


def _pattern(text):
    if text == "*":
        return text
    name = _host(text[2:] if text.startswith("*.") else text)
    if not name or name.startswith(".") or set(name) - set(string.ascii_letters + string.digits + "-_.:") or (":" in name and not _ipv6(name)):
        raise ValueError(f"{text!r} names no host: expected a name, an address, or *.SUFFIX, without scheme, port or path")
    return f".{name}" if text.startswith("*.") else name


def _ipv6(name):
    try:
        return ipaddress.IPv6Address(name)
    except ValueError:
        return None


def _host(host):
    """Without brackets and the final dot, in lower case, and addresses of IPv6 in one spelling."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    name = bare.removesuffix(".").lower()
    return str(_ipv6(name) or name)


# A target that a proxy is asked for, and its host, if all read it the same way.
_IS_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_URL = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*://(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]*)?(?:[/?#]|\Z)"
)

_hook_lock = threading.Lock()
_domain: Optional[Domain] = None


def hook_http_client(hosts: str) -> None:
    """From now on calls by http.client to these hosts carry the current tag, and calls to others no tag at all.

    Raises ValueError when a pattern names no host. Called again, it changes the hosts.
    """
    global _domain
    with _hook_lock:
        is_first, _domain = _domain is None, Domain(hosts)
        if is_first:
            _wrap_http_client()


def _wrap_http_client():
    connection = http.client.HTTPConnection
    putrequest, putheader, endheaders = connection.putrequest, connection.putheader, connection.endheaders

    def wrapped_putrequest(self, method, url, *args, **kwargs):
        result = putrequest(self, method, url, *args, **kwargs)
        self._tailwright_target = _target_host(str(url))
        self._tailwright_values = []
        return result

    def wrapped_putheader(self, header, *values):
        name = header.decode("latin-1") if isinstance(header, bytes) else header
        held = getattr(self, "_tailwright_values", None)
        if held is None or name.strip().lower() != "baggage":
            return putheader(self, header, *values)
        texts = (value.decode("latin-1") if isinstance(value, bytes) else str(value) for value in values)
        held.extend(texts)

    def wrapped_endheaders(self, *args, **kwargs):
        held, self._tailwright_values = getattr(self, "_tailwright_values", None), None
        if held is not None:
            for value in outgoing(held, self._tunnel_host or self.host, self._tailwright_target):
                putheader(self, "baggage", value.encode("latin-1"))
        return endheaders(self, *args, **kwargs)

    connection.putrequest, connection.putheader = wrapped_putrequest, wrapped_putheader
    connection.endheaders = wrapped_endheaders


def _target_host(target):
    """The host of the URL that a proxy is asked for; None for a path, and no host at all where it is not sure."""
    match = _URL.match(target)
    return match[1] if match else "" if _IS_URL.match(target) else None


def outgoing(values, host: str, target: Optional[str] = None) -> list:
    """The `baggage` values of a call to `host` whose own ones are `values`; for clients other than http.client.

    If the call asks a proxy for a URL, `target` is the host of the URL; both have to be inside.
    """
    if _domain is None or not _domain.contains(host) or not (target is None or _domain.contains(target)):
        return strip(values)
    tag = current()
    return list(values) if tag is None else [write(values, tag)]
