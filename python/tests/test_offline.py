"""Links in virtual time: same results as the program, and use with other libraries."""

import csv
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import longwire
from longwire._program import program

SPECIFICATIONS = [
    "",
    "rate=10mbit delay=20ms loss=1%",
    "rate=5mbit queue=codel delay=normal:mean=20ms,stddev=2ms",
    "rate=8mbit queue=20p loss=gilbert:p=2%,r=30%",
    "delay=uniform:min=1ms,max=9ms order=reorder",
    "rate=20mbit duplicate=5% delay=3ms",
    "rate=9mbit queue=pie",
]


def arrivals(count: int) -> "tuple[list[int], list[int]]":
    """Returns times in bursts, and lengths from 60 to 1514 bytes."""
    times, now = [], 1_700_000_000_000_000_000
    for number in range(count):
        now += 100_000 if number % 7 else 3_000_000
        times.append(now)
    return times, [60 + number * 37 % 1455 for number in range(count)]


def write_capture(path: Path, times: "list[int]", lengths: "list[int]") -> None:
    """Writes frames of zeros with nanosecond stamps."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, 1))
        for at, length in zip(times, lengths):
            file.write(struct.pack("<IIII", at // 10**9, at % 10**9, length, length))
            file.write(bytes(length))


def decisions(results: longwire.Results) -> "list[tuple[int, str, int, int]]":
    """Returns the rows as sorted tuples, with verdicts by name."""
    columns = [read(column) for column in results.columns().values()]
    rows = zip(*columns)
    return sorted((f, longwire.VERDICTS[v], d, r) for f, v, d, r in rows)


def read(column: Any) -> "list[int]":
    """Returns the numbers of a column through the numpy interface."""
    import ctypes

    interface = column.__array_interface__
    kind = {"<u8": ctypes.c_uint64, "|u1": ctypes.c_uint8}[interface["typestr"]]
    at, _read_only = interface["data"]
    return list((kind * interface["shape"][0]).from_address(at))


def decision(row: "dict[str, str]") -> "tuple[int, str, int, int]":
    """Converts a row of the program's log to a row of results."""
    if row["verdict"] == "drop":
        return int(row["frame"]), row["reason"], 0, 0
    arrival = int(row["epoch_ns"]) + int(row["arrival_ns"])
    times = (arrival + int(row[name]) for name in ("sojourn_ns", "delay_ns"))
    return (int(row["frame"]), "delivered", *times)  # type: ignore[return-value]


@pytest.mark.parametrize("specification", SPECIFICATIONS)
def test_verdicts_are_those_of_the_program(specification: str, tmp_path: Path) -> None:
    times, lengths = arrivals(2_000)
    write_capture(tmp_path / "in.pcap", times, lengths)
    options = [f"--{word}" for word in specification.split()]
    command = [program(), "simulate", "in.pcap", "out.pcap", "--log", "log.csv", "--seed", "7", "-q", *options]
    subprocess.run(command, check=True, cwd=tmp_path)
    with open(tmp_path / "log.csv", newline="") as file:
        logged = sorted(map(decision, csv.DictReader(file)))
    found = decisions(longwire.Link(specification, seed=7).simulate(times, lengths))
    assert found == logged


def test_the_seed_decides() -> None:
    times, lengths = arrivals(1_000)

    def of(seed: int) -> Any:
        return decisions(longwire.Link("loss=10%", seed=seed).simulate(times, lengths))

    assert of(7) == of(7)
    assert of(7) != of(8)


def test_numpy_is_read_and_reads_without_a_copy() -> None:
    numpy = pytest.importorskip("numpy")
    times = numpy.arange(0, 10_000_000, 1_000, dtype=numpy.int64)
    lengths = numpy.full(len(times), 1514, dtype=numpy.uint16)
    link = longwire.Link(rate="10mbit", queue="10p")
    results = link.simulate(times, lengths)
    releases = numpy.asarray(results.release_ns)
    assert releases.__array_interface__["data"] == results.release_ns.__array_interface__["data"]
    kept = numpy.asarray(results.verdict) == 0
    assert 0 < kept.sum() < len(times)
    assert (releases[kept] > times[kept]).all() and not releases[~kept].any()
    # Every second frame, from strided memory; equal to the results from a list.
    strided = link.simulate(times[::2], 1514)
    assert decisions(strided) == decisions(link.simulate(times[::2].tolist(), 1514))


def test_arrow_libraries_take_the_columns() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    times, lengths = arrivals(500)
    results = longwire.Link("loss=30%", seed=3).simulate(pyarrow.array(times), pyarrow.array(lengths))
    table = pyarrow.table(
        {name: pyarrow.array(column) for name, column in results.columns().items()}
    )
    verdicts = table["verdict"].to_pylist()
    assert set(verdicts) == {"delivered", "loss"}
    nulls = [release is None for release in table["release_ns"].to_pylist()]
    assert nulls == [verdict == "loss" for verdict in verdicts]
    # Chunked columns arrive as a stream.
    parts = pyarrow.chunked_array([times[:100], times[100:]])
    assert decisions(longwire.Link("loss=30%", seed=3).simulate(parts, lengths)) == decisions(results)


def test_polars_and_pandas_and_duckdb_take_the_columns() -> None:
    polars = pytest.importorskip("polars")
    times, lengths = arrivals(100)
    results = longwire.Link("loss=30%").simulate(polars.Series(times), polars.Series(lengths))
    frame = polars.DataFrame({name: polars.Series(c) for name, c in results.columns().items()})
    assert frame["release_ns"].null_count() == (frame["verdict"].cast(str) == "loss").sum()
    pandas = pytest.importorskip("pandas")
    again = longwire.Link("loss=30%").simulate(pandas.Series(times), pandas.Series(lengths))
    assert decisions(again) == decisions(results)
    duckdb = pytest.importorskip("duckdb")
    packets = frame.to_arrow()
    assert duckdb.sql("select count(*) from packets").fetchall() == [(len(packets),)]


@pytest.mark.parametrize(
    ("times", "lengths", "message"),
    [
        ([2, 1], 60, "earlier"),
        ([1, 2], [60, 60, 60], "lengths"),
        ([1], 0, "length 0"),
        ([1], 2**32, "it must be 1 to"),
        ([-1], 60, "integers"),
        (["x"], 60, "integers"),
        (None, 60, "NoneType"),
    ],
)
def test_wrong_arrays_are_refused(times: Any, lengths: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        longwire.Link().simulate(times, lengths)


def test_a_wrong_specification_names_the_option_and_the_reason() -> None:
    with pytest.raises(longwire.SpecificationError) as refused:
        longwire.Link("rate=10mbit delay=fast")
    assert refused.value.field == "delay"
    assert "fast" in refused.value.reason
    with pytest.raises(longwire.SpecificationError, match="dely"):
        longwire.Link(dely="1ms")


def test_no_frames_are_no_rows() -> None:
    assert len(longwire.Link("rate=1mbit").simulate([], [])) == 0


def test_other_threads_go_on_and_interrupts_end_a_simulation() -> None:
    code = """
import longwire, sys, threading
beats = []
def beat():
    while True:
        beats.append(1); done.wait(0.001)
done = threading.Event()
threading.Thread(target=beat, daemon=True).start()
link = longwire.Link("rate=10gbit delay=normal:mean=20ms,stddev=2ms loss=1%")
times = list(range(0, 3_000_000))
print("ready", flush=True)
before = len(beats)
try:
    while True:
        link.simulate(times, 60)
except KeyboardInterrupt:
    print(len(beats) - before)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    output, _none = process.communicate(timeout=20)
    assert process.returncode == 0
    assert int(output) > 20


def test_captures_and_networks_pass_the_program(tmp_path: Path) -> None:
    times, lengths = arrivals(300)
    write_capture(tmp_path / "in.pcap", times, lengths)
    report = longwire.simulate(tmp_path / "in.pcap", tmp_path / "out.pcap", loss="10%", seed=7)
    row = report["links"][0]
    assert row["packets_in"] == 300 and 0 < row["drops"]["loss"] < 100
    assert (tmp_path / "out.pcap").exists()
    report.require("artifacts-lost=0,drops.loss<20%")
    with pytest.raises(longwire.FidelityError):
        report.require("drops=0")
    network = tmp_path / "network.toml"
    network.write_text(
        '[ports]\na = "null"\nb = "null"\n[[link]]\nname = "l"\nmatch = "in-port=a"\ndelay = "1ms"\n'
    )
    report = longwire.simulate(network, inputs={"a": tmp_path / "in.pcap"})
    assert report["ports"][0]["packets_in"] == 300
    with pytest.raises(longwire.StartError, match="no-such"):
        longwire.simulate(tmp_path / "no-such.pcap")
