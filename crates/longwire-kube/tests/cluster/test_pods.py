"""Real pods on two machines: containerd, kubelets, the chart as users install it, and `ping` and
`iperf3` through links. `cargo xtask kube-test pods` builds the required programs.
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
CHART = PACKAGING / "helm" / "longwire"
SYSTEM = "longwire-system"
TOOLS = "longwire.test/tools:1"
# One-way delay, in milliseconds.
UNDERLAY = 0.5
# Required times in seconds: for a link to follow a change, and to return after a crash.
FOLLOWS_WITHIN, RETURNS_WITHIN = 1.0, 2.0


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
        # The commands of docs/clusters.md.
        cluster.kubectl("create", "namespace", SYSTEM)
        cluster.kubectl("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=privileged")
        cluster.helm("install", "longwire", CHART, "--namespace", SYSTEM)
        until(lambda: is_rolled_out(cluster), 120, "the agents and controllers are ready", 0.5)
        yield cluster
    finally:
        logs = {name: cluster.kubectl("-n", SYSTEM, "logs", "-l", f"app.kubernetes.io/component={name}",
                                      "--all-containers", "--tail=40", check=False) for name in ["node", "controller"]}
        for name, log in logs.items():
            (folder / f"{name}.log").write_text(log)
        cluster.close()


def is_rolled_out(cluster: Machines) -> bool:
    daemons = cluster.get("-n", SYSTEM, "daemonset", "longwire-node")["status"]
    controllers = cluster.get("-n", SYSTEM, "deployment", "longwire-controller")["status"]
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
    """Runs a command in a pod and its network, like `kubectl exec` but without a streaming server."""
    view = cluster.get("pod", name)
    machine = cluster.machines[view["spec"]["nodeName"]]
    identity = view["status"]["containerStatuses"][0]["containerID"].removeprefix("containerd://")
    done = machine.here("ctr", "-n", "k8s.io", "tasks", "exec", "--exec-id", f"e{time.monotonic_ns()}", identity, *words,
                        check=False)
    return done.stdout + done.stderr


def round_trip(cluster: Machines, name: str, to: str, count: int = 20) -> float | None:
    """Returns the median RTT in milliseconds."""
    text = inside(cluster, name, "ping", "-c", str(count), "-i", "0.1", "-W", "2", to)
    times = sorted(float(found) for found in re.findall(r"time=([0-9.]+) ms", text))
    return times[len(times) // 2] if times else None


class Pings:
    """Pings sent by a pod every 50 ms during an event."""

    INTERVAL = 0.05

    def __init__(self, cluster: Machines, name: str, to: str, seconds: float):
        self.count, self.text = int(seconds / self.INTERVAL), ""

        def run() -> None:
            times = ["-c", str(self.count), "-i", str(self.INTERVAL), "-W", "2"]
            self.text = inside(cluster, name, "ping", "-D", "-n", *times, to)

        self.thread = threading.Thread(target=run)
        self.thread.start()
        time.sleep(1)

    def sent(self) -> dict[int, tuple[float, float]]:
        """Waits for the end. Returns the send time of each answered ping, by the machine's clock in
        seconds, and its RTT in milliseconds."""
        self.thread.join()
        found = read_pings(self.text)
        assert found, self.text
        return found

    def lost(self) -> int:
        return self.count - len(self.sent())

    def first(self, since: float, is_right) -> float:
        """Returns the time from `since` until all RTTs satisfy `is_right`, in seconds."""
        wrong = [at for at, took in self.sent().values() if not is_right(took)]
        last = max([at for at in wrong if at >= since], default=since - self.INTERVAL)
        return last + self.INTERVAL - since


def read_pings(text: str) -> dict[int, tuple[float, float]]:
    found = re.findall(r"\[([0-9.]+)\].*icmp_seq=(\d+).*time=([0-9.]+) ms", text)
    return {int(seq): (float(stamp) - float(took) / 1000, float(took)) for stamp, seq, took in found}


def is_slow(took: float) -> bool:
    return took > 55


def is_bare(took: float) -> bool:
    return took < 30


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
    """Returns the status once it has counters."""
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


def test_the_chart_has_what_the_plain_manifests_have(cluster):
    cluster.helm("lint", "--strict", CHART)
    for name in ["crds", "rbac", "node", "controller"]:
        # `kubectl diff` fails if there are differences, and shows them.
        cluster.kubectl("diff", "--server-side", "--force-conflicts", "-f", PACKAGING / "kubernetes" / f"{name}.yaml")
    # Changed values affect the pods, and nothing else.
    cluster.helm("upgrade", "longwire", CHART, "--namespace", SYSTEM, "--set", "controller.replicas=1")
    replicas = lambda: cluster.get("-n", SYSTEM, "deployment", "longwire-controller")["status"].get("readyReplicas")
    until(lambda: replicas() == 1, 60, "one controller", 0.5)
    with pytest.raises(RuntimeError, match="replica"):
        cluster.helm("upgrade", "longwire", CHART, "--namespace", SYSTEM, "--set", "controller.replica=1")
    cluster.helm("rollback", "longwire", "1", "--namespace", SYSTEM)
    until(lambda: replicas() == 2, 60, "two controllers", 0.5)


def test_ping_and_iperf3_across_a_link(cluster, clean):
    server = pod(cluster, "server", "m2", ["iperf3", "-s"])
    pod(cluster, "client", "m1")
    before = round_trip(cluster, "client", server)
    print(f"\nbare, across nodes: {before} ms")
    assert before >= 2 * UNDERLAY, before
    link(cluster, "slow", **{"from": by_label(app="client"), "to": by_label(app="server"),
                             "link": {"delay": "40ms", "rate": "20mbit"}})
    attached(cluster, "slow")
    # The machines share two cores, which other programs may occupy during one of the medians.
    after = min(round_trip(cluster, "client", server) for _ in range(3))
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


def test_a_link_comes_and_goes_within_a_second(cluster, clean):
    server = pod(cluster, "server", "m2")
    pod(cluster, "client", "m1")
    pings = Pings(cluster, "client", server, 12)
    times = []
    for act in [lambda: link(cluster, "slow", **{"from": by_label(app="client"), "link": {"delay": "30ms"}}),
                lambda: cluster.kubectl("label", "pod", "client", "app=idle", "--overwrite"),
                lambda: cluster.kubectl("label", "pod", "client", "app=client", "--overwrite")]:
        act()
        times.append(time.time())
        time.sleep(2.5)
    sent = sorted(pings.sent().values())
    ends = [*times[1:], times[2] + 2]
    taken = []
    for at, end, is_right in zip(times, ends, [is_slow, is_bare, is_slow]):
        # Ignore the half second before `end`: the next change acts before its time is noted.
        wrong = [when for when, took in sent if at <= when < end - 0.5 and not is_right(took)]
        taken.append(max(wrong) + Pings.INTERVAL - at if wrong else 0.0)
    numbers = ", ".join(f"{one * 1000:.0f}" for one in taken)
    print(f"\na link is attached, removed with its label, and attached again within {numbers} ms")
    assert max(taken) < FOLLOWS_WITHIN, taken
    assert pings.lost() <= 3, pings.lost()


def test_a_rollout_keeps_the_link(cluster, clean):
    server = pod(cluster, "server", "m2")
    cluster.apply({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                 "template": {"metadata": {"labels": {"app": "web", "version": "1"}},
                              "spec": {"terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
                                       "containers": [container(["ping", "-D", "-n", "-i", "0.1", server])]}}},
    })
    link(cluster, "slow", **{"from": by_label(app="web"), "link": {"delay": "30ms"}})
    attached(cluster, "slow", 2)
    names = lambda version: [p["metadata"]["name"] for p in cluster.get("pods", "-l", f"app=web,version={version}")["items"]
                             if p["status"]["phase"] == "Running" and not p["metadata"].get("deletionTimestamp")]
    old = until(lambda: len(found := names(1)) == 2 and found, 30, "two running pods")
    # Ping from both pods until they end.
    traffic = {name: Pings(cluster, name, server, 60) for name in old}
    cluster.kubectl("patch", "deployment", "web", "-p",
                    json.dumps({"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}))
    until(lambda: len(names(2)) == 2 and not names(1), 90, "a rollout", 0.3)
    attached(cluster, "slow", 2)
    time.sleep(2)
    assert not set(old) & set(names(2))
    for name, pings in traffic.items():
        found = [took for _, took in pings.sent().values()]
        print(f"\n{name}, until it ended: {len(found)} pings, from {min(found)} to {max(found)} ms", end="")
        assert all(map(is_slow, found)), pings.text
    for name in names(2):
        view = cluster.get("pod", name)
        found = read_pings(cluster.machines[view["spec"]["nodeName"]].log(view))
        sent = sorted(found.values())
        bare = [at for at, took in sent if not is_slow(took)]
        taken = bare[-1] + 0.1 - sent[0][0] if bare else 0.0
        print(f"\n{name}, from its start: {len(found)} pings, the last {sent[-1][1]} ms; "
              f"{taken * 1000:.0f} ms without the link", end="")
        assert is_slow(sent[-1][1])
        assert taken < FOLLOWS_WITHIN, taken


def test_a_node_that_is_lost(cluster, clean):
    server = pod(cluster, "server", "m2", tier="far")
    near = pod(cluster, "near", "m1")
    pod(cluster, "client", "m1", tier="far")
    link(cluster, "slow", **{"from": by_label(tier="far"), "link": {"delay": "30ms"}})
    attached(cluster, "slow", 2)
    # Both ends have the link.
    assert round_trip(cluster, "client", server, 5) > 120
    lost = cluster.machines["m2"]
    pings = Pings(cluster, "client", near, 22)
    # The machine leaves the network, and so does its kubelet.
    lost.kubelet.send(signal.SIGSTOP)
    for device in ["u0", "cp"]:
        lost.here("ip", "link", "set", device, "down")
    until(lambda: not cluster.are_ready(), 60, "the node is lost", 0.5)
    sent = pings.sent()
    print(f"\n{len(sent)} pings on the other node while one is lost: {pings.lost()} lost, "
          f"{sum(not is_slow(took) for _, took in sent.values())} without the link")
    assert all(is_slow(took) for _, took in sent.values()), "links of the other node stay"
    assert pings.lost() == 0
    status = cluster.get("links.longwire.dev", "slow")["status"]
    # The node still exists, but its state is unknown: its slice stays.
    assert sorted(slice["node"] for slice in status["nodes"]) == ["m1", "m2"], status
    assert {c["type"]: c["status"] for c in status["conditions"]}["Attached"] == "True", status
    # The lost node misses this change.
    link(cluster, "slow", **{"from": by_label(tier="far"), "link": {"delay": "40ms"}})
    for device in ["u0", "cp"]:
        lost.here("ip", "link", "set", device, "up")
    n = lost.number
    routes = [f"10.96.0.1/32 via 172.30.{n}.1", f"10.88.{3 - n}.0/24 via 172.31.0.{3 - n}"]
    for route in routes:
        lost.here("ip", "route", "replace", *route.split())
    lost.kubelet.send(signal.SIGCONT)
    back = time.monotonic()
    until(cluster.are_ready, 60, "the node is back", 0.5)
    found = until(lambda: (took := round_trip(cluster, "client", server, 5)) and took > 160 and took, 60,
                  "the change on the node that is back")
    print(f"{found} ms, {time.monotonic() - back:.1f} s after the node was back")

    def is_current() -> bool:
        view = cluster.get("links.longwire.dev", "slow")
        generation = view["metadata"]["generation"]
        return [slice["observedGeneration"] for slice in view["status"]["nodes"]] == [generation] * 2

    until(is_current, 30, "the slice of the node that is back")


def kill(machine, program: str) -> None:
    """Kills a program's containers on a machine."""
    image = f"ghcr.io/longwire/{program}:0.1.0"
    listed = machine.here("ctr", "-n", "k8s.io", "containers", "ls", check=False).stdout
    running = machine.here("ctr", "-n", "k8s.io", "tasks", "ls").stdout
    for line in listed.splitlines():
        if image in line.split():
            identity = line.split()[0]
            if any(row.startswith(identity) and "RUNNING" in row for row in running.splitlines()):
                machine.here("ctr", "-n", "k8s.io", "tasks", "kill", "-s", "SIGKILL", identity, check=False)


def test_the_agent_and_the_node_process_restart(cluster, clean):
    server = pod(cluster, "server", "m2")
    pod(cluster, "client", "m1")
    link(cluster, "slow", **{"from": by_label(app="client"), "link": {"delay": "30ms"}})
    attached(cluster, "slow")
    machine = cluster.machines["m1"]
    pings = Pings(cluster, "client", server, 7)
    kill(machine, "longwire-kube")
    bare = [seq for seq, (_, took) in pings.sent().items() if not is_slow(took)]
    print(f"\nagent killed: {pings.lost()} pings lost, {len(bare)} without the link")
    assert (pings.lost(), bare) == (0, [])

    pings = Pings(cluster, "client", server, 10)
    since = time.time()
    kill(machine, "longwire")
    taken = pings.first(since, is_slow)
    print(f"emulator killed: {pings.lost()} pings lost, the link is back after {taken:.2f} s")
    # The first restart of a container has no back-off; the kubelet checks once per second.
    assert taken < RETURNS_WITHIN, taken
    assert pings.lost() <= 5, pings.lost()
    attached(cluster, "slow")


def report(machine, network: str) -> dict:
    """Returns the report of a network's run, from the node's socket."""
    sockets = "/var/lib/kubelet/pods/*/volumes/kubernetes.io~empty-dir/run/node.sock"
    address = f"http://node/v1/networks/{network}/report"
    return json.loads(machine.here("sh", "-c", f"curl -sS --unix-socket {sockets} {address}").stdout)


def network_runs(cluster: Machines, b: str, before: float) -> bool:
    """Runs a Network once, and checks its delay and reports; returns whether all frames were in time."""
    cluster.apply({
        "apiVersion": "longwire.dev/v1alpha1", "kind": "Network", "metadata": {"name": "wan", "namespace": "default"},
        "spec": {"topology": '[[link]]\nname = "wan"\ndelay = "20ms"\n',
                 "ports": {"a": by_label(app="a"), "b": by_label(app="b")}},
    })

    def probe() -> float:
        found = round_trip(cluster, "a", b)
        if not found or found < 30:
            raise RuntimeError(f"{found} ms; {cluster.get('networks.longwire.dev', 'wan').get('status')}")
        return found

    begin = time.monotonic()
    until(probe, 60, "the network")
    print(f"\nthe network runs after {time.monotonic() - begin:.1f} s")
    found = round_trip(cluster, "a", b, 50)
    print(f"bare {before} ms; 20 ms each way over an underlay of {UNDERLAY} ms: {found} ms")
    assert abs(found - 40) < 0.5, found
    until(lambda: [c for c in cluster.get("networks.longwire.dev", "wan").get("status", {}).get("conditions", [])
                   if c["type"] == "Attached" and c["status"] == "True"], 30, "a condition")
    print(cluster.kubectl("get", "networks.longwire.dev", "-o", "wide"))
    in_time = True
    for name, machine in cluster.machines.items():
        peers = report(machine, "kube-default-wan").get("hosts", {}).get("peers", [])
        for peer in peers:
            print(f"report of {name}: {peer['round_trip_ns'] / 1e6:.2f} ms to {peer['name']} and back, "
                  f"{peer['frames_late']} frames late, {peer['spare_min_ns'] / 1e6:.2f} ms to spare")
            # A frame waits for the part of its delay that the underlay has not used. If the machine
            # paused for longer than that, the report has late frames.
            spare = peer["spare_min_ns"]
            assert spare < 20e6 - UNDERLAY * 1e6, peer
            assert (spare < 0) == (peer["frames_late"] > 0), peer
            in_time = in_time and spare > 0
    cluster.kubectl("delete", "networks.longwire.dev", "wan")
    until(lambda: round_trip(cluster, "a", b, 5) < before + 5, 60, "traffic without the network")
    return in_time


def test_a_network_counts_the_underlay_once(cluster, clean):
    b = pod(cluster, "b", "m2")
    pod(cluster, "a", "m1")
    before = round_trip(cluster, "a", b)
    # Machine pauses of 20 ms make frames late, so one clean run of three is enough.
    assert any(network_runs(cluster, b, before) for _ in range(3))


def test_without_the_chart_nothing_is_left(cluster):
    server = pod(cluster, "server", "m2")
    pod(cluster, "client", "m1")
    link(cluster, "slow", **{"from": by_label(app="client"), "link": {"delay": "30ms"}})
    attached(cluster, "slow")
    cluster.apply({
        "apiVersion": "longwire.dev/v1alpha1", "kind": "Network", "metadata": {"name": "wan", "namespace": "default"},
        "spec": {"topology": '[[link]]\nname = "wan"\ndelay = "20ms"\n',
                 "ports": {"a": by_label(app="client"), "b": by_label(app="server")}},
    })
    secrets = lambda: cluster.get("-n", SYSTEM, "secrets", "-l", "longwire.dev/network=true")["items"]
    until(secrets, 30, "the secret of a network")
    print(cluster.helm("uninstall", "longwire", "--namespace", SYSTEM))
    pods = lambda: cluster.kubectl("-n", SYSTEM, "get", "pods", "-o", "name", check=False)
    until(lambda: not pods().startswith("pod"), 90, "no pods of Longwire", 0.5)
    until(lambda: not secrets(), 60, "no secrets of networks", 0.5)
    leases = lambda: cluster.get("-n", SYSTEM, "leases")["items"]
    until(lambda: not leases(), 60, "no lease", 0.5)
    until(lambda: "longwire.dev" not in cluster.kubectl("get", "crd", "-o", "name"), 60, "no definitions", 0.5)
    assert round_trip(cluster, "client", server, 5) < 30
    devices = inside(cluster, "client", "ip", "link")
    assert "lw-" not in devices, devices
    for machine in cluster.machines.values():
        # The kernel provides two files, *.debug.
        pinned = machine.here("find", "/sys/fs/bpf", "-mindepth", "1", "!", "-name", "*.debug").stdout
        assert pinned == "", pinned
