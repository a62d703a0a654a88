"""A stage as a service: stage.py blur|classify CPU MODE C LIBRARY [URL of the next]. Prints its port; ends with its input."""

import http.client
import json
import os
import pathlib
import socketserver
import sys
import threading
import time
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "schedule" / "bindings" / "python"))

import cv2
import tailwright_gat
import work
from gate import Gate

role, cpu, mode, c, library, *following = sys.argv[1:]
os.sched_setaffinity(0, {int(cpu)})
cv2.setNumThreads(1)
tailwright_gat.hook_http_client("127.0.0.1")
limits = {"fair": 0, "fcfs": 1, "limited": int(c), "orf-admission": int(c)}
gate = Gate(library, limits[mode], by_arrival=mode != "orf-admission")
work_of_role = work.blur if role == "blur" else work.Classifier().flipped


def next_stage(body):
    """Calls the next service, which the tag of the request goes along with."""
    connection = http.client.HTTPConnection("127.0.0.1", int(following[0]))
    try:
        connection.request("POST", "/", body)
        reply = connection.getresponse()
        answer = reply.read()
        return answer if reply.status == 200 else None
    finally:
        connection.close()


def service(environ, start_response):
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    try:
        with gate.entered(tailwright_gat.current().start_ns):
            begun = time.thread_time_ns()
            done = work_of_role(body)
            spent = time.thread_time_ns() - begun
    except ValueError as error:
        start_response("400 Bad Request", [("Content-Type", "text/plain")])
        return [str(error).encode()]
    if following:
        # A request that waits for the next stage is not in service here.
        answer = next_stage(done)
        if answer is None:
            start_response("502 Bad Gateway", [("Content-Type", "text/plain")])
            return [b"the next stage failed"]
        answer = json.loads(answer)
    else:
        answer = {"flipped": done, "work_ns": []}
    answer["work_ns"].insert(0, spent)
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(answer).encode()]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class ThreadPerRequest(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 1024

    def handle_error(self, request, client_address):
        # Who asked has gone: what became of the request is told there.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


with ThreadPerRequest(("127.0.0.1", 0), Quiet) as server:
    server.set_app(tailwright_gat.Wsgi(service))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    # Threads of requests may be inside libraries, which do not bear the usual end.
    os._exit(0)
