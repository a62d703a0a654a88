"""Settings of tailwright_gat_otel, what its propagator accepts, and other threads and tasks, without a server."""

import asyncio
import contextvars
import io
import json
import subprocess
import sys
import threading
import time
import wsgiref.handlers

from opentelemetry import baggage, context

import tailwright_gat as gat
import tailwright_gat_otel as otel
from tailwright_gat_context import tag_of


def refuses(function, *arguments):
    try:
        function(*arguments)
    except ValueError:
        return True
    return False


slo_ns_of = otel.slos_of_paths("/soon=50ms, /api/*=5s,/api/x=1us,/day=86400s")
for path, slo_ns in [("/soon", 5 * 10**7), ("/api/x", 5 * 10**9), ("/day", gat.SLO_NS_MAX), ("/", None), ("/soon/", None)]:
    assert slo_ns_of({"PATH_INFO": path}) == slo_ns, path
with open("../paths.json", encoding="utf-8") as file:
    cases = json.load(file)
assert len(cases) > 30
for case in cases:
    slo_ns = None if case["slo_ns"] is None else int(case["slo_ns"])
    for request in [{"PATH_INFO": case["path"].encode().decode("latin-1")}, {"path": case["path"]}]:
        assert otel.slos_of_paths(case["slos"])(request) == slo_ns, (case, request)
assert otel.slos_of_paths("/a=5s,/*=1s")({"PATH_INFO": "/\xff"}) == 5 * 10**9
assert otel.slos_of_paths("/a=5s,/*=1s")({}) == 5 * 10**9
ambiguous = ["//a=5s", "/%61=5s", "/a;b=5s", "/a/../*=5s"]
for wrong in ["/a=0s", "/a=86401s", "/a=5", "a=5s", "/a*b=5s", "/a=-5s", "/a=5s,/a=6s", "=5s", "/a", "/a=\u00b2s", *ambiguous]:
    assert refuses(otel.slos_of_paths, wrong), wrong
assert isinstance(otel.role_of({}), gat.InnerTier)
assert isinstance(otel.role_of({"TAILWRIGHT_ROLE": "edge", "TAILWRIGHT_SLOS": "/=1s"}), gat.Edge)
for wrong in [{"TAILWRIGHT_ROLE": "Edge"}, {"TAILWRIGHT_SLOS": "/=1s"}, {"TAILWRIGHT_ROLE": "edge", "TAILWRIGHT_SLOS": "x"}]:
    assert refuses(otel.role_of, wrong), wrong
wrong = subprocess.run(
    [sys.executable, "-B", "-c", "import tailwright_gat_otel; tailwright_gat_otel.switch_on()"],
    env={"TAILWRIGHT_HOSTS": "http://a"},
    capture_output=True,
)
assert wrong.returncode == 2 and b"'http://a' names no host" in wrong.stderr, wrong

now_ns = time.time_ns()
propagator = otel.AcceptedBaggagePropagator()
for value, accepted in [
    (f"tailwright-start={now_ns},user=7", True),
    (f"user=7,tailwright%2Dstart={now_ns}", False),
    ("tailwright-start=1,user=7", False),
    (f"tailwright%252Dstart={now_ns},user=7,+tailwright-deadline=5", False),
    ("user=7", False),
]:
    extracted = propagator.extract({"baggage": value}, context.Context())
    tag, sent = tag_of(extracted), {}
    assert (tag.start_ns == now_ns) == accepted and tag.deadline_ns is None, value
    assert set(baggage.get_all(extracted)) == {gat.START_KEY, "user"}, value
    propagator.inject(sent, extracted)
    assert sent == {"baggage": "user=7"}, value

# A thread that has OpenTelemetry's context has the tag; another has none.
gat.current_elsewhere = lambda: tag_of(context.get_current())
extracted = propagator.extract({"baggage": f"tailwright-start={now_ns}"}, context.Context())
found = []


def look(attached):
    token = context.attach(attached)
    found.append(gat.current())
    context.detach(token)
    found.append(gat.current())


thread = threading.Thread(target=look, args=(extracted,))
thread.start()
thread.join()
assert found == [gat.Tag(now_ns), None], found


async def task(start_ns):
    context.attach(baggage.set_baggage(gat.START_KEY, str(start_ns)))
    await asyncio.sleep(0)
    return gat.current()


async def tasks():
    return await asyncio.gather(task(5), task(6))


assert contextvars.copy_context().run(asyncio.run, tasks()) == [gat.Tag(5), gat.Tag(6)]

# An application in a server of wsgiref, without a change of it.
otel.switch_on()


def app(environ, start_response):
    start_response("200 OK", [("Baggage", "tailwright-start=1,reply=1"), ("Content-Type", "text/plain")])
    return [environ["HTTP_BAGGAGE"].encode(), b" ", str(gat.current().start_ns).encode()]


accepted = otel.role().counts()["accepted"]
written = io.BytesIO()
environ = {"HTTP_BAGGAGE": f"tailwright-start={now_ns},user=7", "REQUEST_METHOD": "GET", "SERVER_PROTOCOL": "HTTP/1.0"}
wsgiref.handlers.SimpleHandler(io.BytesIO(), written, sys.stderr, environ).run(app)
head, _, body = written.getvalue().decode().partition("\r\n\r\n")
assert body == f"tailwright-start={now_ns},user=7 {now_ns}", body
assert "baggage: reply=1" in head and "tailwright" not in head, head
assert otel.role().counts()["accepted"] == accepted + 1, otel.role().counts()
