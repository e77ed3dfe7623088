"""The images that critest names, from Debian's programs: stand-ins under the original names, in a registry of its own.

`python -m engines.cri_images PORT CERTIFICATE KEY [SHELL]` serves them with TLS on 127.0.0.1, until it is killed.
The first line that it prints is the digest of test-image-digest, which is not that of the original.
"""

import io
import json
import os
import platform
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
from pathlib import Path
from typing import Any

from oci_registry import Registry, tar_of

HOME = Path(os.environ.get("KUBERNETES_HOME") or Path.home() / ".cache/kubernetes-1.36.2")
CONFORMANCE = HOME / "conformance-images"
HOSTS = ("gcr.io", "registry.k8s.io", "k8s.gcr.io", "docker.io", "registry-1.docker.io")
E2E, STAGING = "e2e-test-images", "k8s-staging-cri-tools"
PATH = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
PROGRAMS = ("pgrep", "ipcs")
"""Of busybox in the original; Debian's has neither."""
NGINX_12003 = b"""user root;
worker_processes 1;
events { worker_connections 256; }
http { include /etc/nginx/mime.types; access_log /dev/stdout; error_log /dev/stderr;
  server { listen 12003; root /usr/share/nginx/html; location / { index index.html; } } }
"""
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/false\nnobody:x:65534:65534::/:/bin/false\n"
_GROUP = b"root:x:0:\nwww-data:x:33:\nnogroup:x:65534:\n"


def missing_images() -> str:
    """Why they cannot be made here, "" when they can."""
    for name in ("nginx-old.tar", "nonewprivs.tar", "pause.tar"):
        if not (CONFORMANCE / name).exists():
            return f"{CONFORMANCE / name} is not there"
    if not (HOME / "images/busybox.tar").exists():
        return f"{HOME / 'images/busybox.tar'} is not there"
    return next((f"{each} is not installed" for each in PROGRAMS if shutil.which(each) is None), "")


def _layers(archive: Path) -> list[bytes]:
    with tarfile.open(archive) as tar:
        names = json.load(tar.extractfile("manifest.json"))[0]["Layers"]  # type: ignore[arg-type]
        return [tar.extractfile(name).read() for name in names]  # type: ignore[union-attr]


def _libraries(program: Path) -> dict[str, bytes]:
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True, timeout=30).stdout
    paths = re.findall(r"(/\S+\.so\S*)", listed)
    return {path.removeprefix("/usr").lstrip("/"): Path(path).read_bytes() for path in paths}


def _programs(shell: Path | None) -> bytes:
    """pgrep and ipcs of this machine with their libraries, and a shell."""
    files: dict[str, bytes] = {}
    for name in PROGRAMS:
        path = shutil.which(name)
        assert path is not None
        files[f"bin/{name}"] = Path(path).read_bytes()
        files |= _libraries(Path(path))
    busybox = Path("/bin/busybox").read_bytes()
    if shell is not None:
        files["bin/sh"] = shell.read_bytes()
        files |= _libraries(shell)
    files["bin/ls"] = busybox  # not a link: critest masks it
    return tar_of(files)


def fetch_shell(directory: Path) -> Path | None:
    """Debian's other busybox, whose shell does not prefer its own `ls`; None where it cannot be fetched."""
    directory.mkdir()
    for command in (["apt-get", "download", "busybox"], ["sh", "-c", "dpkg-deb -x busybox_*.deb ."]):
        try:
            subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=60)
        except (OSError, subprocess.SubprocessError):
            return None
    return next((path for name in ("bin", "usr/bin") if (path := directory / name / "busybox").is_file()), None)


def _link(name: str, target: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, target, 0o777
        tar.addfile(entry)
    return buffer.getvalue()


def fill(registry: Registry, shell: Path | None = None) -> str:
    """Every image, under every host; answers the digest of test-image-digest."""
    busybox = _layers(HOME / "images/busybox.tar")
    small: dict[str, Any] = {"Env": PATH, "Cmd": ["sh"]}
    tools = [*busybox, _programs(shell)]
    put = registry.put
    for tag in ("1.29-2", "1.37.0-1"):
        put(f"{E2E}/busybox:{tag}", registry.manifest(tools, small))
    put("library/busybox:1.36", registry.manifest(busybox, small))
    nginx = [*_layers(CONFORMANCE / "nginx-old.tar"), _link("var/run", "../run")]
    server = {"Env": PATH, "Cmd": ["nginx", "-g", "daemon off;"]}
    put(f"{E2E}/nginx:1.14-2", registry.manifest(nginx, server))
    hostnet = [*nginx, tar_of({"etc/nginx/nginx.conf": NGINX_12003}, 0o644)]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    put(f"{STAGING}/hostnet-nginx-{machine}:latest", registry.manifest(hostnet, server))
    page = tar_of({"www/index.html": b"<html>It works!</html>\n"}, 0o644)
    serve = "echo httpd: serves; exec busybox httpd -f -p 80 -h /www"
    put(f"{E2E}/httpd:2.4.39-4", registry.manifest([*busybox, page], {"Env": PATH, "Cmd": ["sh", "-c", serve]}))
    nnp = _layers(CONFORMANCE / "nonewprivs.tar")
    put(f"{E2E}/nonewprivs:1.3", registry.manifest(nnp, {"Env": PATH, "Cmd": ["nnp"]}))
    pause = registry.manifest(_layers(CONFORMANCE / "pause.tar"), {"Entrypoint": ["/pause"], "User": "65535:65535"})
    for tag in ("3.9", "3.10"):
        put(f"pause:{tag}", pause)
    accounts = tar_of({"etc/passwd": _PASSWD, "etc/group": _GROUP}, 0o644)
    users = {"uid": "1002", "username": "www-data", "uid-group": "1003:1004", "username-group": "www-data:1004"}
    for name, user in users.items():
        put(
            f"{STAGING}/test-image-user-{name}:latest", registry.manifest([*busybox, accounts], {**small, "User": user})
        )
    more = {
        "etc/passwd": _PASSWD + b"default-user:x:1000:1000::/home/default-user:/bin/sh\n",
        "etc/group": _GROUP + b"default-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\n",
    }
    predefined = registry.manifest([*busybox, tar_of(more, 0o644)], {**small, "User": "1000"})
    put(f"{STAGING}/test-image-predefined-group:latest", predefined)
    digest = ""
    names = ("1:latest", "2:latest", "3:latest", "latest:latest", "digest:latest", "tag:test", "tag:all")
    for name in (*names, "tags:1", "tags:2", "tags:3"):
        content = "same-image" if name.startswith("tags") else name.replace(":", "-")
        manifest = registry.manifest([*busybox, tar_of({content: b""}, 0o644)], small)
        found = put(f"{STAGING}/test-image-{name}", manifest)
        digest = found if name.startswith("digest") else digest
    return digest


def main(port: str, certificate: str, key: str, shell: str = "") -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    registry = Registry(int(port), tls=context)
    digest = fill(registry, Path(shell) if shell else None)
    with registry:
        print(digest, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:5])
