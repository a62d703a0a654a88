"""A service that calls others and tells what it knows: example_service.py ROLE HOSTS [URL...]. Prints its port."""

import json
import sys
import urllib.request
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import tailwright_gat

role_name, hosts, *urls = sys.argv[1:]
slos_ns = {"/soon": 50 * 10**6, "/later": 5 * 10**9}
edge = tailwright_gat.Edge(slo_ns_of=lambda environ: slos_ns.get(environ["PATH_INFO"]))
role = edge if role_name == "edge" else tailwright_gat.InnerTier()
tailwright_gat.hook_http_client(hosts)


def call(url):
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Baggage": "own=1"})) as reply:
        return json.load(reply)


def service(environ, start_response):
    tag = tailwright_gat.current()
    answer = {
        "start": str(tag.start_ns),
        "baggage": environ["HTTP_BAGGAGE"],
        "called": [call(url) for url in urls],
    }
    start_response("200 OK", [("Content-Type", "application/json"), ("baggage", "tailwright-start=1,reply=1")])
    return [json.dumps(answer).encode()]


class Quiet(WSGIRequestHandler):
    def log_message(self, *_):
        pass


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


with make_server("127.0.0.1", 0, tailwright_gat.Wsgi(service, role), Server, Quiet) as server:
    print(server.server_port, flush=True)
    server.serve_forever()
