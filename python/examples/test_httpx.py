"""httpx over a geostationary satellite: the benefit of persistent connections."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import printed, until_listens

import longwire

# HTTP/1.1 keeps connections open; the standard library's server defaults to 1.0.
SERVER = """
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

SimpleHTTPRequestHandler.protocol_version = "HTTP/1.1"
ThreadingHTTPServer(("", 8000), SimpleHTTPRequestHandler).serve_forever()
"""

CLIENT = """
import time
import httpx

URL = "http://far:8000/page"

def seconds(get):
    start = time.monotonic()
    for _ in range(3):
        assert get(URL).text == "page" * 1000
    return time.monotonic() - start

with httpx.Client(timeout=30) as client:
    kept = seconds(client.get)
print(kept, seconds(lambda url: httpx.get(url, timeout=30)))
"""


@pytest.mark.needs("httpx")
@pytest.mark.link(preset="geo-satellite")
def test_a_kept_connection_saves_round_trips(link: longwire.LiveLink, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("page" * 1000)
    link.far.popen([sys.executable, "-c", SERVER], cwd=tmp_path, stderr=subprocess.DEVNULL)
    until_listens(link, 8000)
    kept, new = map(float, printed(link, "-c", CLIENT).split())
    # Two of three requests save the round trip of a new connection: over half a second
    # each.
    assert new - kept > 1.0
    link.report.require("artifacts-lost=0")
