"""A gRPC server with generic handlers: ADDRESS COUNT_FILE [KEY CHAIN]. Appends a byte to the file for each call."""

import concurrent.futures
import os
import sys
import time

import grpc

address, count_file, *tls = sys.argv[1:]
count = os.open(count_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def unary(function):
    def call(request, context):
        os.write(count, b".")
        return function(request, context)

    return grpc.unary_unary_rpc_method_handler(call)


def slow(request, context):
    time.sleep(0.02)
    return request


def refuse(request, context):
    context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")


def sized(request, context):
    """As many bytes as the message says."""
    return b"x" * int(request)


server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
methods = {
    "Echo": unary(lambda request, context: request),
    "Slow": unary(slow),
    "Refuse": unary(refuse),
    "Sized": unary(sized),
}
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service", methods),))
if tls:
    pair = tuple(open(file, "rb").read() for file in tls)
    server.add_secure_port(address, grpc.ssl_server_credentials((pair,)))
else:
    server.add_insecure_port(address)
server.start()
server.wait_for_termination()
