"""Every kind of call through a gateway: python client.py NAME DOWN DENIED WAY

DOWN is a name whose server is not there, DENIED one that no entry allows; WAY says whether the
gateway is known as a proxy ("proxy") or not at all ("sandbox"). Nothing else is configured.
"""

import queue
import sys
import time

import grpc

NAME, DOWN, DENIED, WAY = sys.argv[1:]
MINE = (("authorization", "mine"),)
PATIENCE = 20


def channel(name):
    options = [("grpc.keepalive_time_ms", 1000), ("grpc.keepalive_permit_without_calls", 1)]
    return grpc.secure_channel(name + ":443", grpc.ssl_channel_credentials(), options)


def equal(got, wanted):
    if got != wanted:
        raise SystemExit(f"{got!r} instead of {wanted!r}")


def refused(name, method, code, *words, timeout=PATIENCE):
    """The error of a call, as a program prints it."""
    call = channel(name).unary_unary("/test.Echo/" + method)
    try:
        call(b"hello", timeout=timeout, metadata=MINE)
    except grpc.RpcError as error:
        equal(error.code(), code)
        for word in words:
            if word not in error.details():
                raise SystemExit(f"{method}: no {word} in {error.details()!r}")
        return error
    raise SystemExit(f"{name} {method}: it was not refused")


server = channel(NAME)

unary = server.unary_unary("/test.Echo/Unary")
answer, call = unary.with_call(b"hello", timeout=PATIENCE, metadata=MINE)
equal(answer, b"HELLO")
equal(dict(call.trailing_metadata())["x-trailer"], "last")

large = b"x" * 1_000_000
equal(unary(large, timeout=PATIENCE), large.upper())

client_stream = server.stream_unary("/test.Echo/ClientStream")
equal(client_stream(iter([b"a", b"b", b"c"]), timeout=PATIENCE), b"a,b,c")

stream = server.unary_stream("/test.Echo/ServerStream")(b"3", timeout=PATIENCE)
came = [(time.monotonic(), message) for message in stream]
equal([message for _, message in came], [b"0", b"1", b"2"])
equal(came[2][0] - came[0][0] > 0.6, True)

# One message at a time: the next is not sent before the last has come back.
outgoing = queue.Queue()
answers = server.stream_stream("/test.Echo/Bidi")(iter(outgoing.get, None), timeout=PATIENCE * 2)
for number in range(5):
    sent = time.monotonic()
    outgoing.put(b"message %d" % number)
    equal(next(answers), b"MESSAGE %d" % number)
    equal(time.monotonic() - sent < 2, True)
    # Silent but for pings, for longer than the gateway's limit for what is idle.
    time.sleep(4 if number == 2 else 0.2)
outgoing.put(None)
equal(list(answers), [])
equal(answers.code(), grpc.StatusCode.OK)

remaining = float(server.unary_unary("/test.Echo/Left")(b"", timeout=7))
# Without a gateway too grpcio shows its server a few milliseconds more than were asked for.
equal((4 < remaining < 7.5, remaining), (True, remaining))
begun = time.monotonic()
refused(NAME, "Slow", grpc.StatusCode.DEADLINE_EXCEEDED, timeout=0.5)
equal(time.monotonic() - begun < 3, True)
refused(NAME, "Fails", grpc.StatusCode.OUT_OF_RANGE, "by the server itself: 100 %")

error = refused(NAME, "Forbidden", grpc.StatusCode.PERMISSION_DENIED, "denied_by_entry", NAME)
equal(dict(error.trailing_metadata() or error.initial_metadata())["outgate-reason"], "denied_by_entry")
refused(DOWN, "Unary", grpc.StatusCode.UNAVAILABLE, "origin_connect", DOWN)
if WAY == "sandbox":
    refused(DENIED, "Unary", grpc.StatusCode.PERMISSION_DENIED, "domain_not_allowed", DENIED)
else:
    # The proxy itself says so, and has no trailers.
    refused(DENIED, "Unary", grpc.StatusCode.UNAVAILABLE)
print("all of it worked")
