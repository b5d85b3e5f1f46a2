"""Chromium with Playwright: the link delays a page's WebSocket and WebRTC messages."""

import os
import shutil
import sys
from pathlib import Path

import pytest
from conftest import until_listens

import longwire

SERVER = str(Path(__file__).with_name("page_server.py"))


def chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        if "CI" in os.environ:
            raise FileNotFoundError("chromium")
        pytest.skip("needs chromium (Debian: chromium)")
    return found


@pytest.mark.needs("aiortc", "playwright", "websockets")
@pytest.mark.link(delay="60ms")
def test_web_sockets_and_web_rtc_cross_the_link(link: longwire.LiveLink, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    link.far.popen([sys.executable, SERVER])
    until_listens(link, 8000)
    browser_path = link.near.script(tmp_path / "chromium", [chromium()])
    with sync_playwright() as playwright:
        # The browser's sandbox creates namespaces, which root in a container may not.
        browser = playwright.chromium.launch(executable_path=browser_path, chromium_sandbox=False)
        page = browser.new_page()
        page.goto("http://far:8000/")
        page.wait_for_function("document.title != 'waiting'")
        over_web_socket, over_web_rtc = map(float, page.title().split())
        browser.close()
    assert 120 <= over_web_socket < 400
    assert 120 <= over_web_rtc < 400
    link.report.require("artifacts-lost=0")
