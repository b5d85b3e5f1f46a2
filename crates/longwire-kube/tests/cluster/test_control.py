"""The controller and the agents against a real kube-apiserver with etcd, and kwok's nodes and
pods. `cargo xtask kube-test control` builds the required programs and runs these tests.

Tests check the requests that reach a node: contents, order and times on one clock.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from bed import Bed, die_with_parent, free_port, until
from standin import StandIn

NODES = ["n1", "n2"]
SPACE = "shop"
PACKAGING = Path(os.environ["LONGWIRE_PACKAGING"])
# Required delay in seconds; LONGWIRE_TEST_PATIENCE is a factor for busy machines.
FOLLOWS_WITHIN = 1.0 * float(os.environ.get("LONGWIRE_TEST_PATIENCE", "1"))
PATIENCE = 60.0


class Addresses:
    """Times at which a watch shows each pod's address. Delays count from these times, because kwok
    assigns addresses late."""

    def __init__(self, bed: Bed):
        self.bed = bed
        self.seen: dict[str, float] = {}
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        words = [self.bed.program("kubectl"), "--kubeconfig", self.bed.kubeconfig, "get", "pods", "-n", SPACE, "-w",
                 "-o", "jsonpath={.metadata.uid} {.status.podIP}{'\\n'}"]
        while True:
            # Ends with the connection, for example when the API server is killed.
            with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                  preexec_fn=die_with_parent) as child:
                for line in child.stdout:
                    if len(found := line.split()) == 2:
                        self.seen.setdefault(found[0], time.monotonic())
            time.sleep(0.2)


class Cluster:
    """A control plane, two stand-in nodes with their agents, and two controllers."""

    def __init__(self, bed: Bed):
        self.bed = bed
        self.kube = os.environ["LONGWIRE_KUBE"]
        # The Deployment in controller.yaml owns the secrets. It has no pods, because no Deployment
        # controller runs.
        for name in ["namespace", "crds", "rbac", "controller"]:
            bed.kubectl("apply", "--server-side", "-f", PACKAGING / "kubernetes" / f"{name}.yaml")
        bed.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        bed.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
        bed.run("kwok", bed.program("kwok"), "--kubeconfig", bed.kubeconfig, "--manage-all-nodes=true",
                "--cidr", "10.20.0.0/16", "--node-ip", "10.1.0.1")
        for name in NODES:
            bed.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
            self.pod(f"emulator-{name}", name, "longwire-system",
                     **{"app.kubernetes.io/name": "longwire", "app.kubernetes.io/component": "node"})
        self.addresses = Addresses(bed)
        self.reactions: dict[str, float] = {}
        self.nodes = {name: StandIn(bed.directory / f"{name}.sock") for name in NODES}
        agent = bed.account("longwire-system", "longwire-agent")
        self.agents = {name: self.agent(name, agent) for name in NODES}
        self.controller_config = bed.account("longwire-system", "longwire-controller")
        self.controllers = {name: self.controller(name) for name in ["c1", "c2"]}

    def agent(self, name: str, config: Path):
        return self.bed.run(
            f"agent-{name}", self.kube, "agent", "--node", name, "--node-socket", self.nodes[name].socket,
            "--listen", f"127.0.0.1:{free_port()}", env={"KUBECONFIG": str(config)},
        )

    def controller(self, name: str):
        return self.bed.run(
            f"controller-{name}", self.kube, "controller", "--identity", name,
            "--listen", f"127.0.0.1:{free_port()}", env={"KUBECONFIG": str(self.controller_config)},
        )

    # Resources.

    def pod(self, name: str, node: str, space: str = SPACE, **labels: str) -> None:
        self.bed.apply({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": space, "labels": labels},
            "spec": {"nodeName": node, "automountServiceAccountToken": False,
                     "containers": [{"name": "app", "image": "none"}]},
        })

    def ip(self, name: str, space: str = SPACE) -> str:
        def probe():
            return self.bed.get("-n", space, "pod", name)["status"].get("podIP")

        return until(probe, PATIENCE, f"the address of {name}")

    def remove_pod(self, name: str) -> None:
        self.bed.kubectl("-n", SPACE, "delete", "pod", name, "--force", "--grace-period=0")

    def link(self, name: str, **spec) -> None:
        self.bed.apply({"apiVersion": "longwire.dev/v1alpha1", "kind": "Link",
                        "metadata": {"name": name, "namespace": SPACE}, "spec": spec})

    def scenario(self, name: str, **spec) -> None:
        self.bed.apply({"apiVersion": "longwire.dev/v1alpha1", "kind": "Scenario",
                        "metadata": {"name": name, "namespace": SPACE}, "spec": spec})

    def network(self, name: str, ports: list[str], topology=None) -> None:
        """Creates a network whose ports are pods with the port's name as label `app`."""
        topology = topology if topology is not None else {"link": [{"name": "wan", "delay": "20ms"}]}
        self.bed.apply({"apiVersion": "longwire.dev/v1alpha1", "kind": "Network",
                        "metadata": {"name": name, "namespace": SPACE},
                        "spec": {"topology": topology, "ports": {port: by_label(app=port) for port in ports}}})

    def secrets(self) -> list[dict]:
        return self.bed.get("-n", "longwire-system", "secrets", "-l", "longwire.dev/network=true")["items"]

    def status(self, name: str, kind: str = "link") -> dict:
        return self.bed.get("-n", SPACE, f"{kind}s.longwire.dev", name).get("status", {})

    def condition(self, name: str, kind: str, of: str = "link") -> dict:
        found = [one for one in self.status(name, of).get("conditions", []) if one["type"] == kind]
        return found[0] if found else {}

    def holder(self) -> str | None:
        lease = self.bed.get("-n", "longwire-system", "lease", "longwire-controller")
        return lease["spec"].get("holderIdentity")

    def clear(self) -> None:
        for kind in ["links", "scenarios", "networks"]:
            self.bed.kubectl("-n", SPACE, "delete", f"{kind}.longwire.dev", "--all")
        self.bed.kubectl("-n", SPACE, "delete", "pods", "--all", "--force", "--grace-period=0")
        is_empty = lambda node: not node.attachments and not node.networks
        until(lambda: all(map(is_empty, self.nodes.values())), PATIENCE, "nothing is left at the nodes")

    def follows(self, what: str, probe, pod: str | None = None) -> float:
        """Asserts that an effect soon follows a change that the API server has just confirmed or, with
        `pod`, the assignment of the pod's address. Returns the delay."""
        start = time.monotonic()
        until(probe, PATIENCE, what, 0.005)
        end = time.monotonic()
        if pod:
            uid = self.bed.get("-n", SPACE, "pod", pod)["metadata"]["uid"]
            start = until(lambda: self.addresses.seen.get(uid), PATIENCE, f"the address of {pod} at a watch")
        taken = max(end - start, 0.0)
        self.reactions[what] = taken
        assert taken < FOLLOWS_WITHIN, f"{what}: after {taken:.2f} s"
        return taken


def by_label(**labels: str) -> dict:
    return {"podSelector": {"matchLabels": labels}}


@pytest.fixture(scope="session")
def running():
    with Bed(Path(os.environ["LONGWIRE_KUBE_BIN"])) as bed:
        bed.start()
        cluster = Cluster(bed)
        yield cluster
        for what, taken in cluster.reactions.items():
            print(f"\n{taken * 1000:6.0f} ms  {what}", end="")
        for process in bed.processes:
            if process.name.startswith(("agent", "controller")):
                assert "panicked" not in process.log.read_text(), process.tail()


@pytest.fixture
def cluster(running):
    yield running
    running.clear()


def test_accounts_may_do_what_they_need_and_no_more(cluster):
    """Runs first: a restarted API server briefly refuses all requests."""
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    until(lambda: cluster.condition("slow", "Attached").get("status") == "True", PATIENCE, "a status")
    can = lambda account, *words: cluster.bed.kubectl(
        "auth", "can-i", *words, f"--as=system:serviceaccount:longwire-system:{account}", check=False
    ).split()[0]
    for account in ["longwire-agent", "longwire-controller"]:
        assert can(account, "list", "pods", "--all-namespaces") == "yes"
        for forbidden in (["list", "secrets", "--all-namespaces"], ["delete", "pods", "--all-namespaces"],
                          ["create", "pods", "-n", SPACE], ["update", "links.longwire.dev", "-n", SPACE],
                          ["get", "secrets", "-n", SPACE], ["patch", "nodes"],
                          ["get", "pods", "--all-namespaces"]):
            assert can(account, *forbidden) == "no", (account, forbidden)
    for process in cluster.bed.processes:
        if process.name.startswith(("agent", "controller")):
            assert "forbidden" not in process.log.read_text().lower(), process.tail()


def test_a_link_follows_its_pods(cluster):
    node = cluster.nodes["n1"]
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    cluster.pod("cart-0", "n1", app="cart")
    cluster.follows("a new pod", lambda: "shop/cart-0" in node.pods())
    assert node.spec_of("shop/cart-0")["link"] == {"delay": "80ms"}
    cluster.pod("other", "n1", app="other")
    cluster.ip("other")
    assert "shop/other" not in node.pods()

    cluster.bed.kubectl("-n", SPACE, "label", "pod", "cart-0", "app=idle", "--overwrite")
    cluster.follows("a removed label", lambda: not node.pods())
    cluster.bed.kubectl("-n", SPACE, "label", "pod", "cart-0", "app=cart", "--overwrite")
    cluster.follows("a restored label", lambda: "shop/cart-0" in node.pods())

    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "20ms"}})
    cluster.follows("changed options", lambda: node.spec_of("shop/cart-0")["link"] == {"delay": "20ms"})

    # The pod moves: a pod with the same name starts on another node.
    cluster.remove_pod("cart-0")
    cluster.follows("a removed pod", lambda: not node.pods())
    cluster.pod("cart-0", "n2", app="cart")
    cluster.follows("a pod on another node", lambda: "shop/cart-0" in cluster.nodes["n2"].pods())
    assert not node.pods()

    cluster.bed.kubectl("-n", SPACE, "delete", "link", "slow")
    cluster.follows("a deleted link", lambda: not cluster.nodes["n2"].pods())


def test_peers_are_the_prefixes(cluster):
    node = cluster.nodes["n1"]
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("far", **{"from": by_label(app="cart"), "to": by_label(app="db"), "link": {"delay": "5ms"}})
    until(lambda: cluster.status("far").get("nodes"), PATIENCE, "a status")
    # A selector that matches no pod does not select all traffic.
    assert not node.pods(), "no peer, no link"
    cluster.pod("db-0", "n2", app="db")
    cluster.follows("a peer", lambda: len(node.pods().get("shop/cart-0", [])) == 1, "db-0")
    first = cluster.ip("db-0")
    assert node.pods() == {"shop/cart-0": [f"{first}/32"]}
    cluster.pod("db-1", "n1", app="db")
    cluster.follows("a second peer", lambda: len(node.pods().get("shop/cart-0", [])) == 2, "db-1")
    second = cluster.ip("db-1")
    assert node.pods() == {"shop/cart-0": sorted([f"{first}/32", f"{second}/32"])}
    cluster.remove_pod("db-0")
    cluster.follows("a removed peer", lambda: node.pods() == {"shop/cart-0": [f"{second}/32"]})


def test_both_ends_in_one_link_shape_what_they_send(cluster):
    for number, node in enumerate(NODES):
        cluster.pod(f"peer-{number}", node, app="peer")
        cluster.ip(f"peer-{number}")
    selection = by_label(app="peer")
    cluster.link("mesh", **{"from": selection, "to": selection, "link": {"delay": "7ms"}})
    for number, node in enumerate(NODES):
        spec = until(lambda: cluster.nodes[node].spec_of(f"shop/peer-{number}"), PATIENCE, "an attachment")
        assert spec["direction"] == "up", spec
        assert len(spec["to"]) == 1, spec


ALL = {"podSelector": {}}
AT_ONCE = {"at": "1s", "set": {"delay": "1ms"}}
# One error each, with the message of its rule.
REFUSED = [
    ("Link", {"link": {}}, "spec.from: Required value"),
    ("Link", {"from": ALL, "to": {}}, "give either cidrs, or podSelector and namespaceSelector"),
    ("Link", {"from": ALL, "to": {**ALL, "cidrs": ["10.0.0.0/8"]}},
     "give either cidrs, or podSelector and namespaceSelector"),
    ("Link", {"from": ALL, "to": {"cidrs": ["10.0.0.0/33"]}}, "each entry must be an address or a prefix"),
    ("Link", {"from": ALL, "to": {"cidrs": []}}, "spec.to.cidrs in body should have at least 1 items"),
    ("Link", {"from": ALL, "to": {"cidrs": [f"10.0.0.{n}" for n in range(65)]}}, "spec.to.cidrs: Too many: 65"),
    ("Link", {"from": ALL, "startAt": "2026-01-01T00:00:00Z"}, "startAt needs a scenario"),
    ("Link", {"from": ALL, "scenario": "x", "startAt": "soon"}, "spec.startAt"),
    ("Link", {"from": ALL, "fail": "sometimes"}, 'Unsupported value: "sometimes"'),
    ("Link", {"from": ALL, "priority": 256}, "spec.priority in body should be less than or equal to 255"),
    ("Link", {"from": ALL, "link": "fast"}, 'spec.link in body must be of type object: "string"'),
    ("Link", {"from": ALL, "seed": -1}, "spec.seed in body should be greater than or equal to 0"),
    ("Scenario", {"steps": []}, "spec.steps in body should have at least 1 items"),
    ("Scenario", {"steps": [{"at": "soon", "set": {}}]}, "spec.steps[0].at in body should match"),
    ("Scenario", {"steps": [{"at": "1s"}]}, "spec.steps[0].set: Required value"),
    ("Scenario", {"steps": [AT_ONCE], "repeat": {"every": "50ms"}}, "every must be at least 100ms"),
    ("Scenario", {"steps": [AT_ONCE], "repeat": {"every": "1s", "times": 0}},
     "spec.repeat.times in body should be greater than or equal to 1"),
    ("Network", {"ports": {"a": ALL}}, "spec.topology: Required value"),
    ("Network", {"topology": "", "ports": {}}, "spec.ports in body should have at least 1 properties"),
    ("Network", {"topology": "", "ports": {"a": {}}}, "spec.ports.a.podSelector: Required value"),
    ("Network", {"topology": "", "ports": {"a": ALL}, "seed": -1},
     "spec.seed in body should be greater than or equal to 0"),
]


@pytest.mark.parametrize("kind, spec, message", REFUSED, ids=range(len(REFUSED)))
def test_the_api_server_refuses_what_cannot_be_right(running, kind, spec, message):
    with pytest.raises(RuntimeError) as error:
        # Skip kubectl's own validation.
        running.bed.kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps({
            "apiVersion": "longwire.dev/v1alpha1", "kind": kind, "metadata": {"name": "wrong", "namespace": SPACE},
            "spec": spec}))
    assert message in str(error.value), error.value
    # There is no other error, except for the note that later rules were not checked.
    others = [line for line in str(error.value).splitlines() if line.startswith("* ") and "<nil>" not in line]
    assert len(others) <= 1, error.value


def test_a_topology_that_is_none_is_a_condition(cluster):
    """The API server cannot check this: it has no rules for a field of several types."""
    cluster.network("odd", ["a", "b"], topology=7)
    found = until(lambda: cluster.condition("odd", "Accepted", "network").get("status") == "False"
                  and cluster.condition("odd", "Accepted", "network"), PATIENCE, "a condition")
    assert found["message"] == "spec/topology: the topology is neither TOML text nor an object", found


def test_a_refusal_of_the_node_is_a_condition(cluster):
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("odd", **{"from": by_label(app="cart"), "link": {"delay": "soon"}})
    until(lambda: cluster.condition("odd", "Accepted").get("status") == "False", PATIENCE, "a condition")
    condition = cluster.condition("odd", "Accepted")
    for word in ["soon", "/link/delay", "20ms"]:
        assert word in condition["message"], condition
    # The remedy works.
    cluster.link("odd", **{"from": by_label(app="cart"), "link": {"delay": "20ms"}})
    until(lambda: cluster.condition("odd", "Accepted").get("status") == "True", PATIENCE, "a remedy")


def test_a_link_stays_while_its_spec_is_refused(cluster):
    node = cluster.nodes["n1"]
    cluster.scenario("later", steps=[{"at": "1h", "set": {"delay": "300ms"}}])
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}, "scenario": "later",
                            "fail": "closed"})
    until(node.pods, PATIENCE, "an attachment")
    refused = lambda: cluster.condition("slow", "Accepted").get("status") == "False"
    accepted = lambda: cluster.condition("slow", "Accepted").get("status") == "True"
    until(accepted, PATIENCE, "an accepted spec")

    since = time.monotonic()
    cluster.bed.kubectl("-n", SPACE, "delete", "scenario", "later")
    until(refused, PATIENCE, "a refusal of the missing scenario")
    assert node.changes(since) == [], "the link stays as it was"
    assert cluster.condition("slow", "Attached")["status"] == "True"
    # A new pod gets no link while the link's scenario is missing.
    cluster.pod("cart-1", "n1", app="cart")
    until(lambda: cluster.status("slow")["pods"] == 2, PATIENCE, "a second pod")
    assert list(node.pods()) == ["shop/cart-0"]
    # A pod that is no longer selected still loses its link.
    cluster.bed.kubectl("-n", SPACE, "label", "pod", "cart-0", "app=idle", "--overwrite")
    cluster.follows("a removed label, with a refused link", lambda: not node.pods())
    cluster.scenario("later", steps=[{"at": "1h", "set": {"delay": "300ms"}}])
    cluster.follows("a recreated scenario", lambda: list(node.pods()) == ["shop/cart-1"])
    until(accepted, PATIENCE, "an accepted spec again")

    # The same holds for a link with an option that the node refuses, and for an invalid selector.
    for wrong in [{"link": {"delay": "trace:/etc/shadow"}, "from": by_label(app="cart")},
                  {"from": {"podSelector": {"matchExpressions": [{"key": "app", "operator": "Like"}]}}}]:
        before, since = dict(node.attachments), time.monotonic()
        cluster.link("slow", **wrong)
        until(refused, PATIENCE, "a refused spec")
        time.sleep(1)
        assert node.attachments == before, wrong
        sent = [body for at, method, _, body in node.requests if at >= since and method != "GET"]
        assert all(body["files"] is False for body in sent) and ("link" in wrong or not sent), sent
        cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
        until(accepted, PATIENCE, "an accepted spec again")


def test_status_is_the_sum_of_the_nodes(cluster):
    for number, node in enumerate(NODES):
        cluster.pod(f"cart-{number}", node, app="cart")
    cluster.link("both", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    status = until(lambda: (s := cluster.status("both")).get("attached") == 2 and s.get("carried") == 4000 and s, PATIENCE,
                   "a status of both nodes")
    assert (status["pods"], status["dropped"]) == (2, 40), status
    assert status["latenessP99Us"] == 42, status
    assert sorted(slice["node"] for slice in status["nodes"]) == NODES
    assert cluster.condition("both", "Attached")["status"] == "True"
    assert cluster.condition("both", "Faithful")["status"] == "True"
    table = cluster.bed.kubectl("-n", SPACE, "get", "links.longwire.dev", "both")
    assert table.split("\n")[0].split()[:6] == ["NAME", "PODS", "ATTACHED", "CARRIED", "DROPPED", "ARTIFACTS"], table
    events = cluster.bed.get("-n", SPACE, "events.events.k8s.io")["items"]
    assert any(event["regarding"]["name"] == "both" for event in events), events


def test_an_agent_that_is_killed_leaves_links(cluster):
    node = cluster.nodes["n1"]
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    until(node.pods, PATIENCE, "an attachment")
    agent = cluster.agents["n1"]
    agent.stop(signal.SIGKILL)
    # The next agent must catch up with these changes: one new and one removed pod.
    cluster.pod("cart-1", "n1", app="cart")
    cluster.ip("cart-1")
    cluster.remove_pod("cart-0")
    since = time.monotonic()
    agent.start()
    until(lambda: list(node.pods()) == ["shop/cart-1"], PATIENCE, "the next agent")
    assert time.monotonic() - since < 2 * FOLLOWS_WITHIN
    since = time.monotonic()
    agent.stop(signal.SIGKILL)
    agent.start()
    time.sleep(3)
    assert node.changes(since) == [], "a starting agent changed an up-to-date attachment"


def test_a_node_that_was_away_has_its_links_again(cluster):
    node = cluster.nodes["n1"]
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    until(node.pods, PATIENCE, "an attachment")
    node.stop()
    reason = lambda: [s for s in cluster.status("slow").get("nodes", []) if s.get("reason") == "NodeUnavailable"]
    cluster.pod("cart-1", "n1", app="cart")
    until(reason, PATIENCE, "a reason in the status")
    node.start()
    start = time.monotonic()
    until(lambda: sorted(node.pods()) == ["shop/cart-0", "shop/cart-1"], PATIENCE, "both links again")
    assert time.monotonic() - start < 2 * FOLLOWS_WITHIN


def test_nothing_changes_while_the_api_server_is_away(cluster):
    bed, node = cluster.bed, cluster.nodes["n1"]
    for number in range(3):
        cluster.pod(f"cart-{number}", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    until(lambda: len(node.pods()) == 3, PATIENCE, "three attachments")
    since = time.monotonic()
    bed.apiserver.stop(signal.SIGKILL)
    time.sleep(20)
    # An agent that starts without an API server has no state, and does nothing.
    cluster.agents["n1"].stop(signal.SIGKILL)
    cluster.agents["n1"].start()
    time.sleep(float(os.environ.get("LONGWIRE_AWAY_SECONDS", "40")))
    assert node.changes(since) == []
    # The watch history is gone too: caches are stale and must be refilled.
    bed.apiserver.start()
    bed.ready()
    cluster.remove_pod("cart-1")
    bed.etcd_compact()
    until(lambda: sorted(node.pods()) == ["shop/cart-0", "shop/cart-2"], PATIENCE, "the state of the cluster")
    removed = [path for method, path in node.changes(since) if method == "DELETE"]
    assert len(removed) == 1, removed


def test_broken_watches_are_made_again(cluster):
    bed, node = cluster.bed, cluster.nodes["n2"]
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    for number in range(5):
        cluster.pod(f"cart-{number}", "n2", app="cart")
        if number % 2:
            # All connections break, as when a load balancer restarts.
            bed.apiserver.stop(signal.SIGKILL)
            bed.apiserver.start()
            bed.ready()
    names = [f"shop/cart-{number}" for number in range(5)]
    until(lambda: sorted(node.pods()) == names, PATIENCE, "all pods")


def test_another_controller_takes_over(cluster):
    bed = cluster.bed
    first = until(cluster.holder, PATIENCE, "a leader")
    process = next(p for name, p in cluster.controllers.items() if name in first)
    process.stop(signal.SIGKILL)
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    # The link needs no controller.
    until(cluster.nodes["n1"].pods, PATIENCE, "an attachment")
    second = until(lambda: (name := cluster.holder()) != first and name, PATIENCE, "another leader")
    assert second != first
    until(lambda: cluster.condition("slow", "Attached").get("status") == "True", PATIENCE, "its sums")
    process.start()


def two_pods(cluster) -> dict[str, str]:
    """Starts pods for the ports `a` and `b` on two nodes; returns the emulators' addresses."""
    cluster.pod("a-0", "n1", app="a")
    cluster.pod("b-0", "n2", app="b")
    for name in ["a-0", "b-0"]:
        cluster.ip(name)
    return {name: cluster.ip(f"emulator-{name}", "longwire-system") for name in NODES}


def test_a_network_runs_where_its_pods_are(cluster):
    n1, n2 = cluster.nodes["n1"], cluster.nodes["n2"]
    emulators = two_pods(cluster)
    cluster.network("wan", ["a", "b"])
    both = lambda: n1.networks.get("kube-shop-wan") and n2.networks.get("kube-shop-wan")
    cluster.follows("a new network", both)
    one, other = n1.networks["kube-shop-wan"], n2.networks["kube-shop-wan"]
    assert (one["host"], other["host"]) == ("n1", "n2")
    assert one["file"] == other["file"] and one["key"] == other["key"] and len(one["key"]) == 64
    a, b = cluster.ip("a-0"), cluster.ip("b-0")
    assert one["file"]["ports"] == {"a": {"attach": {"pod": "shop/a-0", "to": [b]}},
                                    "b": {"attach": {"pod": "shop/b-0", "to": [a]}}}
    assert one["file"]["host"] == [{"name": name, "address": f"{emulators[name]}:4800", "ports": [port]}
                                   for name, port in [("n1", "a"), ("n2", "b")]]

    for kind in ["Accepted", "Placed", "Attached", "Faithful"]:
        until(lambda: cluster.condition("wan", kind, "network").get("status") == "True", PATIENCE, kind)
    status = cluster.status("wan", "network")
    assert (status["ports"], status["hosts"], status["udpPort"]) == (2, 2, 4800), status
    assert status["placement"] == [{"port": "a", "pod": "shop/a-0", "node": "n1"},
                                   {"port": "b", "pod": "shop/b-0", "node": "n2"}]
    # The secret is removed along with the controller.
    [secret] = cluster.secrets()
    [owner] = secret["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("Deployment", "longwire-controller")
    lease = cluster.bed.get("-n", "longwire-system", "lease", "longwire-controller")
    assert lease["metadata"]["ownerReferences"] == [owner]
    assert one["key"] not in json.dumps(status)

    # A second network gets the next port.
    cluster.network("more", ["a", "b"])
    until(lambda: "kube-shop-more" in n2.networks, PATIENCE, "a second network")
    assert n2.networks["kube-shop-more"]["file"]["host"][1]["address"].endswith(":4801")

    since = time.monotonic()
    n1.underlay_lost = 3
    until(lambda: cluster.condition("wan", "Faithful", "network").get("status") == "False", PATIENCE, "artifacts")
    n1.underlay_lost = 0
    assert n1.changes(since) == []

    # A port's pod moves, and the network with it: a network on one node has no hosts.
    cluster.remove_pod("b-0")
    cluster.pod("b-1", "n1", app="b")
    cluster.follows("a network whose pod moves", lambda: "host" not in n1.networks["kube-shop-wan"]["file"]
                    and "kube-shop-wan" not in n2.networks, "b-1")
    cluster.bed.kubectl("-n", SPACE, "delete", "network.longwire.dev", "wan", "more")
    cluster.follows("a deleted network", lambda: not n1.networks and not n2.networks)
    until(lambda: not cluster.secrets(), PATIENCE, "no secrets")


def test_pairs_of_a_network_are_those_of_its_topology(cluster):
    for number, port in enumerate("abcd"):
        cluster.pod(f"{port}-0", NODES[number % 2], app=port)
    topology = '[switching]\npairs = [["a", "b"], ["c", "d"]]\n[[link]]\nname = "wan"\nmatch = "in-port=a"\ndelay = "20ms"\n'
    cluster.network("mesh", list("abcd"), topology)
    body = until(lambda: cluster.nodes["n1"].networks.get("kube-shop-mesh"), PATIENCE, "a network")
    to = {port: table["attach"]["to"] for port, table in body["file"]["ports"].items()}
    ip = {port: cluster.ip(f"{port}-0") for port in "abcd"}
    assert to == {"a": [ip["b"]], "b": [ip["a"]], "c": [ip["d"]], "d": [ip["c"]]}
    # Without pairs, no port would have a unique destination.
    cluster.network("mesh", list("abcd"))
    until(lambda: "pairs" in cluster.condition("mesh", "Accepted", "network").get("message", ""), PATIENCE, "a remedy")
    assert cluster.nodes["n1"].networks, "the network goes on as it was placed"


def test_another_controller_leaves_networks_as_they_are(cluster):
    two_pods(cluster)
    cluster.network("wan", ["a", "b"])
    for node in cluster.nodes.values():
        until(lambda: node.networks, PATIENCE, "a network")
    before = dict(cluster.nodes["n1"].networks)
    since = time.monotonic()
    first = cluster.holder()
    process = next(p for name, p in cluster.controllers.items() if name in first)
    process.stop(signal.SIGKILL)
    until(lambda: cluster.holder() != first, PATIENCE, "another leader")
    # The new leader keeps the placement, although the name of this pod sorts before that of a-0.
    cluster.pod("a", "n2", app="a")
    time.sleep(3)
    for node in cluster.nodes.values():
        assert node.changes(since) == [], "the same key, port and pods"
    assert cluster.nodes["n1"].networks == before
    # It also follows changes: the pod of port b moves to n1.
    cluster.remove_pod("b-0")
    cluster.pod("b-1", "n1", app="b")
    cluster.follows("a network under another controller", lambda: not cluster.nodes["n2"].networks, "b-1")
    process.start()


def test_links_do_not_wait_for_networks(cluster):
    node = cluster.nodes["n1"]
    two_pods(cluster)
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    node.network_seconds = 8
    try:
        cluster.network("wan", ["a", "b"])
        begun = lambda: any(method == "PUT" and "networks" in path for method, path in node.changes(0))
        until(begun, PATIENCE, "a slow request")
        cluster.pod("cart-0", "n1", app="cart")
        cluster.follows("a new pod while a network changes", lambda: "shop/cart-0" in node.pods())
        until(lambda: cluster.condition("slow", "Attached").get("status") == "True", 5, "its status")
        assert not node.networks, "the network still changes"
    finally:
        node.network_seconds = 0
    until(lambda: node.networks, PATIENCE, "the network")


def test_a_scenario_changes_the_link_with_time(cluster):
    node = cluster.nodes["n1"]
    cluster.scenario("worse", steps=[{"at": "1s", "set": {"delay": "200ms"}},
                                     {"at": "2s", "set": {"delay": "300ms"}}])
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}, "scenario": "worse"})
    seen = []

    def last() -> bool:
        spec = node.spec_of("shop/cart-0")
        if spec and (not seen or seen[-1][0] != spec["link"]["delay"]):
            seen.append((spec["link"]["delay"], time.monotonic()))
        return bool(seen) and seen[-1][0] == "300ms"

    until(last, PATIENCE, "the last step", 0.005)
    assert [delay for delay, _ in seen] == ["80ms", "200ms", "300ms"], seen
    between = seen[2][1] - seen[1][1]
    assert abs(between - 1) < 0.5 * FOLLOWS_WITHIN, seen


def test_cleanup_removes_what_agents_made(cluster):
    """Covers machines whose node process keeps running when the agent is removed."""
    node = cluster.nodes["n1"]
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    two_pods(cluster)
    cluster.network("wan", ["a", "b"])
    until(lambda: node.networks and node.attachments, PATIENCE, "a link and a network")
    agent = cluster.agents["n1"]
    agent.stop(signal.SIGTERM)
    assert node.networks and node.attachments, "both stay"
    node.networks["mine"] = {}
    done = subprocess.run([cluster.kube, "cleanup", "--node-socket", str(node.socket)], capture_output=True, text=True)
    assert done.returncode == 0, done
    assert (node.attachments, list(node.networks)) == ({}, ["mine"]), done.stdout
    node.networks.clear()
    agent.start()


def test_a_node_that_is_removed_takes_its_slice_along(cluster):
    bed = cluster.bed
    for number, node in enumerate(NODES):
        cluster.pod(f"cart-{number}", node, app="cart")
    cluster.link("both", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    nodes = lambda: sorted(slice["node"] for slice in cluster.status("both").get("nodes", []))
    until(lambda: nodes() == NODES, PATIENCE, "two slices")
    bed.kubectl("delete", "node", "n2")
    until(lambda: nodes() == ["n1"], PATIENCE, "one slice")
    until(lambda: cluster.status("both").get("pods") == 1, PATIENCE, "its sum")
    # The node returns. Its agent has not noticed, and writes its slice with the next change.
    bed.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n2"}})
    cluster.link("both", **{"from": by_label(app="cart"), "link": {"delay": "90ms"}})
    until(lambda: nodes() == NODES, PATIENCE, "two slices again")


def test_many_pods_come_and_go(cluster):
    node = cluster.nodes["n1"]
    cluster.link("slow", **{"from": by_label(app="many"), "link": {"delay": "80ms"}})
    items = [{
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"many-{n}", "namespace": SPACE, "labels": {"app": "many"}},
        "spec": {"nodeName": "n1", "automountServiceAccountToken": False, "containers": [{"name": "a", "image": "none"}]},
    } for n in range(200)]
    cluster.bed.apply(*items)
    until(lambda: len(node.pods()) == 200, PATIENCE, "200 links")
    since = time.monotonic()
    cluster.bed.kubectl("-n", SPACE, "delete", "pods", "-l", "app=many", "--force", "--grace-period=0")
    until(lambda: not node.pods(), PATIENCE, "no links")
    puts = [path for method, path in node.changes(since) if method == "PUT"]
    assert not puts, puts


def test_without_its_definitions_nothing_is_left(cluster):
    """Runs last: it removes resources that the other tests need."""
    bed, node = cluster.bed, cluster.nodes["n1"]
    cluster.pod("cart-0", "n1", app="cart")
    cluster.link("slow", **{"from": by_label(app="cart"), "link": {"delay": "80ms"}})
    until(node.pods, PATIENCE, "an attachment")
    two_pods(cluster)
    cluster.network("wan", ["a", "b"])
    until(lambda: node.networks, PATIENCE, "a network")
    bed.kubectl("delete", "-f", PACKAGING / "kubernetes" / "crds.yaml", "--wait=false")
    nothing = lambda: not any(node.attachments or node.networks for node in cluster.nodes.values())
    until(nothing, PATIENCE, "nothing is left")
    until(lambda: not cluster.secrets(), PATIENCE, "no secrets")
    found = json.loads(bed.kubectl("get", "crd", "-o", "json"))["items"]
    until(lambda: not json.loads(bed.kubectl("get", "crd", "-o", "json"))["items"], PATIENCE, f"no definition: {found}")
    for agent in cluster.agents.values():
        assert agent.alive()
    bed.kubectl("apply", "--server-side", "-f", PACKAGING / "kubernetes" / "crds.yaml")
    bed.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
