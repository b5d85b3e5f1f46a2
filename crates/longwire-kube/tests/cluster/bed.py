"""A Kubernetes control plane on this machine, for tests: etcd, kube-apiserver and, if
requested, kwok, kube-controller-manager, kube-scheduler and two kubelets.

All files are in one temporary directory, and all programs end with the process that started them.
No image registry is used, and no port is open outside loopback and the bed's own namespaces.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def until(probe, seconds: float, what: str, pause: float = 0.05):
    """Returns the first true result of `probe`; an error names the awaited event."""
    end = time.monotonic() + seconds
    last = None
    while time.monotonic() < end:
        try:
            last = probe()
        except Exception as error:  # Retried; the last error is shown.
            last, found = error, None
        else:
            found = last
        if found:
            return found
        time.sleep(pause)
    raise TimeoutError(f"{what}: not within {seconds} s; last: {last!r}")


class Process:
    """A program of the bed that writes its output to a file."""

    def __init__(self, directory: Path, name: str, words: list, netns: str | None = None, env=None):
        self.name, self.words, self.netns = name, [str(word) for word in words], netns
        self.env = {**os.environ, **(env or {})}
        self.log = directory / f"{name}.log"
        self.child: subprocess.Popen | None = None
        self.start()

    def start(self) -> None:
        words = self.words
        if self.netns:
            words = ["ip", "netns", "exec", self.netns, *words]
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                words, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                preexec_fn=die_with_parent, env=self.env,
            )

    @property
    def pid(self) -> int:
        return self.child.pid

    def alive(self) -> bool:
        return self.child.poll() is None

    def send(self, number: int) -> None:
        self.child.send_signal(number)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 10) -> int:
        if self.alive():
            self.child.send_signal(number)
            try:
                self.child.wait(seconds)
            except subprocess.TimeoutExpired:
                self.child.kill()
        return self.child.wait()

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Bed:
    """A bed with etcd, kube-apiserver, and programs that tests add."""

    def __init__(self, bin_directory: Path):
        self.bin = Path(bin_directory)
        self.directory = Path(tempfile.mkdtemp(prefix="longwire-kube-"))
        self.processes: list[Process] = []
        self.token = secrets.token_hex(16)
        self.address = "127.0.0.1"
        # Namespace of the control plane; by default the caller's.
        self.netns: str | None = None

    # Programs.

    def run(self, name: str, *words, netns=None, env=None) -> Process:
        process = Process(self.directory, name, list(words), netns or self.netns, env)
        self.processes.append(process)
        return process

    def program(self, name: str) -> Path:
        found = self.bin / name
        if found.exists():
            return found
        path = shutil.which(name)
        if not path:
            raise FileNotFoundError(f"{name} is not in {self.bin} nor on PATH; `cargo xtask kube-test` builds it")
        return Path(path)

    # The control plane.

    def certificates(self, names: list[str]) -> None:
        """Creates a certificate authority and the API server's certificate with openssl."""
        d = self.directory

        def openssl(*words):
            subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True)

        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                d / "ca.key", "-out", d / "ca.crt", "-subj", "/CN=longwire-test", "-days", "2",
                "-addext", "keyUsage=critical,digitalSignature,keyCertSign,cRLSign")
        (d / "san").write_text("subjectAltName=" + ",".join(names) + "\nkeyUsage=digitalSignature,keyEncipherment\n"
                               "extendedKeyUsage=serverAuth,clientAuth\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                d / "api.key", "-out", d / "api.csr", "-subj", "/CN=kube-apiserver")
        openssl("x509", "-req", "-in", d / "api.csr", "-CA", d / "ca.crt", "-CAkey", d / "ca.key", "-CAcreateserial",
                "-out", d / "api.crt", "-days", "2", "-extfile", d / "san")
        openssl("genrsa", "-out", d / "sa.key", "2048")
        (d / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")

    def start(self, address: str = "127.0.0.1", port: int | None = None, server: str | None = None) -> "Bed":
        """Starts etcd and the API server, and waits until it is ready. With a port, pods can reach it,
        and service accounts get tokens."""
        self.address = server or address
        self.port = port or free_port()
        self.etcd_port, peer = free_port(), free_port()
        names = ["IP:127.0.0.1", "IP:10.96.0.1", "DNS:localhost"]
        self.certificates(names)
        d = self.directory
        self.etcd = self.run(
            "etcd", self.program("etcd"), "--data-dir", d / "etcd", "--unsafe-no-fsync",
            "--listen-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--advertise-client-urls", f"http://127.0.0.1:{self.etcd_port}",
            "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}",
        )
        self.apiserver = self.run(
            "kube-apiserver", self.program("kube-apiserver"),
            "--etcd-servers", f"http://127.0.0.1:{self.etcd_port}",
            "--bind-address", address, "--advertise-address", server or "10.255.255.254",
            "--secure-port", self.port, "--tls-cert-file", d / "api.crt", "--tls-private-key-file", d / "api.key",
            "--client-ca-file", d / "ca.crt", "--token-auth-file", d / "tokens.csv",
            "--authorization-mode", "RBAC,Node", "--service-cluster-ip-range", "10.96.0.0/16",
            "--service-account-issuer", "https://longwire.test", "--service-account-key-file", d / "sa.key",
            "--service-account-signing-key-file", d / "sa.key",
            "--kubelet-client-certificate", d / "api.crt", "--kubelet-client-key", d / "api.key",
            "--allow-privileged", "--endpoint-reconciler-type", "none",
            # Debian 12's etcd does not support watch lists; kwok would retry them and find pods only after
            # a minute.
            "--feature-gates", "WatchList=false",
            *(() if server else ("--disable-admission-plugins", "ServiceAccount")),
        )
        self.kubeconfig = self.write_kubeconfig("admin", self.token)
        self.ready()
        return self

    def ready(self, seconds: float = 120) -> None:
        def probe():
            if not self.apiserver.alive():
                raise RuntimeError(self.apiserver.tail())
            return self.kubectl("get", "--raw", "/readyz", check=False).strip() == "ok"

        until(probe, seconds, "the API server is ready", 0.5)

    def write_kubeconfig(self, name: str, token: str) -> Path:
        path = self.directory / f"{name}.kubeconfig"
        authority = base64.b64encode((self.directory / "ca.crt").read_bytes()).decode()
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "bed",
            "clusters": [{"name": "bed", "cluster": {
                "server": f"https://{self.address}:{self.port}", "certificate-authority-data": authority}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": name}}],
        }))
        return path

    def account(self, namespace: str, name: str) -> Path:
        """Returns the kubeconfig of a service account, with a token like those of pods."""
        token = self.kubectl("-n", namespace, "create", "token", name, "--duration=2h").strip()
        return self.write_kubeconfig(f"{namespace}-{name}", token)

    # Resources.

    def kubectl(self, *words, stdin: str | None = None, check: bool = True) -> str:
        return self.ask("kubectl", *words, stdin=stdin, check=check)

    def helm(self, *words) -> str:
        homes = {f"HELM_{kind}_HOME": str(self.directory / "helm") for kind in ["CACHE", "CONFIG", "DATA"]}
        return self.ask("helm", *words, env=homes)

    def ask(self, name: str, *words, stdin: str | None = None, check: bool = True, env=None) -> str:
        """Runs a client of the API server; returns stdout, followed by stderr unless errors are fatal."""
        enter = ["ip", "netns", "exec", self.netns] if self.netns else []
        done = subprocess.run(
            [*enter, str(self.program(name)), "--kubeconfig", str(self.kubeconfig), *map(str, words)],
            input=stdin, capture_output=True, text=True, env={**os.environ, **(env or {})},
        )
        if check and done.returncode:
            raise RuntimeError(f"{name} {' '.join(map(str, words))}: {done.stdout}{done.stderr.strip()}")
        return done.stdout if check else done.stdout + done.stderr

    def apply(self, *resources: dict) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": resources}))

    def get(self, *words) -> dict:
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def etcd_compact(self) -> None:
        """Compacts the history of all resources, so that watches from older states fail with 410."""
        def etcdctl(*words) -> str:
            return subprocess.run(
                ["etcdctl", "--endpoints", f"127.0.0.1:{self.etcd_port}", *words], check=True, capture_output=True,
                text=True, env={**os.environ, "ETCDCTL_API": "3"},
            ).stdout

        status = json.loads(etcdctl("endpoint", "status", "--write-out=json"))
        etcdctl("compact", str(status[0]["Status"]["header"]["revision"]))

    # The end.

    def close(self) -> None:
        for process in reversed(self.processes):
            process.stop(seconds=5)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> "Bed":
        return self

    def __exit__(self, *_) -> None:
        self.close()
