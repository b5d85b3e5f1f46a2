"""An aiortc call with bursts of loss."""

import subprocess
import sys
from pathlib import Path

import pytest

import longwire

SCRIPT = str(Path(__file__).with_name("webrtc_peer.py"))

SECONDS = "8"


@pytest.mark.needs("aiortc")
@pytest.mark.link(delay="20ms", seed=7)
def test_a_receiver_counts_the_losses_of_the_link(link: longwire.LiveLink) -> None:
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    caller = link.far.popen([sys.executable, SCRIPT, "offer", SECONDS], **streams)
    called = link.near.popen([sys.executable, SCRIPT, "answer", SECONDS], **streams)
    assert caller.stdin and caller.stdout and called.stdin and called.stdout
    called.stdin.write(caller.stdout.readline())
    called.stdin.flush()
    caller.stdin.write(called.stdout.readline())
    caller.stdin.flush()
    assert called.stdout.readline() == "connected\n"
    # On average, one packet in seven is lost, in bursts of 3.3.
    link.downward.set(loss="gilbert:p=5%,r=30%")
    received, lost = map(int, called.stdout.readline().split())
    assert received > 100
    assert lost > 10
    link.report.require("artifacts-lost=0")
