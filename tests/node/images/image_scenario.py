"""Unpacks images in namespaces of its own, mounts them with overlayfs and runs something in them; prints JSON.

Usage: image_scenario.py <scenario>. Started by test_images_unpacked.py.
"""

import hashlib
import io
import json
import os
import signal
import stat
import subprocess
import sys
import tarfile
from typing import Any

from lastcall.kube.cri.sandbox.images import ImageContent, ImageStore
from lastcall.kube.cri.sandbox.images.from_host import busybox_image, host_directories, static_busybox
from lastcall.kube.cri.sandbox.images.layout import CONFIG, LAYER, MANIFEST
from lastcall.kube.cri.sandbox.spec import RootFilesystem
from lastcall.world import linux
from lastcall.world.id_maps import write_id_maps

PLACE = "/tmp"


def mounted(root: RootFilesystem) -> str:
    """Mount as the runtime does; answers the directory."""
    for name in ("upper", "work", "merged"):
        os.makedirs(f"{PLACE}/{name}", exist_ok=True)
    layers = ":".join(root.lowerdirs)
    options = f"lowerdir={layers},upperdir={PLACE}/upper,workdir={PLACE}/work"
    linux.mount("overlay", f"{PLACE}/merged", "overlay", 0, options)
    for bind in root.binds:
        target = f"{PLACE}/merged{bind.container_path}"
        linux.mount(bind.host_path, target, None, linux.MS_BIND | linux.MS_REC)
        linux.mount_setattr(linux.AT_FDCWD, target, linux.AT_RECURSIVE, linux.MOUNT_ATTR_RDONLY)
    return f"{PLACE}/merged"


def run_in(root: str, script: str) -> str:
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    command = ["sh", "-c", script]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        preexec_fn=lambda: (os.chroot(root), os.chdir("/")),
    )
    return done.stdout + done.stderr


def store(content: ImageContent | None = None) -> ImageStore:
    substitutes = {"busybox": lambda: content} if content is not None else {}
    return ImageStore(f"{PLACE}/images", unpacked=f"{PLACE}/unpacked", substitutes=substitutes)


def busybox() -> dict[str, Any]:
    program = static_busybox()
    if program is None:
        return {"skipped": "no static busybox on this machine"}
    root = store(busybox_image(program)).rootfs("busybox:1.36")
    directory = mounted(root)
    ignored = "trap 'echo got TERM; exit 3' TERM; kill -TERM $$; exit 9"
    return {
        "output": run_in(directory, "echo hello; ls /etc/passwd; touch /written && echo wrote"),
        "trap": run_in(directory, ignored),
        "env": run_in(directory, "/usr/bin/env true && echo env"),
        "lowerUnchanged": not os.path.exists(f"{root.lowerdirs[0]}/written"),
    }


def directories() -> dict[str, Any]:
    root = store(host_directories()).rootfs("busybox:1.36")
    directory = mounted(root)
    return {
        "output": run_in(directory, "echo hello; ls /etc/passwd; touch /written && echo wrote"),
        "readOnly": run_in(directory, "touch /usr/lastcall-test; echo $?"),
        "sleep": run_in(directory, "sleep 0 && echo slept"),
    }


def layer(*entries: tuple[str, bytes, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind, data in entries:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.mode = kind, len(data), 0o755
            info.uid = info.gid = 33
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def layered(*layers: bytes) -> ImageStore:
    """A store with an image `layered` of these layers."""
    images = store()
    descriptors = []
    for data in layers:
        with images.layout.new_blob(LAYER) as blob:
            blob.write(data)
        descriptors.append(blob.descriptor())
    diff_ids = [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in layers]
    config = images.layout.add_document(CONFIG, {"rootfs": {"type": "layers", "diff_ids": diff_ids}})
    manifest = {"config": config.render(), "layers": [descriptor.render() for descriptor in descriptors]}
    images.layout.put("docker.io/library/layered:1", images.layout.add_document(MANIFEST, manifest))
    return images


DIRECTORY, FILE = tarfile.DIRTYPE, tarfile.REGTYPE
BASE = layer(
    ("etc", DIRECTORY, b""),
    ("etc/passwd", FILE, b"one"),
    ("etc/group", FILE, b"one"),
    ("var", DIRECTORY, b""),
    ("var/a", FILE, b"one"),
)


def tree(root: str) -> dict[str, str]:
    found = {}
    for directory, _, files in os.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            with open(path) as file:
                found[os.path.relpath(path, root)] = file.read()
    return found


def whiteouts() -> dict[str, Any]:
    images = layered(BASE, layer(("etc/.wh.passwd", FILE, b""), ("etc/new", FILE, b"two"), (".wh.var", FILE, b"")))
    root = images.rootfs("layered:1")
    directory = mounted(root)
    return {"layers": len(root.lowerdirs), "tree": tree(directory), "top": sorted(os.listdir(directory))}


def opaque() -> dict[str, Any]:
    images = layered(BASE, layer(("etc/.wh..wh..opq", FILE, b""), ("etc/new", FILE, b"two")))
    root = images.rootfs("layered:1")
    return {
        "layers": len(root.lowerdirs),
        "tree": tree(mounted(root)),
        "unpacked": len(os.listdir(f"{PLACE}/unpacked")),
    }


def many() -> dict[str, Any]:
    layers = [layer((f"f{number}", FILE, b"x")) for number in range(60)]
    root = layered(BASE, *layers).rootfs("layered:1")
    return {"layers": len(root.lowerdirs), "files": len(tree(mounted(root)))}


def owners() -> dict[str, Any]:
    root = layered(BASE).rootfs("layered:1")
    status = os.stat(f"{root.lowerdirs[0]}/etc/passwd")
    with open("/proc/self/uid_map") as file:
        mapped = sum(int(line.split()[2]) for line in file)
    return {"uid": status.st_uid, "mapped": mapped, "mode": stat.S_IMODE(status.st_mode)}


def full() -> dict[str, Any]:
    """An image larger than the state directory."""
    linux.mount("small", "/mnt", "tmpfs", 0, "size=64k")
    images = layered(layer(("big", FILE, b"x" * 200_000)))
    small = ImageStore(images.layout.root, unpacked="/mnt/unpacked")
    try:
        small.rootfs("layered:1")
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}", "left": os.listdir("/mnt/unpacked")}
    return {"error": "", "left": []}


if __name__ == "__main__":
    with open("/proc/self/status") as status_file:
        capabilities = next(line.split()[1] for line in status_file if line.startswith("CapEff"))
    read, write = os.pipe()
    pid = linux.clone3(linux.CLONE_NEWUSER | linux.CLONE_NEWNS)
    if pid == 0:
        os.close(write)
        os.read(read, 1)
        linux.set_parent_death_signal(signal.SIGKILL)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        linux.mount("state", PLACE, "tmpfs")
        print(json.dumps({**globals()[sys.argv[1]](), "capEff": capabilities}))
        sys.exit(0)
    write_id_maps(pid, os.getuid(), os.getgid())
    os.close(write)
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
