"""Networks with a host at each port."""

import os
import signal
import socket
import threading
from pathlib import Path

import pytest
from conftest import namespaces, processes, python, until

import longwire

HOMES = """
[ports]
home1 = "packet:eth1"
home2 = "packet:eth2"
core = "packet:eth3"

[[link]]
name = "adsl{n}"
between = ["10.1.0.0/29"]
match = "src={a}"
count = 2
delay = "10ms"
"""

ADDRESSES = {"home1": "10.1.0.1/24", "home2": "10.1.0.2/24", "core": ["10.2.0.1/16", "fd00::1/64"]}


def base_of_ping(node: longwire.Node, target: str) -> float:
    """Returns the minimum round trip of three pings, in milliseconds."""
    output = node.check_output(["ping", "-4", "-n", "-c", "3", "-i", "0.05", target], text=True)
    return float(output.rsplit("= ", 1)[1].split("/")[0])


def test_hosts_of_three_ports_find_each_other_by_name() -> None:
    with longwire.network(HOMES, addresses=ADDRESSES) as net:
        assert list(net) == ["home1", "home2", "core"] and "core" in net and len(net) == 3
        assert net["core"] is net.node("core") is net.nodes["core"]
        assert 20 <= base_of_ping(net["home1"], "core") < 30
        net.set("adsl1.up", delay="40ms")
        assert 50 <= base_of_ping(net["home1"], "core") < 60
        assert 20 <= base_of_ping(net["home2"], "core") < 30
        first, all_of_them = net.stats("adsl1*"), net.stats()
        assert (first["links"], all_of_them["links"]) == (2, 4)
        assert first["totals"]["packets_in"] == 12
        assert net.links("adsl2.up").stats()["totals"]["packets_in"] == 3
        assert repr(net) == "<longwire network of home1, home2, core: running>"
    assert [port["name"] for port in net.report["ports"]] == ["home1", "home2", "core"]
    assert sum(net.report["switch"]["flooded"]) == 0


def test_sockets_of_all_hosts_talk_in_one_process() -> None:
    with longwire.network(HOMES, addresses=ADDRESSES) as net:
        received = []
        with net["core"].create_server(("core", 0)) as server:

            def accept() -> None:
                for _ in range(2):
                    connection, address = server.accept()
                    with connection:
                        received.append((address[0], connection.recv(16)))

            thread = threading.Thread(target=accept)
            thread.start()
            for home in ("home1", "home2"):
                port = server.getsockname()[1]
                with net[home].create_connection(("core", port), timeout=10) as client:
                    client.sendall(home.encode())
            thread.join()
        assert sorted(received) == [("10.1.0.1", b"home1"), ("10.1.0.2", b"home2")]
        assert net["core"].resolve("core", socket.AF_INET6) == "fd00::1"
        with pytest.raises(longwire.LongwireError, match="home1 has no IPv6 address"):
            print(net["home1"].address6)


def test_ports_near_and_far_are_the_first_hosts(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    file.write_text("[ports]\nmiddle = 'null'\nfar = 'null'\nnear = 'null'\n")
    with longwire.network(file, seed=7) as net:
        for number, name in enumerate(("near", "far", "middle"), 1):
            assert net[name].address == f"10.77.0.{number}"
            found = net["middle"].check_output(["getent", "ahostsv4", name], text=True)
            assert found.startswith(f"10.77.0.{number} ")
    assert net.report["seed"] == 7


def test_links_go_down_and_scenarios_are_planned() -> None:
    with longwire.network(HOMES, addresses=ADDRESSES) as net:
        net.off("adsl1")
        lost = net["home1"].run(["ping", "-c", "1", "-W", "0.3", "-q", "10.2.0.1"])
        assert lost.returncode == 1
        net.on("adsl1")
        net.scenario([("100ms", {"adsl*": {"delay": "30ms"}})])
        events = net.stream(every="50ms")
        assert next(events)["totals"]
        changed = until(lambda: base_of_ping(net["home2"], "core") >= 60)
    assert changed
    assert len(net.report["changes"]["made"]) == 3


def test_wrong_topologies_and_addresses_have_field_and_reason() -> None:
    with pytest.raises(longwire.StartError) as refused:
        longwire.network(HOMES.replace("10ms", "fast"))
    assert refused.value.field == "link.delay"
    assert "fast" in refused.value.reason and refused.value.remedy
    assert str(refused.value).startswith("topology:12:")
    with pytest.raises(longwire.StartError, match="No such file") as refused:
        longwire.network("no-such.toml")
    assert refused.value.field is None
    for addresses in ({"x": "10.0.0.1/8"}, {"core": "10.0.0.1"}):
        with pytest.raises(longwire.StartError) as refused:
            longwire.network(HOMES, addresses=addresses)
        assert refused.value.field == "address"
    with longwire.network(HOMES, addresses=ADDRESSES) as net:
        with pytest.raises(KeyError, match="known: home1, home2, core"):
            net["x"]
        with pytest.raises(longwire.RefusedError, match="adsl1, adsl2"):
            net.set("x", delay="1ms")


def test_nothing_is_left_of_a_network_whose_python_is_killed() -> None:
    start = f"""
import longwire, os, sys
net = longwire.network({HOMES!r}, addresses={ADDRESSES!r})
for node in net.nodes.values():
    node.popen("setsid sleep 1000 & wait", shell=True)
print(net._directory.path, *(os.readlink(f"/proc/{{node._process}}/ns/net")
    for node in net.nodes.values()), flush=True)
sys.stdin.readline()
"""
    program = python(start, stdin=-1)
    assert program.stdout is not None
    directory, *networks = program.stdout.readline().split()
    assert len(networks) == 3 and namespaces().issuperset(networks)
    os.kill(program.pid, signal.SIGKILL)
    program.wait(30)
    assert until(lambda: not processes(directory))
    assert until(lambda: namespaces().isdisjoint(networks))
