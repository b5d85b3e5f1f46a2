"""Checks the control API of a real run from outside: first with a client
generated from its OpenAPI document, then with schemathesis.

`cargo xtask api` runs this script in separate namespaces. Usage:
drive.py LONGWIRE FOLDER, with the environment's programs in PATH.
"""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent
ADDRESS = "127.0.0.1:9470"
URL = f"http://{ADDRESS}"
TOKEN = "0123456789abcdef-full"
READ_TOKEN = "0123456789abcdef-read"
# schemathesis reads responses to their end, but streams have none. The generated client reads
# their first events.
STREAMS = ["/v1/stats/stream", "/v1/history/stream"]


def run(*command, **options):
    return subprocess.run(command, check=True, text=True, **options)


def wire():
    """Creates two stations, each in a separate namespace, and the ports between them."""
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    os.makedirs("/run/netns")
    run("ip", "link", "set", "dev", "lo", "up")
    for station, port, address in [("a", "l0", "10.9.0.1/24"), ("b", "r0", "10.9.0.2/24")]:
        run("ip", "netns", "add", station)
        run("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", station)
        run("ip", "-n", station, "addr", "add", address, "dev", "eth0")
        run("ip", "-n", station, "link", "set", "dev", "eth0", "up")
        run("ip", "link", "set", "dev", port, "up")


def start(longwire, folder):
    """Starts the run; waits until it answers."""
    for name, token in [("token", TOKEN), ("read-token", READ_TOKEN)]:
        file = folder / name
        file.touch(mode=0o600)
        file.write_text(token)
    files = folder / "files"
    files.mkdir()
    (files / "delays").write_text("30ms\n")
    (folder / "outside").write_text("30ms\n")
    log = open(folder / "run.log", "w")
    running = subprocess.Popen(
        [
            longwire, "run", HERE / "network.toml", "--json",
            "--control", f"tcp:{ADDRESS}",
            "--control-token-file", folder / "token",
            "--control-read-token-file", folder / "read-token",
            "--control-files", files,
        ],
        stdout=open(folder / "report.json", "w"),
        stderr=log,
    )
    request = urllib.request.Request(
        f"{URL}/v1/openapi.json", headers={"Authorization": f"Bearer {READ_TOKEN}"}
    )
    for _ in range(200):
        assert running.poll() is None, (folder / "run.log").read_text()
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                (folder / "openapi.json").write_bytes(answer.read())
                return running
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the run does not answer")


def generate(folder):
    """Generates the client, which must cover the entire document."""
    made = run(
        "openapi-python-client", "generate", "--path", folder / "openapi.json",
        "--output-path", folder / "client", "--meta", "none",
        capture_output=True,
    )
    said = (made.stdout + made.stderr).strip()
    warnings = [line for line in said.splitlines() if not line.startswith("Generating ")]
    assert not warnings, said
    sys.path.insert(0, str(folder))
    document = json.loads((folder / "openapi.json").read_text())
    operations = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    ]
    api = {name: importlib.import_module(f"client.api.default.{name}") for name in operations}
    print(f"the client has all {len(api)} operations")
    return api


def round_trip():
    """Returns the minimum RTT of several pings, in milliseconds."""
    said = run(
        "ip", "netns", "exec", "a", "ping", "-c", "5", "-i", "0.05", "-W", "5", "10.9.0.2",
        capture_output=True,
    )
    return float(said.stdout.split("min/avg")[1].split("= ")[1].split("/")[0])


def drive(api):
    """Checks every operation and its effect on packets."""
    from client import AuthenticatedClient
    from client import models

    full = AuthenticatedClient(URL, TOKEN, raise_on_unexpected_status=True)
    read = AuthenticatedClient(URL, READ_TOKEN, raise_on_unexpected_status=True)
    called = set()

    def call(name, *arguments, client=full, status=200, **named):
        called.add(name)
        answer = api[name].sync_detailed(*arguments, client=client, **named)
        assert answer.status_code == status, (name, answer)
        assert answer.parsed is not None, (name, answer)
        return answer.parsed

    overview = call("get_v1")
    assert (overview.links, overview.paths, overview.seed) == (5, 1, 5), overview
    call("get_v1_openapi_json")
    page = call("get_v1_links", limit=2)
    assert [link.name for link in page.links] == ["adsl1", "adsl2"], page
    rest = call("get_v1_links", after=page.next_)
    assert [link.name for link in rest.links] == ["adsl3", "home", "radio/1"], rest
    assert call("get_v1_links_name", "radio/1").up.options.rate == "1mbit"
    round_trip()
    assert 10 <= round_trip() < 35, "both directions take 5 ms"
    changed = call("patch_v1_links_name", "home", body=models.Options(delay="20ms"))
    assert changed.links == 1, changed
    assert 40 <= round_trip() < 65, "both directions take 20 ms"
    call("patch_v1_links_name", "home", body=models.Options(delay="samples:delays"))
    assert 60 <= round_trip() < 85, "the file in the folder says 30 ms"
    for file in ["../outside", "/etc/passwd"]:
        options = models.Options(delay=f"samples:{file}")
        refused = call("patch_v1_links_name", "home", body=options, status=422)
        assert "not in" in refused.error, refused
        assert refused.problems[0].field == "set.home.delay", refused
    new = models.NewLink(name="new", match="src=10.8.0.1", template="slow", loss=["1%", "2%"])
    assert call("post_v1_links", body=new).added == 1
    link = call("get_v1_links_name", "new")
    assert (link.up.options.delay, link.up.options.loss) == ("50ms", ["1%", "2%"]), link
    set_ = models.ChangeSet()
    set_["adsl*.up"] = models.ChangeSetAdditionalProperty(rate="2mbit")
    change = models.Change(set_=set_, off=["adsl3"], in_="100ms")
    checked = call("post_v1_changes", body=change, check=True)
    # Three up directions are set, and two directions are turned off.
    assert checked.links == 3, checked
    assert call("post_v1_changes", body=change).links == 3
    time.sleep(0.3)
    assert call("get_v1_links_name", "adsl3").up.state == "off"
    assert call("get_v1_links_name", "adsl1").up.options.rate == "2mbit"
    assert call("delete_v1_links_name", "new").removed == 1
    assert call("get_v1_links_name", "new", status=404).error
    assert len(call("get_v1_changes").changes) >= 5
    assert [path.name for path in call("get_v1_paths").paths] == ["long"]
    ports = {port.name: port for port in call("get_v1_ports").ports}
    assert ports["left"].packets_in >= 15, ports
    assert call("get_v1_rules", limit=3).next_ == 3
    assert call("get_v1_report").seed == 5
    assert call("get_v1_stats", match="home").totals.packets_out >= 30
    assert "longwire_link_received_bytes_total" in call("get_metrics")
    assert call("delete_v1_links_name", "home", client=read, status=403).error
    drive_view(call)
    drive_scenario(call)
    names = {model.name for model in call("get_v1_models").models}
    assert {"gilbert", "normal"} <= names, names

    def first_events(name, event, **named):
        called.add(name)
        return two_events(read, api[name]._get_kwargs(every="100ms", **named), event)

    events = first_events("get_v1_stats_stream", models.StatsEvent, match="home")
    assert events[1].interval_s > 0 and events[1].links == 2, events
    events = first_events("get_v1_history_stream", models.HistoryEvent, directions="home.up")
    assert "home.up" in events[1], events
    assert called == set(api), set(api) - called
    print("the generated client called every operation")


def drive_view(call):
    """Checks the page's operations. A direction is sampled from its first request on."""
    row = call("get_v1_table", match="home", limit=1).rows[0]
    assert row.name == "home.down", row
    call("get_v1_history_name", "home.up")
    call("get_v1_flows_name", "home.up")
    round_trip()
    time.sleep(0.5)
    history = call("get_v1_history_name", "home.up")
    assert sum(history.packets_in_per_s) * history.period_s > 4.9, history
    flows = call("get_v1_flows_name", "home.up")
    assert flows.packets >= 5, flows
    assert flows.flows[0].flow == "icmp 10.9.0.1 > 10.9.0.2", flows
    for name in ["get_v1_history_name", "get_v1_flows_name"]:
        assert "no direction" in call(name, "nothing.up", status=404).error
    fidelity = call("get_v1_fidelity")
    assert fidelity.verdict and fidelity.histogram, fidelity


def drive_scenario(call):
    """Skips to the only event, which is more than an hour ahead."""
    upcoming = call("get_v1_scenario")
    assert [event.at_ns for event in upcoming.events] == [5000 * 10**9], upcoming
    assert call("post_v1_scenario_skip").at_ns is not None
    assert call("get_v1_scenario").skipped_s > 4000


def two_events(client, asked, event):
    """Returns the first two events of a stream, requested as by the generated client."""
    with client.get_httpx_client().stream(**asked) as answer:
        assert answer.status_code == 200, answer
        lines = (line[6:] for line in answer.iter_lines() if line.startswith("data: "))
        return [event.from_dict(json.loads(next(lines))) for _ in range(2)]


def try_everything(folder):
    """Runs schemathesis, which sends both valid and invalid requests."""
    shutil.copy(HERE / "schemathesis.toml", folder)
    command = ["schemathesis", "run", folder / "openapi.json", "--url", URL]
    command += ["-H", f"Authorization: Bearer {TOKEN}"]
    command += [word for path in STREAMS for word in ("--exclude-path", path)]
    command += ["--checks", "all", "--max-examples", "100", "--seed", "1"]
    command += ["--request-timeout", "20", "--no-color"]
    run(*command, cwd=folder)


def main():
    longwire, folder = sys.argv[1], Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wire()
    running = start(longwire, folder)
    try:
        drive(generate(folder))
        try_everything(folder)
    finally:
        running.send_signal(signal.SIGINT)
        code = running.wait(20)
    assert code == 0, (code, (folder / "run.log").read_text())
    report = json.loads((folder / "report.json").read_text())
    print("the run ended well,", len(report["changes"]["made"]), "changes in its report")


main()
