"""Tests behind a link: the fixture ``link`` and the marker of the same name.

.. code-block:: python

    @pytest.mark.link(delay="80ms", loss="1%")
    def test_login(link):
        server = link.far.popen(["python3", "-m", "http.server", "8000"])
        link.near.run(["curl", "--retry-connrefused", "--retry", "5", "http://far:8000"])

Settings, in ``pytest.ini`` or ``pyproject.toml``:

* ``link_require``: requirement for each run, such as ``artifacts-lost=0,artifacts-own<5%``.
* ``link_unmet``: ``fail`` (default), ``skip`` or ``retry`` a test whose run does not meet it.
* ``link_retries``: number of retries (2).
* ``link_artifacts``: directory for reports and captures of failed tests (``.longwire``).
* ``link_capture``: whether to keep captures of failed tests (``true``).
"""

from __future__ import annotations

import difflib
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any, Iterator

import pytest

from .errors import FidelityError, ProgramNotFoundError, StartError
from .live import LiveLink
from .live import link as start_link

_UNMET = ("fail", "skip", "retry")

_OWN_OPTIONS = ("presets", "require", "topology", "up", "down")
"""Options of the marker and of ``longwire.link`` that are not options of the program."""

_RESULT = pytest.StashKey["dict[str, pytest.TestReport]"]()
_UNMET_FOUND = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("link_require", "requirement on the run of each test with a link", default="")
    parser.addini("link_unmet", f"action if a run does not meet it: {', '.join(_UNMET)}", default="fail")
    parser.addini("link_retries", "maximum repetitions with link_unmet=retry", default="2")
    parser.addini("link_artifacts", "directory for artifacts of failed tests", default=".longwire")
    parser.addini("link_capture", "whether to keep captures of failed tests", type="bool", default=True)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "link(**options): options of the fixture link, those of longwire.link(); "
        "presets=[...] runs the test with each preset",
    )
    chosen = config.getini("link_unmet")
    if chosen not in _UNMET:
        raise pytest.UsageError(f"link_unmet is {chosen!r}; it must be one of {', '.join(_UNMET)}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrises a test by the presets of its marker."""
    if "link" not in metafunc.fixturenames:
        return
    presets = _options(metafunc.definition).get("presets")
    if presets is not None:
        metafunc.parametrize("_link_preset", list(presets), indirect=True)


def _options(item: pytest.Item) -> dict[str, Any]:
    """Returns the options of all markers of a test; the closest marker wins."""
    options: dict[str, Any] = {}
    for marker in reversed(list(item.iter_markers("link"))):
        if marker.args:
            pytest.fail(
                f"the marker link takes keyword options such as link(delay=\"20ms\"), not "
                f"{marker.args[0]!r}",
                pytrace=False,
            )
        options.update(marker.kwargs)
    return options


def _refuse_misspelt(item: pytest.Item) -> None:
    """Fails a test with a misspelt ``link`` marker, whose options would have no effect."""
    known = {re.split(r"[(:]", line)[0].strip() for line in item.config.getini("markers")}
    for marker in item.iter_markers():
        near = difflib.get_close_matches(marker.name, ("link",), 1, 0.7)
        if marker.name not in known and near:
            pytest.fail(f"unknown marker {marker.name}; did you mean link?", pytrace=False)


def _start(options: dict[str, Any]) -> LiveLink:
    """Starts the link; an invalid option fails the test without a traceback."""
    problem = None
    try:
        return start_link(**options)
    except (StartError, ProgramNotFoundError) as error:
        problem = str(error)
        # The program suggests only its own options, not those of this package.
        if isinstance(error, StartError) and error.field and error.remedy is None:
            near = difflib.get_close_matches(error.field, _OWN_OPTIONS, 1)
            problem += f"; did you mean {near[0]}?" if near and near[0] != error.field else ""
    pytest.fail(f"cannot start the link of the marker: {problem}", pytrace=False)


@pytest.fixture
def _link_preset(request: pytest.FixtureRequest) -> str | None:
    preset: str | None = getattr(request, "param", None)
    return preset


@pytest.fixture
def link(request: pytest.FixtureRequest, _link_preset: str | None) -> Iterator[LiveLink]:
    """A link between two networks, with the options of the marker ``link``."""
    config = request.config
    _refuse_misspelt(request.node)
    options = _options(request.node)
    options.pop("presets", None)
    if _link_preset is not None:
        options["preset"] = _link_preset
    options.pop("require", None)
    directory = Path(tempfile.mkdtemp(prefix="longwire-test-"))
    if config.getini("link_capture"):
        options.setdefault("capture", directory / "link")
    try:
        running = _start(options)
        try:
            yield running
        finally:
            running.close()
            _keep(request.node, running, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """Checks the fidelity of the run after its test has passed."""
    result = yield
    running = getattr(item, "funcargs", {}).get("link")
    require = str(_options(item).get("require", item.config.getini("link_require")))
    if isinstance(running, LiveLink) and require:
        unmet = running.report.unmet(require)
        if unmet:
            item.stash[_UNMET_FOUND] = True
            if item.config.getini("link_unmet") == "skip":
                pytest.skip(f"fidelity requirement not met: {'; '.join(unmet)}")
            raise FidelityError(unmet)
    return result


def _keep(item: pytest.Item, running: LiveLink, directory: Path) -> None:
    """Keeps the artifacts of a failed test."""
    result = item.stash.get(_RESULT, {}).get("call")
    if result is None or not result.failed:
        return
    name = re.sub(r"[^\w.-]+", "-", item.nodeid)
    root = item.config.rootpath / item.config.getini("link_artifacts")
    target = root / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file in directory.iterdir():
        shutil.move(str(file), target / file.name)
    running.report.write(target / "report.json")
    item.add_report_section("teardown", "longwire", f"report and captures: {target}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Records the outcome of a test for the fixture."""
    report: pytest.TestReport = yield
    item.stash.setdefault(_RESULT, {})[report.when] = report
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Repeats a test while its run does not meet the requirement, if configured."""
    if item.config.getini("link_unmet") != "retry" or "link" not in getattr(item, "fixturenames", ()):
        return None
    from _pytest.runner import runtestprotocol

    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports: list[pytest.TestReport] = []
    for left in range(int(item.config.getini("link_retries")), -1, -1):
        item.stash[_UNMET_FOUND] = False
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if not item.stash[_UNMET_FOUND] or left == 0:
            break
        item._initrequest()  # type: ignore[attr-defined]
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
