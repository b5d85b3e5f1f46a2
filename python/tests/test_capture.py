"""Captures during a run, read by tshark."""

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import processes, python, until

import longwire


def tshark(path: Path, *fields: str, match: str = "frame") -> "list[list[str]]":
    """Returns fields of the frames in a capture."""
    if shutil.which("tshark") is None:
        if "CI" in os.environ:
            raise RuntimeError("tshark is missing")
        pytest.skip("needs tshark")
    words = [word for field in fields for word in ("-e", field)]
    output = subprocess.check_output(
        ["tshark", "-n", "-r", str(path), "-Y", match, "-T", "fields", *words],
        text=True,
        stderr=subprocess.DEVNULL,
    )
    return [line.split("\t") for line in output.splitlines()]


def ping(link: longwire.LiveLink, count: int) -> None:
    # Use one ping per process: ping waits 10 s if a reply is missing at the end.
    for _ in range(count):
        link.near.check_output(["ping", "-4", "-q", "-c", "1", "far"])


def test_a_capture_has_the_frames_of_its_time_and_end(tmp_path: Path) -> None:
    near, far = tmp_path / "near.pcapng", tmp_path / "far.pcapng"
    with longwire.link(delay="20ms") as link:
        ping(link, 2)
        with link.capture(far, at="far") as capture, link.near.capture(near):
            ping(link, 3)
        ping(link, 2)
        assert (capture.frames, capture.lost) == (6, 0)
    fields = ("icmp.ident", "icmp.type", "frame.packet_flags_direction", "frame.time_epoch")
    sent, received = tshark(near, *fields), tshark(far, *fields)
    assert len(sent) == len(received) == 6
    # Requests leave near, and arrive at far 20 ms later by the kernel's stamps.
    requests = [[row for row in rows if row[1] == "8"] for rows in (sent, received)]
    delays = []
    for at_near, at_far in zip(*requests):
        assert at_near[0] == at_far[0]
        assert int(at_near[2], 0) == 2 and int(at_far[2], 0) == 1
        assert len(at_near[3].split(".")[1]) == 9
        delays.append(float(at_far[3]) - float(at_near[3]))
    # A busy machine delays some requests, but not all.
    assert len(delays) == 3 and 0.020 <= min(delays) < 0.030
    lengths = tshark(far, "frame.len", "frame.cap_len", "eth.src")
    assert lengths[0] == ["98", "98", "02:4c:57:00:00:01"]
    info = subprocess.check_output(["capinfos", str(far)], text=True)
    assert "nanoseconds" in info and "Name = far" in info


def test_every_datagram_of_a_burst_is_in_the_capture(tmp_path: Path) -> None:
    file = tmp_path / "burst.pcapng"
    with longwire.link() as link:
        with link.near.socket(type=socket.SOCK_DGRAM) as sender:
            with link.near.capture(file, snap=64) as capture:
                for number in range(20_000):
                    sender.sendto(number.to_bytes(4, "big") * 50, (link.far.address, 9))
    rows = tshark(file, "udp.length", "frame.len", "frame.cap_len", match="udp && !icmp")
    assert len(rows) + capture.lost >= 20_000 and capture.lost == 0
    assert set(map(tuple, rows)) == {("208", "242", "64")}


def test_an_open_capture_ends_with_its_link(tmp_path: Path) -> None:
    file = tmp_path / "open.pcapng"
    with longwire.link() as link:
        capture = link.capture(file)
        ping(link, 2)
    assert capture.frames == 4 and len(tshark(file, "frame.number")) == 4
    capture.close()
    assert not processes("longwire/_capture.py")


def test_vlan_tags_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "vlan.pcapng"
    with longwire.link() as link:
        # The kernel removes the tag before the socket sees the frame.
        code = (
            "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW);"
            "s.bind(('eth0', 3)); s.send(b'\\x02LW\\0\\0\\2\\x02LW\\0\\0\\1\\x81\\0\\0\\x07'"
            "b'\\x88\\xb5' + bytes(60))"
        )
        with link.far.capture(file) as capture:
            sent = link.near.run(["python3", "-c", code], stderr=subprocess.DEVNULL)
            if sent.returncode != 0:
                pytest.skip("packet sockets of processes need root")
            until(lambda: link.stats()["totals"]["packets_out"] >= 1)
            time.sleep(0.05)
    assert capture.frames == 1
    assert tshark(file, "vlan.id", "vlan.etype", "frame.len") == [["7", "0x88b5", "78"]]


def test_wrong_captures_have_field_reason_and_remedy(tmp_path: Path) -> None:
    with longwire.link() as link:
        cases = [
            ("path", lambda: link.capture(tmp_path / "no" / "x.pcapng")),
            ("at", lambda: link.capture(tmp_path / "x.pcapng", at="middle")),
            ("snap", lambda: link.capture(tmp_path / "x.pcapng", snap=1)),
        ]
        for field, begin in cases:
            with pytest.raises(longwire.CaptureError) as refused:
                begin()
            assert refused.value.field == field
            assert refused.value.reason and refused.value.remedy
        full = link.capture("/dev/full")
        ping(link, 1)
        with pytest.raises(longwire.CaptureError, match="No space left") as refused:
            full.close()
        assert refused.value.field == "path"
        link.capture("/dev/full")
        ping(link, 1)
        # The report is still read.
        with pytest.raises(longwire.CaptureError, match="No space left"):
            link.close()
        assert link.report["duration_s"] > 0
    with pytest.raises(longwire.EndedError):
        link.near.capture(tmp_path / "late.pcapng")


def test_a_capture_that_is_killed_says_so(tmp_path: Path) -> None:
    with longwire.link() as link:
        capture = link.capture(tmp_path / "killed.pcapng")
        assert capture._process is not None
        capture._process.kill()
        with pytest.raises(longwire.CaptureError, match="was killed"):
            capture.close()
        ping(link, 1)


def test_a_capture_survives_the_death_of_python(tmp_path: Path) -> None:
    file = tmp_path / "left.pcapng"
    start = f"""
import longwire, os, signal
link = longwire.link()
link.capture({str(file)!r})
for _ in range(3):
    link.near.check_output(["ping", "-4", "-q", "-c", "1", "far"])
os.kill(os.getpid(), signal.SIGKILL)
"""
    program = python(start)
    program.wait(30)
    assert program.returncode == -signal.SIGKILL
    assert until(lambda: not processes("longwire/_capture.py"))
    assert len(tshark(file, "frame.number")) == 6
