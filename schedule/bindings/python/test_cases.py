"""The cases that every language has to get right, and what servers of Python hand over."""

import asyncio
import io
import json
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

import tailwright_gat as gat


def read(values):
    try:
        tag = gat.read(values)
    except gat.Malformed:
        return "malformed"
    due = tag and tag.deadline_ns
    return tag and [str(tag.start_ns), None if due is None else str(due)]


with open("../cases.json", encoding="utf-8") as file:
    cases = json.load(file)
assert len(cases) > 30
for case in cases:
    values = case["values"]
    stripped = gat.strip(values)
    change = "keep" if stripped == values else stripped[0] if stripped else "remove"
    written = gat.write(values, gat.Tag(1_700_000_000_000_000_000))
    assert (read(values), change, written) == (case["read"], case["strip"], case["written"]), case

with open("../hosts.json", encoding="utf-8") as file:
    for case in json.load(file):
        try:
            domain = gat.Domain(case["patterns"])
        except ValueError:
            domain = None
        assert (domain is None) == case.get("error", False), case
        assert domain is None or domain.contains(case["host"]) == case["contains"], case

with open("../received.json", encoding="utf-8") as file:
    received = json.load(file)
assert len(received) > 10
for case in received:
    tier = gat.InnerTier(clock_ns=lambda: 1_700_000_000_000_000_000)
    tag = tier.receive(case["values"])
    due = None if tag.deadline_ns is None else str(tag.deadline_ns)
    assert [str(tag.start_ns), due] == case["tag"] and tier.counts()[case["case"]] == 1, case

for slo_ns in [0, -1, gat.SLO_NS_MAX + 1, 0.5, True, "1"]:
    for refused in [lambda: gat.Edge(slo_ns), lambda: gat.Edge(slo_ns_of=lambda _: slo_ns).receive([])]:
        try:
            refused()
        except ValueError:
            continue
        raise AssertionError(slo_ns)


# A line of a header that goes on in the next one, through a server of wsgiref.
class Connection:
    def __init__(self, request):
        self._request, self.written = request, b""

    def makefile(self, *_):
        return io.BytesIO(self._request)

    def sendall(self, piece):
        self.written += piece


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


def show(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [environ["HTTP_BAGGAGE"].encode("latin-1")]


server = WSGIServer(("127.0.0.1", 0), Quiet, bind_and_activate=False)
server.server_name, server.server_port = "a", 80
server.setup_environ()
for line in ["user=7,tailwright-start=1700000000000000000", "user=7,\r\n\t tailwright-start\r\n =1700000000000000000\r\n "]:
    tier = gat.InnerTier(clock_ns=lambda: 1_700_000_000_000_000_000)
    server.set_app(gat.Wsgi(show, tier))
    connection = Connection(f"GET / HTTP/1.1\r\nHost: a\r\nBaggage: {line}\r\n\r\n".encode())
    Quiet(connection, ("127.0.0.1", 1), server)
    assert connection.written.endswith(b"\r\n\r\ntailwright-start=1700000000000000000,user=7"), connection.written
    assert tier.counts()["accepted"] == 1, tier.counts()

# A scope of ASGI may have no headers.
for scope in [{"type": "http"}, {"type": "websocket", "headers": None}, {"type": "http", "headers": []}]:
    seen = []

    async def app(scope, receive, send):
        seen.append((gat.current(), scope["headers"]))

    asyncio.run(gat.Asgi(app)(scope, None, None))
    [(tag, headers)] = seen
    assert headers == [(b"baggage", f"tailwright-start={tag.start_ns}".encode())], scope
