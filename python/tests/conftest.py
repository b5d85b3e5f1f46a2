"""Helpers for the tests."""

import os
import subprocess
import time
from typing import Iterator

import pytest

pytest_plugins = ["pytester"]


def processes(word: str) -> "set[int]":
    """Returns the IDs of processes whose command line contains a word."""
    found = set()
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except (OSError, ValueError):
            continue
        if any(word.encode() in found_word for found_word in words):
            found.add(int(name))
    return found


def namespaces() -> "set[str]":
    """Returns the network namespaces of all processes."""
    found = set()
    for name in os.listdir("/proc"):
        try:
            found.add(os.readlink(f"/proc/{name}/ns/net"))
        except OSError:
            continue
    return found


def until(holds, seconds: float = 15.0) -> bool:  # type: ignore
    """Waits until a condition holds. Returns False if it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="session", autouse=True)
def can_make_links() -> Iterator[None]:
    """Skips all tests if the system does not let this user create links, except in CI."""
    import longwire

    try:
        longwire.link().close()
    except longwire.StartError as error:
        if "CI" in os.environ or "namespace" not in str(error):
            raise
        pytest.skip(f"links need user namespaces: {error}")
    yield


def python(code: str, **options: object) -> "subprocess.Popen[str]":
    """Starts a Python program, with its standard output as a pipe."""
    import sys

    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **options  # type: ignore
    )
