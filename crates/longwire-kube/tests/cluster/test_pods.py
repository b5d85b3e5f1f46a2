"""Real pods on two machines: containerd, kubelets, the manifests as a user applies them, and
`ping` and `iperf3` through links. `cargo xtask kube-test pods` builds what it needs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

import images
from bed import until
from machines import Machines

PACKAGING = Path(os.environ["LONGWIRE_PACKAGING"])
TOOLS = "longwire.test/tools:1"
# One way, in milliseconds.
UNDERLAY = 0.5


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    longwire, kube = Path(os.environ["LONGWIRE"]), Path(os.environ["LONGWIRE_KUBE"])
    made = [
        images.write(folder / "pause.tar", "longwire.test/pause:1", images.tools("busybox"),
                     {"Cmd": ["sleep", "1000000"]}),
        images.write(folder / "tools.tar", TOOLS, images.tools("busybox", "ping", "iperf3"), {"Cmd": ["sleep", "100000"]}),
        images.write(folder / "longwire.tar", "ghcr.io/longwire/longwire:0.1.0", {"longwire": longwire},
                     {"Entrypoint": ["longwire"]}),
        images.write(folder / "kube.tar", "ghcr.io/longwire/longwire-kube:0.1.0", {"longwire-kube": kube},
                     {"Entrypoint": ["longwire-kube"]}),
    ]
    cluster = Machines(Path(os.environ["LONGWIRE_KUBE_BIN"]), longwire)
    try:
        cluster.up(made, f"{UNDERLAY}ms")
        cluster.kubectl("apply", "--server-side", "-k", PACKAGING / "kubernetes")
        until(lambda: is_rolled_out(cluster), 120, "the agents and controllers are ready", 0.5)
        yield cluster
    finally:
        logs = {name: cluster.kubectl("-n", "longwire-system", "logs", "-l", f"app.kubernetes.io/component={name}",
                                      "--all-containers", "--tail=40", check=False) for name in ["node", "controller"]}
        for name, log in logs.items():
            (folder / f"{name}.log").write_text(log)
        cluster.close()


def is_rolled_out(cluster: Machines) -> bool:
    daemons = cluster.get("-n", "longwire-system", "daemonset", "longwire-node")["status"]
    controllers = cluster.get("-n", "longwire-system", "deployment", "longwire-controller")["status"]
    return daemons.get("numberReady") == 2 and controllers.get("readyReplicas") == 2


def container(command: list[str]) -> dict:
    return {"name": "app", "image": TOOLS, "imagePullPolicy": "Never", "command": command}


def pod(cluster: Machines, name: str, node: str, command: list[str] | None = None, **labels: str) -> str:
    """Runs a pod; returns its address."""
    cluster.apply({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name, **labels}},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
                 "containers": [container(command or ["sleep", "100000"])]},
    })
    return address(cluster, name)


def address(cluster: Machines, name: str) -> str:
    def probe():
        status = cluster.get("pod", name)["status"]
        return status.get("phase") == "Running" and status.get("podIP")

    return until(probe, 90, f"pod {name} runs", 0.2)


def inside(cluster: Machines, name: str, *words: str) -> str:
    """Runs a command in a pod, in its network: as `kubectl exec`, without a server for streams."""
    view = cluster.get("pod", name)
    machine = cluster.machines[view["spec"]["nodeName"]]
    identity = view["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    done = machine.here("ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", f"e{time.monotonic_ns()}", identity, *words,
                        check=False)
    return done.stdout + done.stderr


def round_trip(cluster: Machines, name: str, to: str, count: int = 20) -> float | None:
    """The median round trip in milliseconds."""
    text = inside(cluster, name, "ping", "-c", str(count), "-i", "0.1", "-W", "2", to)
    times = sorted(float(found) for found in re.findall(r"time=([0-9.]+) ms", text))
    return times[len(times) // 2] if times else None


def link(cluster: Machines, name: str, **spec) -> None:
    cluster.apply({"apiVersion": "longwire.dev/v1alpha1", "kind": "Link",
                   "metadata": {"name": name, "namespace": "default"}, "spec": spec})


def by_label(**labels: str) -> dict:
    return {"podSelector": {"matchLabels": labels}}


def attached(cluster: Machines, name: str, count: int = 1) -> dict:
    def probe():
        status = cluster.get("links.longwire.dev", name).get("status", {})
        if status.get("attached") != count:
            raise RuntimeError(f"{status}")
        return status

    return until(probe, 60, f"the link {name} is attached", 0.2)


def counted(cluster: Machines, kind: str, name: str) -> dict:
    """The status once it has counters."""
    def probe():
        status = cluster.get(kind, name).get("status", {})
        if not status.get("carried", 0) > 100:
            raise RuntimeError(f"{status}")
        return status

    return until(probe, 30, "counters in the status", 0.3)


@pytest.fixture
def clean(cluster):
    yield
    for kind in ["links", "networks", "scenarios"]:
        cluster.kubectl("delete", f"{kind}.longwire.dev", "--all")
    cluster.kubectl("delete", "deployments,pods", "--all", "--grace-period=1")


def test_ping_and_iperf3_across_a_link(cluster, clean):
    server = pod(cluster, "server", "m2", ["iperf3", "-s"])
    pod(cluster, "client", "m1")
    before = round_trip(cluster, "client", server)
    print(f"\nbare, across nodes: {before} ms")
    assert before >= 2 * UNDERLAY, before
    link(cluster, "slow", **{"from": by_label(app="client"), "to": by_label(app="server"),
                             "link": {"delay": "40ms", "rate": "20mbit"}})
    attached(cluster, "slow")
    after = round_trip(cluster, "client", server)
    print(f"40 ms each way: {after} ms; {after - before:.3f} ms more than bare")
    assert 79.9 < after - before < 85, (before, after)
    result = json.loads(inside(cluster, "client", "iperf3", "-c", server, "-J", "-t", "4"))
    rate = result["end"]["sum_received"]["bits_per_second"] / 1e6
    print(f"iperf3 over 20 Mbit/s: {rate:.1f} Mbit/s")
    assert 10 < rate < 20, rate
    status = counted(cluster, "links.longwire.dev", "slow")
    print(cluster.kubectl("get", "links.longwire.dev", "-o", "wide"))
    assert status["pods"] == 1
    cluster.kubectl("delete", "link.longwire.dev", "slow")
    until(lambda: round_trip(cluster, "client", server, 5) < before + 5, 30, "traffic without the link")


def test_a_rollout_keeps_the_link(cluster, clean):
    server = pod(cluster, "server", "m2")
    cluster.apply({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web", "version": "1"}},
                              "spec": {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
                                       "containers": [container(["ping", "-i", "0.2", server])]}}},
    })
    link(cluster, "slow", **{"from": by_label(app="web"), "link": {"delay": "30ms"}})
    attached(cluster, "slow", 2)
    names = lambda version: [p["metadata"]["name"] for p in cluster.get("pods", "-l", f"app=web,version={version}")["items"]
                             if p["status"]["phase"] == "Running" and not p["metadata"].get("deletionTimestamp")]
    old = names(1)
    cluster.kubectl("patch", "deployment", "web", "-p",
                    json.dumps({"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}))
    until(lambda: len(names(2)) == 2 and not names(1), 90, "a rollout", 0.3)
    attached(cluster, "slow", 2)
    assert not set(old) & set(names(2))
    for name in names(2):
        found = round_trip(cluster, name, server)
        print(f"\n{name}: {found} ms")
        assert found > 60, found


def test_a_node_that_is_lost(cluster, clean):
    server = pod(cluster, "server", "m2")
    near = pod(cluster, "near", "m1")
    pod(cluster, "client", "m1")
    link(cluster, "slow", **{"from": by_label(app="client"), "link": {"delay": "30ms"}})
    attached(cluster, "slow")
    assert round_trip(cluster, "client", server, 5) > 60
    lost = cluster.machines["m2"]
    # The machine is gone from the network, and its kubelet with it.
    lost.kubelet.send(signal.SIGSTOP)
    for device in ["u0", "cp"]:
        lost.here("ip", "link", "set", device, "down")
    until(lambda: not cluster.are_ready(), 60, "the node is lost", 0.5)
    assert round_trip(cluster, "client", near, 5) > 60, "links of the other node stay"
    for device in ["u0", "cp"]:
        lost.here("ip", "link", "set", device, "up")
    n = lost.number
    routes = [f"10.96.0.1/32 via 172.30.{n}.1", f"10.88.{3 - n}.0/24 via 172.31.0.{3 - n}"]
    for route in routes:
        lost.here("ip", "route", "replace", *route.split())
    lost.kubelet.send(signal.SIGCONT)
    until(cluster.are_ready, 60, "the node is back", 0.5)
    found = until(lambda: round_trip(cluster, "client", server, 5), 30, "the way to the node that is back")
    assert found > 60


def test_the_agent_and_the_node_process_restart(cluster, clean):
    server = pod(cluster, "server", "m2")
    pod(cluster, "client", "m1")
    link(cluster, "slow", **{"from": by_label(app="client"), "link": {"delay": "30ms"}})
    attached(cluster, "slow")
    log: list[str] = []
    pinging = threading.Thread(target=lambda: log.append(
        inside(cluster, "client", "ping", "-c", "150", "-i", "0.1", "-W", "2", server)))
    pinging.start()
    time.sleep(2)
    machine = cluster.machines["m1"]
    for program in ["longwire-kube", "longwire"]:
        listed = machine.here("ctr", "-n", "k8s.io", "containers", "ls", check=False).stdout
        image = f"ghcr.io/longwire/{program}:0.1.0"
        running = machine.here("ctr", "-n", "k8s.io", "tasks", "ls").stdout
        for line in listed.splitlines():
            if image in line.split():
                identity = line.split()[0]
                if any(row.startswith(identity) and "RUNNING" in row for row in running.splitlines()):
                    machine.here("ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", identity, check=False)
        time.sleep(5)
    pinging.join()
    found = {int(seq): float(took) for seq, took in re.findall(r"icmp_seq=(\d+).*time=([0-9.]+) ms", log[0])}
    bare = [seq for seq, took in found.items() if took < 55]
    lost = 150 - len(found)
    print(f"\n150 pings over a kill of the agent and of the node: {lost} lost, {len(bare)} without the link")
    # The kubelet takes its time to start the container again: up to 1 s of back-off, and one to look.
    assert found[max(found)] > 60, "the link is back"
    assert lost <= 5, lost
    attached(cluster, "slow")


def test_a_network_counts_the_underlay_once(cluster, clean):
    b = pod(cluster, "b", "m2")
    pod(cluster, "a", "m1")
    before = round_trip(cluster, "a", b)
    cluster.apply({
        "apiVersion": "longwire.dev/v1alpha1", "kind": "Network", "metadata": {"name": "wan", "namespace": "default"},
        "spec": {"topology": '[[link]]\nname = "wan"\nbetween = ["a", "b"]\ndelay = "20ms"\n',
                 "ports": {"a": by_label(app="a"), "b": by_label(app="b")}},
    })

    def probe() -> float:
        found = round_trip(cluster, "a", b)
        if not found or found < 30:
            raise RuntimeError(f"{found} ms; {cluster.get('networks.longwire.dev', 'wan').get('status')}")
        return found

    found = until(probe, 60, "the network")
    print(f"\nbare {before} ms; 20 ms each way over an underlay of {UNDERLAY} ms: {found} ms")
    assert abs(found - 40) < 0.5, found
    until(lambda: [c for c in cluster.get("networks.longwire.dev", "wan").get("status", {}).get("conditions", [])
                   if c["type"] == "Attached" and c["status"] == "True"], 30, "a condition")
    print(cluster.kubectl("get", "networks.longwire.dev", "-o", "wide"))


def test_without_the_manifests_nothing_is_left(cluster):
    server = pod(cluster, "server", "m2")
    pod(cluster, "client", "m1")
    link(cluster, "slow", **{"from": by_label(app="client"), "link": {"delay": "30ms"}})
    attached(cluster, "slow")
    cluster.kubectl("delete", "-k", PACKAGING / "kubernetes", "--wait=false")
    until(lambda: not cluster.kubectl("-n", "longwire-system", "get", "pods", "-o", "name", check=False).startswith("pod"),
          90, "no pods of Longwire", 0.5)
    assert round_trip(cluster, "client", server, 5) < 30
    devices = inside(cluster, "client", "ip", "link")
    assert "lw-" not in devices, devices
