"""The pytest plugin, in nested runs of pytest."""

import json
from pathlib import Path

import pytest

PASSING = """
import pytest

@pytest.mark.link(delay="20ms")
def test_round_trip(link):
    out = link.near.check_output(["ping", "-n", "-c", "3", "-i", "0.05", "far"], text=True)
    # Check the minimum, because a busy machine delays some pings.
    assert "mdev = 4" in out
"""

FAILING = """
import pytest

@pytest.mark.link(delay="1ms")
def test_wrong(link):
    link.near.check_output(["ping", "-n", "-c", "2", "-i", "0.05", "far"])
    assert False
"""

# A round trip is two frames.
UNMET = """
import pytest

@pytest.mark.link(delay="1ms", require="packets_in>1000")
def test_exact(link):
    with open("runs", "a") as runs:
        runs.write("run ")
    link.near.check_output(["ping", "-n", "-c", "1", "far"])
"""


@pytest.fixture(autouse=True)
def plugin(pytester: pytest.Pytester, request: pytest.FixtureRequest) -> None:
    if not request.config.pluginmanager.has_plugin("longwire"):
        pytester.makeconftest("pytest_plugins = ['longwire.pytest_plugin']")


def test_a_marker_configures_the_link(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PASSING)
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    assert not (pytester.path / ".longwire").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('dealy="20ms"', "unknown option --dealy; did you mean --delay?"),
        ('topolgy="x.toml"', "unknown option --topolgy; did you mean topology?"),
        ('preset="ltee"', "unknown preset 'ltee'; did you mean 'lte'?"),
        ('"20ms"', "takes keyword options"),
    ],
)
def test_a_wrong_marker_is_a_plain_error(
    pytester: pytest.Pytester, options: str, message: str
) -> None:
    pytester.makepyfile(PASSING.replace('delay="20ms"', options))
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1)
    text = result.stdout.str()
    assert message in text
    assert "Traceback" not in text and "run.py" not in text


def test_a_misspelt_marker_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PASSING.replace("mark.link", "mark.lnk"))
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(errors=1, warnings=1)
    assert "unknown marker lnk; did you mean link?" in result.stdout.str()


def test_a_failed_test_leaves_its_report_and_captures(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    (kept,) = (pytester.path / ".longwire").iterdir()
    report = json.loads((kept / "report.json").read_text())
    assert report["links"][0]["packets_in"] >= 2
    captures = [file for file in kept.iterdir() if file.suffix == ".pcapng"]
    assert captures and all(file.stat().st_size > 300 for file in captures)


@pytest.mark.parametrize(
    ("unmet", "outcome", "runs"), [("fail", "failed", 1), ("skip", "skipped", 1), ("retry", "failed", 3)]
)
def test_an_unmet_requirement_does_as_configured(
    pytester: pytest.Pytester, unmet: str, outcome: str, runs: int
) -> None:
    pytester.makepyfile(UNMET)
    pytester.makeini(f"[pytest]\nlink_unmet = {unmet}\n")
    result = pytester.runpytest_subprocess("-rA")
    result.assert_outcomes(**{outcome: 1})
    assert (pytester.path / "runs").read_text().split() == ["run"] * runs
    result.stdout.fnmatch_lines(["*packets_in>1000*"])


def test_a_retry_that_meets_the_requirement_passes(pytester: pytest.Pytester) -> None:
    text = UNMET.replace('"packets_in>1000"', '"packets_in>4"')
    pytester.makepyfile(
        text.replace(
            'link.near.check_output(["ping", "-n", "-c", "1", "far"])',
            'count = str(len(open("runs").read().split()) * 3)\n'
            '    link.near.check_output(["ping", "-n", "-i", "0.05", "-c", count, "far"])',
        )
    )
    pytester.makeini("[pytest]\nlink_unmet = retry\n")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    assert (pytester.path / "runs").read_text().split() == ["run"] * 2


def test_a_setting_requires_of_every_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PASSING)
    pytester.makeini("[pytest]\nlink_require = packets_in>1000\n")
    pytester.runpytest_subprocess().assert_outcomes(failed=1)


def test_presets_parametrise_a_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import pytest

@pytest.mark.link(presets=["lte", "adsl"])
def test_page(link):
    assert link.near.run(["ping", "-c", "1", "far"]).returncode == 0
"""
    )
    result = pytester.runpytest_subprocess("-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_page?lte?*", "*test_page?adsl?*"])


def test_a_wrong_setting_is_refused(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PASSING)
    pytester.makeini("[pytest]\nlink_unmet = ignore\n")
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*link_unmet*fail, skip, retry*"])


def test_workers_of_xdist_have_links_at_once(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    names = "".join(PASSING.split("\n\n", 1)[1].replace("round_trip", f"trip_{n}") for n in range(6))
    pytester.makepyfile("import pytest\n" + names)
    pytester.runpytest_subprocess("-n", "3").assert_outcomes(passed=6)


def test_the_directory_of_kept_files_is_that_of_the_settings(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(FAILING)
    pytester.makeini("[pytest]\nlink_artifacts = kept\nlink_capture = false\n")
    pytester.runpytest_subprocess().assert_outcomes(failed=1)
    files = [path.name for path in Path(pytester.path / "kept").rglob("*") if path.is_file()]
    assert files == ["report.json"]
