"""A gRPC server and a client: ``serve`` and ``call``."""

import sys
import time
from concurrent import futures

import grpc

METHOD = "/example.Greeter/Greet"


def serve() -> None:
    handler = grpc.method_handlers_generic_handler(
        "example.Greeter",
        {"Greet": grpc.unary_unary_rpc_method_handler(lambda name, _context: b"hello " + name)},
    )
    server = grpc.server(futures.ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port("0.0.0.0:50051")
    server.start()
    server.wait_for_termination()


def call() -> None:
    with grpc.insecure_channel("far:50051") as channel:
        greet = channel.unary_unary(METHOD)
        assert greet(b"first", timeout=30) == b"hello first"
        start = time.monotonic()
        assert greet(b"second", timeout=30) == b"hello second"
        elapsed = time.monotonic() - start
        try:
            greet(b"third", timeout=0.05)
            code = "OK"
        except grpc.RpcError as error:
            code = error.code().name
        print(elapsed, code)


serve() if sys.argv[1] == "serve" else call()
