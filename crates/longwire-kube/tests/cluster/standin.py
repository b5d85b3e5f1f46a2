"""A stand-in for `longwire node`: attachments and networks are table entries, and every request
is recorded with its time. Used by tests of the control plane, whose pods have no network
namespaces; tests/cluster/test_pods.py uses the real node."""

from __future__ import annotations

import json
import os
import socketserver
import threading
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path


class StandIn:
    """A node that listens on a Unix socket."""

    def __init__(self, socket: Path):
        self.socket = socket
        self.lock = threading.Lock()
        self.attachments: dict[str, dict] = {}
        self.networks: dict[str, dict] = {}
        # Duration of a network change in seconds, to simulate a process that takes long to end.
        self.network_seconds = 0.0
        self.underlay_lost = 0
        self.requests: list[tuple[float, str, str, dict | None]] = []
        self.server: _Server | None = None
        self.start()

    def start(self) -> None:
        self.socket.unlink(missing_ok=True)
        self.server = _Server(str(self.socket), _Handler)
        self.server.node = self
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self, forget: bool = True) -> None:
        """Stops the node, which optionally loses its attachments."""
        self.server.shutdown()
        self.server.server_close()
        self.socket.unlink(missing_ok=True)
        if forget:
            self.attachments.clear()
            self.networks.clear()

    def pods(self) -> dict[str, list[str]]:
        """Returns the prefixes of each pod's attachments."""
        with self.lock:
            views = list(self.attachments.values())
        found: dict[str, list[str]] = {}
        for view in views:
            spec = view["spec"]
            found.setdefault(spec["target"]["pod"], []).extend(spec.get("to", []))
        return {pod: sorted(to) for pod, to in found.items()}

    def spec_of(self, pod: str) -> dict | None:
        with self.lock:
            specs = [view["spec"] for view in self.attachments.values()]
        return next((spec for spec in specs if spec["target"]["pod"] == pod), None)

    def changes(self, since: float) -> list[tuple[str, str]]:
        """Returns the requests that change something, after a time of the monotonic clock."""
        with self.lock:
            return [(method, path) for at, method, path, _ in self.requests if at >= since and method != "GET"]

    # The API.

    def put(self, name: str, spec: dict) -> tuple[int, dict]:
        if "delay" in spec.get("link", {}) and not str(spec["link"]["delay"])[:1].isdigit():
            problem = {"file": "attachment", "pointer": "/link/delay", "field": "delay",
                       "reason": "'soon' is not a time", "remedy": "write a number with a unit: 20ms"}
            return 422, {"error": "delay: 'soon' is not a time", "problems": [problem]}
        with self.lock:
            old = self.attachments.get(name)
            is_new = old is None
            since = int(time.time()) if is_new else old["since_unix"]
            view = {"name": name, "state": "attached", "interfaces": ["eth0"], "since_unix": since, "returns": 0,
                    "spec": spec}
            self.attachments[name] = view
        return (201 if is_new else 200), view

    def answer(self, method: str, path: str, body: dict | None) -> tuple[int, dict]:
        with self.lock:
            self.requests.append((time.monotonic(), method, path, body))
        if path == "/v1/attachments":
            with self.lock:
                return 200, {"attachments": [self.attachments[name] for name in sorted(self.attachments)]}
        if path == "/v1/networks":
            with self.lock:
                return 200, {"networks": [self.network(name) for name in sorted(self.networks)]}
        if path.startswith("/v1/networks/"):
            return self.answer_network(method, path.removeprefix("/v1/networks/"), body)
        if path.startswith("/v1/attachments/"):
            name, _, rest = path.removeprefix("/v1/attachments/").partition("/")
            if rest == "stats" and name in self.attachments:
                return 200, {"links": 2, "totals": {"packets_in": 2020, "packets_out": 2000, "drops": {"loss": 20}}}
            if rest == "report" and name in self.attachments:
                return 200, {"ports": [{"artifacts": {"late": 0}, "lateness_us": {"p99": 41.5}}]}
            if method == "PUT" and not rest:
                return self.put(name, body)
            if method == "DELETE" and not rest:
                with self.lock:
                    self.attachments.pop(name, None)
                return 200, {"name": name, "packets_in": 0, "packets_out": 0, "dropped": 0, "in_flight": 0}
        return 404, {"error": f"there is no {path}"}

    def network(self, name: str) -> dict:
        """Returns the view of a network."""
        return {"name": name, "state": "running", "spec": self.networks[name]}

    def answer_network(self, method: str, path: str, body: dict | None) -> tuple[int, dict]:
        name, _, rest = path.partition("/")
        if method in ("PUT", "DELETE"):
            time.sleep(self.network_seconds)
            with self.lock:
                self.networks.pop(name, None)
                if method == "DELETE":
                    return 200, {"name": name}
                self.networks[name] = body
                return 200, self.network(name)
        if rest == "stats" and name in self.networks:
            return 200, {"totals": {"packets_out": 300, "drops": {}}}
        if rest == "report" and name in self.networks:
            # The report of a running network counts frames lost on the underlay per peer.
            ports = [{"name": "a", "artifacts": {"late": 0}, "lateness_us": {"p99": 11}}]
            peer = {"name": "other", "frames_lost": self.underlay_lost, "outages": 0}
            return 200, {"ports": ports, "hosts": {"name": "own", "peers": [peer]}}
        return 404, {"error": f"there is no network {name}"}


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    # The backlog of the node's socket.
    request_queue_size = 128
    node: StandIn


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        status, answer = self.server.node.answer(self.command, self.path, body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_DELETE = do_POST = _answer

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_) -> None:
        pass
