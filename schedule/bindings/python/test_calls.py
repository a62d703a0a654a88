"""Which calls of http.client carry the tag: what another host is sent, whatever the target of the request looks like."""

import http.client
import os
import socket
import threading
import urllib.request

import tailwright_gat as gat

heads = []


def serve(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(65536)
            heads.append(head.decode("latin-1"))
            is_redirect = head.startswith(b"GET /redirect")
            target = f"Location: http://localhost:{port}//127.0.0.1/x?u=http://y\r\n" if is_redirect else ""
            reply = f"HTTP/1.1 {302 if is_redirect else 200} -\r\n{target}Content-Length: 0\r\nConnection: close\r\n\r\n"
            connection.sendall(reply.encode())


listener = socket.create_server(("127.0.0.1", 0))
port = listener.getsockname()[1]
threading.Thread(target=serve, args=(listener,), daemon=True).start()
for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "REQUEST_METHOD"]:
    os.environ.pop(name, None)
gat.hook_http_client("127.0.0.1,store")
gat._current.set(gat.Tag(5))


def baggage():
    """The values that came with each call, after which none is left."""
    lines = [[line for line in head.split("\r\n") if line.lower().startswith("baggage:")] for head in heads]
    heads.clear()
    return [[line.partition(":")[2].strip() for line in found] for found in lines]


def call(host, target):
    """By http.client, which sends the target as it is."""
    connection = http.client.HTTPConnection(host, port)
    connection.request("GET", target, headers={"Baggage": "own=1"})
    connection.getresponse().read()
    connection.close()
    return baggage()


TAGGED, OWN = [["tailwright-start=5,own=1"]], [["own=1"]]
# What begins with two slashes is a path, and its host is nobody's.
paths = ["/", "//store/x?u=http://y", "//store/?://", "/x?u=http://store/", "//[x?u=://", "*"]
for path in paths:
    assert call("127.0.0.1", path) == TAGGED, path
    assert call("localhost", path) == OWN, path
# A whole URL is for a proxy: both it and the host of the URL have to be inside.
for url in ["http://store/x", "HTTP://user@STORE.:80/", "http://127.0.0.1", "http://store?x", "https://store/"]:
    assert call("127.0.0.1", url) == TAGGED, url
    assert call("localhost", url) == OWN, url
strangers = ["http://other/", "http://store@other/", "http://other\\@store/", "http://other#@store/", "http://"]
for url in strangers + ["http://other?@store/", "http:////store/", "http://other:80@store:x/", "x+y://store.other/"]:
    assert call("127.0.0.1", url) == OWN, url

for path in ["//127.0.0.1/x?u=http://y", "//[x?u=://", "/redirect"]:
    urllib.request.urlopen(f"http://localhost:{port}{path}").read()
    assert set(map(tuple, baggage())) == {()}, path
for proxy, expected in [("localhost", [[]]), ("127.0.0.1", [["tailwright-start=5"]])]:
    handler = urllib.request.ProxyHandler({"http": f"http://{proxy}:{port}"})
    urllib.request.build_opener(handler).open("http://store/x").read()
    assert baggage() == expected, proxy
