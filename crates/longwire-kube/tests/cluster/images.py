"""OCI images built from this machine's programs and their libraries, without a registry."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
APPLETS = ["sh", "sleep", "httpd", "tail", "cat", "touch", "wget", "ip", "nc"]


def write(path: Path, name: str, programs: dict[str, Path], config: dict) -> Path:
    """Writes an image with these programs in `/bin`; `busybox` includes its applets."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        added: set[str] = set()

        def add(source: Path, target: str) -> None:
            if target not in added:
                added.add(target)
                info = tar.gettarinfo(str(source.resolve()), target)
                info.uid = info.gid = 0
                info.type, info.linkname, info.size = tarfile.REGTYPE, "", source.resolve().stat().st_size
                with source.resolve().open("rb") as file:
                    tar.addfile(info, file)

        for directory in ["bin", "tmp", "etc", "proc", "sys", "run", "dev"]:
            info = tarfile.TarInfo(directory)
            info.type, info.mode = tarfile.DIRTYPE, 0o777 if directory == "tmp" else 0o755
            tar.addfile(info)
        for program, source in programs.items():
            add(source, f"bin/{program}")
            for library in libraries(source):
                add(library, str(library).lstrip("/"))
            for applet in APPLETS if program == "busybox" else []:
                info = tarfile.TarInfo(f"bin/{applet}")
                info.type, info.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(info)
    blobs: dict[str, bytes] = {}

    def blob(content: bytes, kind: str) -> dict:
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": f"sha256:{digest}", "size": len(content)}

    layer_of = blob(layer.getvalue(), "layer.v1.tar")
    image = {"architecture": ARCHITECTURE, "os": "linux", "config": {"Env": ["PATH=/bin"], **config},
             "rootfs": {"type": "layers", "diff_ids": [layer_of["digest"]]}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": blob(json.dumps(image).encode(), "config.v1+json"), "layers": [layer_of]}
    entry = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
             "index.json": json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode(), **blobs}
    with tarfile.open(path, "w") as tar:
        for file, content in files.items():
            info = tarfile.TarInfo(file)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def libraries(program: Path) -> list[Path]:
    """Returns the shared libraries of a program and its loader; empty for a static program."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True)
    words = listed.stdout.split() if listed.returncode == 0 else []
    return sorted({Path(word) for word in words if word.startswith("/")})


def tools(*names: str) -> dict[str, Path]:
    return {name: Path(shutil.which(name) or f"/missing/{name}") for name in names}
