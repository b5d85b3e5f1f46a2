"""gRPC over 80 ms: calls, and deadlines shorter than the round trip."""

import sys
from pathlib import Path

import pytest
from conftest import printed, until_listens

import longwire

SCRIPT = str(Path(__file__).with_name("grpc_greeter.py"))


@pytest.mark.needs("grpc")
@pytest.mark.link(delay="40ms")
def test_a_deadline_shorter_than_the_round_trip_is_exceeded(link: longwire.LiveLink) -> None:
    link.far.popen([sys.executable, SCRIPT, "serve"])
    until_listens(link, 50051)
    elapsed, code = printed(link, SCRIPT, "call").split()
    assert 0.080 <= float(elapsed) < 0.3
    assert code == "DEADLINE_EXCEEDED"
