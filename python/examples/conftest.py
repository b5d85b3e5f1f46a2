"""Helpers for the examples."""

import os
import subprocess
import sys
from typing import Any

import pytest

import longwire


def until_listens(link: longwire.LiveLink, port: int) -> None:
    """Waits up to 30 s until a server in far listens on a TCP port."""
    code = (
        "import socket, sys, time\n"
        "end = time.monotonic() + 30\n"
        "while True:\n"
        "    try:\n"
        "        socket.create_connection(('127.0.0.1', int(sys.argv[1]))).close(); break\n"
        "    except OSError:\n"
        "        if time.monotonic() > end: raise\n"
        "        time.sleep(0.05)\n"
    )
    link.far.run([sys.executable, "-c", code, str(port)], check=True)


@pytest.fixture(autouse=True)
def modules(request: pytest.FixtureRequest) -> None:
    """Skips an example whose libraries are missing, except in CI."""
    for marker in request.node.iter_markers("needs"):
        for name in marker.args:
            if "CI" in os.environ:
                __import__(name)
            else:
                pytest.importorskip(name)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*modules): third-party modules of an example")


def printed(link: longwire.LiveLink, *words: str, **options: Any) -> str:
    """Runs Python with arguments in near, and returns its output."""
    found: "subprocess.CompletedProcess[str]" = link.near.run(
        [sys.executable, *words], check=True, stdout=subprocess.PIPE, text=True, timeout=120, **options
    )
    return found.stdout
