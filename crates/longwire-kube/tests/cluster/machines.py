"""Emulated cluster machines: network and mount namespaces, each with a containerd and a kubelet
at their usual paths, joined by an underlay emulated by Longwire.

```text
             cp (control plane: 10.96.0.1:443)
            /                                 \\
  172.30.1.0/30                           172.30.2.0/30
          /                                     \\
  m1 (pods 10.88.1.0/24) ── 172.31.0.0/24 ── m2 (pods 10.88.2.0/24)
                         longwire: the underlay
```
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from bed import Bed, Process, until

SERVICE = "10.96.0.1"
CNI = ["/usr/lib/cni", "/opt/cni/bin"]


def ip(*words) -> str:
    done = subprocess.run(["ip", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


class Machine:
    """A machine, whose programs see their files at the usual paths."""

    def __init__(self, bed: Bed, name: str, number: int, longwire: Path):
        self.bed, self.name, self.number = bed, name, number
        self.netns = f"{bed.prefix}-{name}"
        self.directory = bed.directory / name
        self.longwire = longwire
        self.processes: list[Process] = []
        for part in ["run", "kubelet", "containerd", "cni", "bpf", "bin", "log"]:
            (self.directory / part).mkdir(parents=True)

    def network(self, control: str) -> None:
        """Creates a link to the control plane, and assigns addresses."""
        ip("netns", "add", self.netns)
        ip("-n", self.netns, "link", "set", "lo", "up")
        n = self.number
        ip("link", "add", "cp", "netns", self.netns, "type", "veth", "peer", "name", f"m{n}", "netns", control)
        ip("-n", self.netns, "address", "add", f"172.30.{n}.2/30", "dev", "cp")
        ip("-n", control, "address", "add", f"172.30.{n}.1/30", "dev", f"m{n}")
        ip("-n", self.netns, "link", "set", "cp", "up")
        ip("-n", control, "link", "set", f"m{n}", "up")
        ip("-n", self.netns, "route", "add", f"{SERVICE}/32", "via", f"172.30.{n}.1")
        ip("-n", control, "route", "add", f"10.88.{n}.0/24", "via", f"172.30.{n}.2")
        ip("-n", control, "route", "add", f"172.31.0.{n}/32", "via", f"172.30.{n}.2")
        subprocess.run(["ip", "netns", "exec", self.netns, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)

    @property
    def address(self) -> str:
        return f"172.31.0.{self.number}"

    def prepare(self, images: list[Path]) -> None:
        """Creates the mount namespace, starts containerd, and imports the images."""
        d = self.directory
        (d / "cni" / "10-bed.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": "bed", "plugins": [
                {"type": "bridge", "bridge": "pods", "isGateway": True, "mtu": 1500,
                 "ipam": {"type": "host-local", "dataDir": str(d / "leases"),
                          "ranges": [[{"subnet": f"10.88.{self.number}.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
            ]}))
        (d / "containerd.toml").write_text(f"""
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "longwire.test/pause:1"
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{next(path for path in CNI if os.path.isdir(path))}"
    conf_dir = "{d / 'cni'}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
""")
        script = f"""
set -e
mount --bind {d}/run /run
mkdir -p /run/netns /var/lib/kubelet /var/lib/containerd
mount --bind {d}/kubelet /var/lib/kubelet
mount --bind {d}/containerd /var/lib/containerd
mount --bind {d}/log /var/log
mount -t bpf bpf /sys/fs/bpf
mount --make-rshared /
exec sleep infinity
"""
        for path in ["/var/lib/kubelet", "/var/lib/containerd"]:
            Path(path).mkdir(parents=True, exist_ok=True)
        # This process keeps the namespaces alive; they end with it.
        self.keeper = Process(d, "keeper", ["nsenter", f"--net=/run/netns/{self.netns}", "unshare", "--mount",
                                            "--propagation", "private", "sh", "-c", script])
        until(lambda: "/var/lib/containerd" in Path(f"/proc/{self.keeper.pid}/mounts").read_text()
              and " /sys/fs/bpf bpf" in Path(f"/proc/{self.keeper.pid}/mounts").read_text(), 10, self.keeper.tail())
        self.containerd = self.run("containerd", "containerd", "--config", d / "containerd.toml")
        until(lambda: self.here("ctr", "version", check=False).returncode == 0, 30, "containerd answers")
        for image in images:
            self.here("ctr", "-n", "k8s.io", "images", "import", image)

    def enter(self) -> list[str]:
        return ["nsenter", "-t", str(self.keeper.pid), "--net", "--mount", "--"]

    def here(self, *words, check: bool = True) -> subprocess.CompletedProcess:
        """Runs a command on the machine."""
        done = subprocess.run([*self.enter(), *map(str, words)], capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}")
        return done

    def run(self, name: str, *words) -> Process:
        process = Process(self.directory, name, [*self.enter(), *words])
        self.processes.append(process)
        return process

    def start_kubelet(self) -> None:
        d = self.directory
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "failCgroupV1": False, "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [],
            "failSwapOn": False, "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"}, "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False, "evictionHard": {"memory.available": "1Mi"},
            "nodeStatusUpdateFrequency": "4s", "syncFrequency": "2s", "resolvConf": "",
            "oomScoreAdj": 0, "healthzPort": 0, "serverTLSBootstrap": False,
        }
        (d / "kubelet.json").write_text(json.dumps(config))
        self.kubelet = self.run(
            "kubelet", self.bed.program("kubelet"), "--config", d / "kubelet.json", "--kubeconfig",
            self.bed.kubeconfig, "--root-dir", "/var/lib/kubelet", "--hostname-override", self.name,
            "--node-ip", self.address, "--cert-dir", d / "pki", "--v", "1",
        )

    def log(self, pod: dict) -> str:
        """Returns the output of a pod's container since its start."""
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        return (self.directory / "log" / "pods" / f"default_{name}_{uid}" / "app" / "0.log").read_text()

    def close(self) -> None:
        for process in reversed(self.processes):
            process.stop(seconds=10)
        # Container shims outlive containerd, and pod sandboxes are paused programs.
        mine = str(self.directory)
        for path in Path("/proc").glob("[0-9]*"):
            try:
                same = os.readlink(path / "ns" / "mnt") == os.readlink(f"/proc/{self.keeper.pid}/ns/mnt")
                shim = "containerd-shim" in (path / "cmdline").read_text()
            except OSError:
                continue
            if same and shim:
                for child in children(int(path.name)):
                    kill(child)
                kill(int(path.name))
        self.keeper.stop()
        subprocess.run(["ip", "netns", "delete", self.netns], capture_output=True)
        assert mine


def children(pid: int) -> list[int]:
    listed = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    found = [int(word) for word in listed.split()]
    return [grandchild for child in found for grandchild in children(child)] + found


def kill(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        pass


def cgroups() -> set[Path]:
    """Returns the cgroups of Kubernetes containers."""
    roots = [path for pattern in ["k8s.io", "*/k8s.io"] for path in Path("/sys/fs/cgroup").glob(pattern)]
    return {path for root in roots for path in [root, *root.rglob("*")] if path.is_dir()}


class Machines(Bed):
    """A cluster of two machines, with its control plane in a separate namespace."""

    def __init__(self, bin_directory: Path, longwire: Path):
        super().__init__(bin_directory)
        self.prefix = f"lwk{os.getpid()}"
        self.netns = f"{self.prefix}-cp"
        self.longwire = longwire
        self.machines: dict[str, Machine] = {}
        self.cgroups = cgroups()

    def up(self, images: list[Path], underlay: str) -> "Machines":
        ip("netns", "add", self.netns)
        ip("-n", self.netns, "link", "set", "lo", "up")
        ip("-n", self.netns, "address", "add", f"{SERVICE}/32", "dev", "lo")
        # The API server's aggregator requires a default route.
        ip("-n", self.netns, "link", "add", "out", "type", "veth", "peer", "name", "out2")
        ip("-n", self.netns, "address", "add", "172.29.0.1/24", "dev", "out")
        for device in ["out", "out2"]:
            ip("-n", self.netns, "link", "set", device, "up")
        ip("-n", self.netns, "route", "add", "default", "via", "172.29.0.2")
        self.start(address="0.0.0.0", port=443, server=SERVICE)
        self.run("kube-controller-manager", self.program("kube-controller-manager"), "--kubeconfig", self.kubeconfig,
                 "--service-account-private-key-file", self.directory / "sa.key", "--root-ca-file",
                 self.directory / "ca.crt", "--leader-elect=false", "--node-monitor-grace-period=12s",
                 "--node-monitor-period=2s")
        self.run("kube-scheduler", self.program("kube-scheduler"), "--kubeconfig", self.kubeconfig,
                 "--leader-elect=false")
        for number, name in enumerate(["m1", "m2"], 1):
            machine = Machine(self, name, number, self.longwire)
            self.machines[name] = machine
            machine.network(self.netns)
        self.join(underlay)
        for machine in self.machines.values():
            machine.prepare(images)
            machine.start_kubelet()
        until(self.are_ready, 120, "both nodes are ready", 0.5)
        return self

    def are_ready(self) -> bool:
        nodes = self.get("nodes")["items"]
        ready = [c["status"] for node in nodes for c in node["status"]["conditions"] if c["type"] == "Ready"]
        return ready == ["True", "True"]

    def join(self, underlay: str) -> None:
        """Starts the underlay: a Longwire link between the machines, with this delay each way."""
        wire = f"{self.prefix}-wire"
        ip("netns", "add", wire)
        for machine in self.machines.values():
            n, other = machine.number, 3 - machine.number
            ip("link", "add", "u0", "netns", machine.netns, "type", "veth", "peer", "name", f"u{n}", "netns", wire)
            ip("-n", machine.netns, "address", "add", f"172.31.0.{n}/24", "dev", "u0")
            ip("-n", machine.netns, "link", "set", "u0", "up")
            ip("-n", wire, "link", "set", f"u{n}", "up")
            ip("-n", machine.netns, "route", "add", f"10.88.{other}.0/24", "via", f"172.31.0.{other}")
        self.wire = self.run("underlay", self.longwire, "run", "packet:u1", "packet:u2", "--delay", underlay,
                             netns=wire)

    def close(self) -> None:
        for machine in self.machines.values():
            machine.close()
        super().close()
        for name in ["cp", "wire"]:
            subprocess.run(["ip", "netns", "delete", f"{self.prefix}-{name}"], capture_output=True)
        # runc leaves cgroups behind. Remove those of containers before their parents.
        for path in sorted(cgroups() - self.cgroups, reverse=True):
            try:
                path.rmdir()
            except OSError:
                pass
        shutil.rmtree(self.directory, ignore_errors=True)
