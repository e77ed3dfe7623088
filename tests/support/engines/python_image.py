"""An image with the Python that runs the tests, as an archive of `docker save`: what needs an image with Python is then
tried without a registry."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from pathlib import Path

_LEFT_OUT = (
    "site-packages",
    "test",
    "tests",
    "__pycache__",
    "idlelib",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "turtledemo",
)


def write_python_image(path: Path, name: str) -> None:
    """Its files stand where they stand here; the interpreter is /usr/bin/python3.X too, and python3."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        interpreter = os.path.realpath(sys.executable)
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        _add(tar, interpreter, f"usr/bin/python{version}")
        _link(tar, "usr/bin/python3", f"python{version}")
        stdlib = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
        tar.add(stdlib, str(stdlib).lstrip("/"), filter=_wanted)
        for library in sorted(set(_libraries(interpreter, *map(str, stdlib.glob("lib-dynload/*.so"))))):
            _add(tar, library, library.lstrip("/"))
    data = layer.getvalue()
    environment = ["PATH=/usr/bin", f"PYTHONHOME={sys.base_prefix}", f"PYTHON_VERSION={sys.version.split()[0]}"]
    config = {
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine),
        "os": "linux",
        "config": {"Env": environment, "Cmd": ["python3"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
    }
    with tarfile.open(path, "w") as tar:
        manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
        for file, content in (
            ("layer.tar", data),
            ("config.json", json.dumps(config).encode()),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            info = tarfile.TarInfo(file)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def _libraries(*programs: str) -> Iterator[str]:
    told = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False).stdout
    yield from re.findall(r"(/\S+) \(0x", told)


def _add(tar: tarfile.TarFile, source: str, name: str) -> None:
    """A file, not the link that may lead to it."""
    tar.add(os.path.realpath(source), name)


def _link(tar: tarfile.TarFile, name: str, target: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    tar.addfile(info)


def _wanted(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if set(Path(info.name).parts) & set(_LEFT_OUT) or info.name.endswith((".a", ".pyc")) else info
