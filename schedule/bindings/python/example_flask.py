"""A service that calls others and tells what it knows: example_flask.py [URL...]. Prints its port. It knows nothing of tags."""

import sys
from concurrent.futures import ThreadPoolExecutor

import flask
import requests
from werkzeug.serving import WSGIRequestHandler, make_server

app = flask.Flask(__name__)
urls = sys.argv[1:]
pool = ThreadPoolExecutor(2)


def call(url):
    return requests.get(url, timeout=60).json()


@app.get("/")
@app.get("/<path>")
def answer(path=""):
    seen = flask.request.headers["Baggage"]
    called = [call(url) for url in urls[:1]] + list(pool.map(call, urls[1:]))
    start = seen.partition(",")[0].partition("=")[2]
    return {"start": start, "baggage": seen, "called": called}, {"baggage": "tailwright-start=1,reply=1"}


class Quiet(WSGIRequestHandler):
    def log(self, *_):
        pass


server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
print(server.server_port, flush=True)
server.serve_forever()
