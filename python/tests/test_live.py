"""Live links: processes, sockets, changes, reports."""

import asyncio
import errno
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import longwire


def echo(server: socket.socket) -> None:
    """Echoes the data of one connection."""
    connection, _address = server.accept()
    with connection:
        while data := connection.recv(4096):
            connection.sendall(data)


def base_of_ping(link: longwire.LiveLink, *words: str) -> float:
    """Returns the minimum round trip of three pings, in milliseconds."""
    output = link.near.check_output(
        ["ping", "-n", "-c", "3", "-i", "0.05", *words, "far"], text=True
    )
    return float(output.rsplit("= ", 1)[1].split("/")[0])


def test_processes_at_both_ends_find_each_other_by_name() -> None:
    with longwire.link(delay="10ms") as link:
        assert 20 <= base_of_ping(link) < 30
        answer = link.far.run(["ping", "-c", "1", "near"], stdout=subprocess.DEVNULL)
        assert answer.returncode == 0
    assert link.report["links"][0]["packets_in"] >= 4


def test_options_of_directions_differ() -> None:
    with longwire.link(up={"delay": "30ms"}, down={"delay": "1ms"}, seed=7) as link:
        assert 31 <= base_of_ping(link) < 40
    assert link.report["seed"] == 7


def test_a_popen_is_a_child_with_streams_directory_and_environment(tmp_path: Path) -> None:
    with longwire.link() as link:
        code = "read line; echo $line $WORD $(pwd); exit 7"
        process = link.far.popen(
            code,
            shell=True,
            cwd=tmp_path,
            env={"WORD": "word", "PATH": os.environ["PATH"]},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        output, _none = process.communicate("line\n", timeout=10)
        assert output.split() == ["line", "word", str(tmp_path)]
        assert process.returncode == 7
        assert link.near.run(["/no/such/program"], stderr=subprocess.DEVNULL).returncode == 127


def test_processes_have_the_user_of_the_caller() -> None:
    with longwire.link() as link:
        found = link.near.check_output(["id", "-u"], text=True)
    assert int(found) == os.getuid()


def test_sockets_of_both_networks_talk_in_one_process() -> None:
    with longwire.link(delay="10ms") as link:
        with link.far.create_server() as server:
            port = server.getsockname()[1]
            thread = threading.Thread(target=echo, args=(server,))
            thread.start()
            with link.near.create_connection(("far", port), timeout=10) as client:
                client.sendall(b"frame")
                assert client.recv(16) == b"frame"
                assert client.getpeername() == (link.far.address, port)
            thread.join()
        with link.near.socket(type=socket.SOCK_DGRAM) as sender:
            with link.far.socket(type=socket.SOCK_DGRAM) as receiver:
                receiver.bind((link.far.address, 9))
                receiver.settimeout(10)
                sender.sendto(b"datagram", (link.far.address, 9))
                assert receiver.recv(16) == b"datagram"


def test_asyncio_uses_sockets_and_processes_of_a_network() -> None:
    async def run(link: longwire.LiveLink) -> bytes:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(await reader.readexactly(5))
            writer.close()

        listening = link.far.create_server()
        server = await asyncio.start_server(handle, sock=listening)
        client = link.near.socket()
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, (link.far.address, listening.getsockname()[1]))
        reader, writer = await asyncio.open_connection(sock=client)
        writer.write(b"hello")
        answer = await reader.readexactly(5)
        writer.close()
        server.close()
        process = await link.near.create_subprocess_exec("true")
        assert await process.wait() == 0
        return answer

    with longwire.link(delay="1ms") as link:
        assert asyncio.run(run(link)) == b"hello"


def test_a_socket_that_the_system_refuses_is_an_os_error() -> None:
    with longwire.link() as link:
        with pytest.raises(OSError) as refused:
            link.near.socket(socket.AF_INET, 77)
        assert refused.value.errno == errno.EINVAL
        # The link still works.
        link.near.socket().close()


def test_changes_are_made_while_the_link_runs() -> None:
    with longwire.link(delay="1ms") as link:
        assert base_of_ping(link) < 10
        link.set(delay="20ms")
        assert 40 <= base_of_ping(link) < 50
        link.upward.set(delay="40ms")
        assert 60 <= base_of_ping(link) < 70
        link.off()
        lost = link.near.run(
            ["ping", "-c", "1", "-W", "0.2", "far"], stdout=subprocess.DEVNULL
        )
        assert lost.returncode == 1
        link.on()
        assert 60 <= base_of_ping(link) < 70
        assert link.stats()["totals"]["drops"]["outage"] == 1
        assert link.upward.stats()["links"] == 1


def test_a_scenario_changes_the_link_at_its_times() -> None:
    with longwire.link(delay="1ms") as link:
        link.scenario([("0s", {"delay": "20ms"}), ("1h", {"delay": "30ms"})])
        planned = link._control.ask("GET", "/changes")
        assert 40 <= base_of_ping(link) < 50
        times = [change["at_ns"] for change in planned["changes"]]
        assert len(times) == 2 and times[1] > 3_600 * 10**9


def test_the_stream_has_rates_until_the_link_ends() -> None:
    with longwire.link() as link:
        events = link.stream(every="50ms")
        next(events)
        base_of_ping(link)
        assert any(event["totals"]["packets_in"] >= 6 for event, _n in zip(events, range(20)))
    assert len(list(events)) <= 20


def test_a_refused_change_names_field_reason_and_remedy() -> None:
    with longwire.link(delay="1ms") as link:
        with pytest.raises(longwire.RefusedError) as refused:
            link.set(delay="fast")
        assert refused.value.field == f"set.{link.name}.delay"
        assert "fast" in str(refused.value.reason)
        assert refused.value.remedy
        assert base_of_ping(link) < 10


def test_a_link_that_cannot_start_names_the_option_and_the_reason() -> None:
    with pytest.raises(longwire.StartError) as refused:
        longwire.link(delay="fast")
    assert refused.value.field == "delay"
    assert "fast" in refused.value.reason
    with pytest.raises(longwire.StartError, match="no-such-option"):
        longwire.link(no_such_option=1)


def test_an_ended_link_says_so() -> None:
    link = longwire.link()
    link.close()
    link.close()
    for use in (
        link.stats,
        link.near.socket,
        lambda: link.near.run(["true"]),
        lambda: link.set(delay="1ms"),
    ):
        with pytest.raises(longwire.EndedError):
            use()


def test_a_program_that_is_killed_is_reported() -> None:
    link = longwire.link()
    assert link._process is not None
    link._process.kill()
    with pytest.raises(longwire.EndedError):
        link.close()
    assert repr(link).endswith("ended>")


def test_a_requirement_of_the_run_is_judged_at_its_end() -> None:
    with pytest.raises(longwire.FidelityError, match="packets_in"):
        with longwire.link(require="packets_in>1000"):
            pass


def test_names_of_a_requirement_are_those_of_the_report() -> None:
    link = {"drops": {"loss": 1}, "packets_in": 5, "packets_out": 4}
    port = {"artifacts": {"late": 0}, "packets_in": 5, "packets_out": 4}
    report = longwire.Report(
        {"ports": [{"name": "a", **port}], "links": [{"name": "a.up", **link}], "duration_s": 1.0}
    )
    assert report.unmet("a.up.drops=1,a.artifacts=0,drops.loss<30%") == []
    assert len(report.unmet("a.up.drops=0,drops.loss<1%")) == 2
    for wrong in ("pauses.max<5us", "drop=0", "a.down.drops=0", "packets_in", "packets_in>x"):
        with pytest.raises(ValueError, match=wrong.split("=")[0]):
            report.require(wrong)


def test_captures_and_logs_are_written(tmp_path: Path) -> None:
    with longwire.link(capture=tmp_path / "trace", log=tmp_path / "log.csv") as link:
        base_of_ping(link)
    assert (tmp_path / "trace.in.pcapng").stat().st_size > 500
    assert len((tmp_path / "log.csv").read_text().splitlines()) >= 6


def test_a_topology_is_given_as_text() -> None:
    text = """
[ports]
near = "packet:eth1"
far = "packet:eth2"
[[link]]
name = "radio"
delay = "15ms"
"""
    with longwire.link(topology=text) as link:
        assert link.name == "radio"
        assert 30 <= base_of_ping(link) < 40
        link.set(delay="1ms")
        assert base_of_ping(link) < 10


def test_two_links_at_once_are_apart() -> None:
    with longwire.link(delay="1ms") as short, longwire.link(delay="20ms") as long:
        assert base_of_ping(short) < 10
        assert base_of_ping(long) >= 40


def test_many_threads_share_a_link() -> None:
    with longwire.link() as link:
        failures = []

        def work() -> None:
            try:
                for _ in range(20):
                    link.near.socket().close()
                    link.stats()
            except longwire.LongwireError as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGWIRE", "/no/such/program")
    message = "LONGWIRE names /no/such/program, which is not a program"
    with pytest.raises(longwire.ProgramNotFoundError, match=message):
        longwire.link()


def test_a_command_without_words_is_refused() -> None:
    with longwire.link() as link:
        with pytest.raises(ValueError, match="no words"):
            link.near.run([])


@pytest.mark.parametrize("name", ["with a blank", "x" * 100])
def test_the_directory_for_temporary_files_has_any_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
    with longwire.link(delay="1ms") as link:
        assert base_of_ping(link) < 10


def test_a_link_shows_itself_in_notebooks() -> None:
    with longwire.link() as link:
        base_of_ping(link)
        table = link._repr_html_()
    assert "<td>link.up</td>" in table and "<td>near</td>" in table
    assert link.report._repr_html_().count("<tr>") == 6
