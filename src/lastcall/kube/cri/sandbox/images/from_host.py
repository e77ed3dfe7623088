"""Images made of the host's own programs, for a machine that cannot or must not pull.

The host's static busybox is copied where there is one. Otherwise the image is a small skeleton on which the host's own
/usr (and /bin, /lib, … where they are directories) are bound read-only.
"""

# check: starts processes because it asks busybox for its commands

import os
import re
import stat
import struct
import subprocess
import sys
from pathlib import Path

from lastcall.kube.cri.sandbox.images.build import HOST_BINDS, MADE_FROM, Files, ImageContent
from lastcall.kube.cri.sandbox.spec import ImageConfig

_DIRECTORIES = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/etc/alternatives")
_PYTHON = os.path.realpath(sys.base_prefix)
BINDABLE = (*_DIRECTORIES, _PYTHON)
"""The only directories of the host that an image may ask for, always read-only; the last one is this Python's."""

_BUSYBOX = ("/bin/busybox", "/usr/bin/busybox", "/sbin/busybox", "/usr/sbin/busybox", "/usr/local/bin/busybox")
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_APPLET = re.compile(r"[A-Za-z0-9_.\[+-]+")
_PT_INTERP = 3

_DIRECTORY, _LINK = stat.S_IFDIR, stat.S_IFLNK
_SKELETON: dict[str, tuple[bytes | str | Path, int]] = {
    **dict.fromkeys(("dev", "etc", "home", "proc", "run", "sys", "var", "var/lib"), (b"", _DIRECTORY | 0o755)),
    "root": (b"", _DIRECTORY | 0o700),
    "tmp": (b"", _DIRECTORY | 0o1777),
    "var/tmp": (b"", _DIRECTORY | 0o1777),
    "var/run": (b"../run", _LINK | 0o777),
    "etc/passwd": (b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n", 0o644),
    "etc/group": (b"root:x:0:\nnogroup:x:65534:\n", 0o644),
    "etc/nsswitch.conf": (b"passwd: files\ngroup: files\nhosts: files dns\n", 0o644),
    "etc/services": (b"domain 53/tcp\ndomain 53/udp\nhttp 80/tcp\nhttps 443/tcp\n", 0o644),
}


def host_image() -> ImageContent:
    """Return an image with a shell and the usual tools, of what this machine has."""
    busybox = static_busybox()
    return host_directories() if busybox is None else busybox_image(busybox)


def static_busybox() -> str | None:
    """Return the host's busybox that runs without any library, if it has one."""
    return next((path for path in _BUSYBOX if os.access(path, os.X_OK) and is_static(path)), None)


def busybox_image(busybox: str) -> ImageContent:
    """Return an image with busybox in /bin and a link for each applet."""
    files: dict[str, tuple[bytes | str | Path, int]] = {
        **_SKELETON,
        "bin": (b"", _DIRECTORY | 0o755),
        "usr": (b"", _DIRECTORY | 0o755),
        "usr/bin": (b"", _DIRECTORY | 0o755),
        "usr/bin/env": (b"../../bin/env", _LINK | 0o777),
        "bin/busybox": (busybox, 0o755),
    }
    for applet in _applets(busybox):
        files[f"bin/{applet}"] = (b"busybox", _LINK | 0o777)
    return ImageContent(files, ImageConfig(cmd=("sh",), env=(_PATH,)), {MADE_FROM: f"the host's {busybox}"})


def _applets(busybox: str) -> list[str]:
    listing = subprocess.run([busybox, "--list"], capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
    names = [name for name in listing.stdout.split() if _APPLET.fullmatch(name) and name not in (".", "..", "busybox")]
    return names or ["cat", "echo", "env", "false", "kill", "ls", "ps", "sh", "sleep", "test", "true", "wget"]


def host_directories() -> ImageContent:
    """Return a skeleton with the host's program and library directories; links among them (a merged /usr) stay
    links."""
    files: dict[str, tuple[bytes | str | Path, int]] = dict(_SKELETON)
    binds: list[str] = []
    for path in _DIRECTORIES:
        name = path.lstrip("/")
        if os.path.islink(path):
            files[name] = (os.fsencode(os.readlink(path)), _LINK | 0o777)
        elif os.path.isdir(path):
            files[name] = (b"", _DIRECTORY | 0o755)
            binds.append(path)
    made_from = f"the host's {', '.join(binds)} (bound read-only)"
    annotations = {HOST_BINDS: ":".join(binds), MADE_FROM: made_from}
    return ImageContent(_with_parents(files), ImageConfig(cmd=("sh",), env=(_PATH,)), annotations)


def python_image() -> ImageContent:
    """Return the host's directories, and the Python that runs this program as `python` and `python3`."""
    host = host_directories()
    interpreter = os.path.realpath(getattr(sys, "_base_executable", "") or sys.executable)
    binds = host.annotations[HOST_BINDS].split(":")
    files = dict(host.files)
    if not any(each == _PYTHON or _PYTHON.startswith(f"{each}/") for each in binds):
        files[_PYTHON.lstrip("/")] = (b"", _DIRECTORY | 0o755)
        binds.append(_PYTHON)
    for name in ("python", "python3"):
        files[f"opt/python/bin/{name}"] = (os.fsencode(interpreter), _LINK | 0o777)
    version = ".".join(str(part) for part in sys.version_info[:3])
    config = ImageConfig(
        cmd=("python3",), env=(_PATH.replace("=", "=/opt/python/bin:", 1), f"PYTHON_VERSION={version}")
    )
    annotations = {HOST_BINDS: ":".join(binds), MADE_FROM: f"the host's Python {version}, bound read-only"}
    return ImageContent(_with_parents(files), config, annotations)


def _with_parents(files: Files) -> Files:
    parents = {str(parent) for path in files for parent in Path(path).parents if str(parent) != "."}
    return dict.fromkeys(sorted(parents), (b"", _DIRECTORY | 0o755)) | dict(files)


def is_static(path: str) -> bool:
    """Return whether a file is an ELF program that names no interpreter, so that it runs in an empty root."""
    try:
        with open(path, "rb") as file:
            identification = file.read(16)
            if identification[:4] != b"\x7fELF":
                return False
            wide, order = identification[4] == 2, "<" if identification[5] == 1 else ">"
            header = struct.unpack(order + ("HHIQQQIHHH" if wide else "HHIIIIIHHH"), file.read(42 if wide else 30))
            # e_phoff, e_phentsize, e_phnum of the ELF header
            offset, size, count = header[4], header[8], header[9]
            for number in range(count):
                file.seek(offset + number * size)
                if struct.unpack(order + "I", file.read(4))[0] == _PT_INTERP:
                    return False
    except (OSError, struct.error, IndexError):
        return False
    return True
