"""A gRPC server of bytes: python server.py ADDRESS CERTIFICATE KEY SECRET

Whoever does not bring SECRET as `authorization` is turned away. Calls are named by their paths,
messages are passed as they are.
"""

import sys
import time
from concurrent import futures

import grpc

ADDRESS, CERTIFICATE, KEY, SECRET = sys.argv[1:]


def check(context):
    sent = [value for name, value in context.invocation_metadata() if name == "authorization"]
    if sent != [SECRET]:
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "it is not what the gateway would bring")


def unary(request, context):
    check(context)
    context.set_trailing_metadata((("x-trailer", "last"),))
    return request.upper()


def client_stream(requests, context):
    check(context)
    return b",".join(requests)


def server_stream(request, context):
    check(context)
    for number in range(int(request)):
        yield b"%d" % number
        time.sleep(0.5)


def bidi(requests, context):
    check(context)
    for request in requests:
        yield request.upper()


def left(_request, context):
    """How many seconds the caller's deadline leaves."""
    check(context)
    return b"%f" % context.time_remaining()


def slow(_request, context):
    check(context)
    time.sleep(5)
    return b"too late"


def fails(_request, context):
    check(context)
    context.abort(grpc.StatusCode.OUT_OF_RANGE, "by the server itself: 100 %")


HANDLERS = {
    "Unary": grpc.unary_unary_rpc_method_handler(unary),
    "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
    "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
    "Bidi": grpc.stream_stream_rpc_method_handler(bidi),
    "Left": grpc.unary_unary_rpc_method_handler(left),
    "Slow": grpc.unary_unary_rpc_method_handler(slow),
    "Fails": grpc.unary_unary_rpc_method_handler(fails),
}

# The client of the long stream pings oftener than is polite.
server = grpc.server(
    futures.ThreadPoolExecutor(16),
    options=[("grpc.http2.min_ping_interval_without_data_ms", 100), ("grpc.max_ping_strikes", 0)],
)
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Echo", HANDLERS),))
with open(CERTIFICATE, "rb") as certificate, open(KEY, "rb") as key:
    credentials = grpc.ssl_server_credentials([(key.read(), certificate.read())])
server.add_secure_port(ADDRESS, credentials)
server.start()
server.wait_for_termination()
