"""Links, reports, logs and their figures in notebooks."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

import longwire
from longwire.figure import SHOWN_MAX

SVG = "{http://www.w3.org/2000/svg}"


def texts(page: str) -> "set[str]":
    """Returns the text elements of the figures in a page."""
    found = set()
    for part in page.split("<svg")[1:]:
        root = ElementTree.fromstring("<svg" + part.split("</svg>")[0] + "</svg>")
        assert root.tag == f"{SVG}svg"
        found.update(element.text or "" for element in root.iter(f"{SVG}text"))
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> "tuple[longwire.LiveLink, Path, str]":
    """An ended link, its log, and its HTML from before the end."""
    log = tmp_path_factory.mktemp("run") / "run.csv"
    with longwire.link(delay="5ms", log=log) as link:
        link.near.check_output(["ping", "-4", "-q", "-c", "20", "-i", "0.01", "far"])
        shown = link._repr_html_()
    return link, log, shown


def test_a_link_shows_its_report_with_figures(
    run: "tuple[longwire.LiveLink, Path, str]",
) -> None:
    link, _log, shown = run
    assert "<p>link: running</p>" in shown and "<p>link: ended</p>" in link._repr_html_()
    for page in (shown, link.report._repr_html_()):
        assert "<td>link.up</td>" in page and "<td>near</td>" in page
        assert {"Frames", "Lateness", "link.up", "20"} <= texts(page)
    assert "Lateness" not in texts(link.report.plot("counts")._repr_html_())


def test_a_log_shows_its_figures(run: "tuple[longwire.LiveLink, Path, str]") -> None:
    _link, path, _shown = run
    log = longwire.Log(path)
    shown = texts(log._repr_html_())
    assert {"Throughput", "One-way delay", "Delay distribution", "link.up"} <= shown
    figure = log.plot(["delay"], title="Of the test", until="50ms", width=600)
    assert 'width="600"' in figure.svg and "Throughput" not in figure.svg
    assert {"Of the test", "One-way delay"} <= texts(figure._repr_html_())
    figure.write(path.with_suffix(".svg"))
    assert path.with_suffix(".svg").read_text() == figure.svg


def test_a_log_is_a_table_of_arrow(run: "tuple[longwire.LiveLink, Path, str]") -> None:
    pyarrow = pytest.importorskip("pyarrow")
    _link, path, _shown = run
    table = longwire.Log(path).to_arrow()
    assert isinstance(table, pyarrow.Table)
    assert table.num_rows == 40
    assert set(table["verdict"].to_pylist()) == {"deliver"}


def test_a_shown_figure_has_shapes_and_texts_only() -> None:
    text = (
        '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="9" onload="x()">'
        '<script>x()</script><a href="x"><rect/></a><text x="1" onclick="x()">&lt;b&gt;</text>'
        '<rect width="5" fill="#123456"/></svg>'
    )
    shown = longwire.Figure(text)._repr_html_()
    for refused in ("script", "onload", "onclick", "href", "<?xml", "<b>"):
        assert refused not in shown
    assert "&lt;b&gt;" in shown and 'fill="#123456"' in shown
    assert "write(path)" in longwire.Figure("x" * (SHOWN_MAX + 1))._repr_html_()


def test_what_cannot_be_drawn_is_named(tmp_path: Path) -> None:
    with pytest.raises(longwire.LongwireError, match="no such file"):
        longwire.Log(tmp_path / "no.csv")
    with pytest.raises(longwire.LongwireError, match=r"\.csv or \.parquet"):
        longwire.Log(tmp_path / "no.txt")
    empty = tmp_path / "empty.csv"
    empty.write_text("<b>\n")
    with pytest.raises(longwire.FigureError, match="empty.csv"):
        longwire.Log(empty).plot()
    assert "empty.csv" in longwire.Log(empty)._repr_html_()
    assert "<b>" not in longwire.Log(empty)._repr_html_()
    good = tmp_path / "good.csv"
    good.write_text("<b>\n")
    with pytest.raises(longwire.FigureError, match="delays"):
        longwire.Log(good).plot("delays")


def test_a_specification_shows_its_options() -> None:
    shown = longwire.Link("rate=1mbit", delay="20ms", seed=7)._repr_html_()
    for cell in ("rate", "1mbit", "delay", "20ms", "seed", "7"):
        assert f"<td>{cell}</td>" in shown


def test_a_report_is_shown_without_the_program(
    run: "tuple[longwire.LiveLink, Path, str]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGWIRE", "/no/such/program")
    shown = run[0].report._repr_html_()
    assert "<td>link.up</td>" in shown and "<svg" not in shown
