"""Volumes as containers mount them: files that are not there, and files that are memory."""

import posixpath
from collections.abc import Iterator
from typing import Any

from lastcall.kube.api import Object, parse
from lastcall.lint.application import Application, Container, Workload
from lastcall.lint.subject import Finding, Op, Subject, found
from lastcall.manifests import Path, closest


def findings(app: Application) -> Iterator[Finding]:
    for workload in app.workloads:
        volumes = {each.get("name"): each for each in workload.pod_spec.get("volumes") or ()}
        for container in workload.all_containers:
            for index, mount in enumerate(container.spec.get("volumeMounts") or ()):
                path = (*container.path, "volumeMounts", index, "subPath")
                yield from _sub_path(workload, mount, volumes.get(mount.get("name")) or {}, path)
        for index, volume in enumerate(workload.pod_spec.get("volumes") or ()):
            if (volume.get("emptyDir") or {}).get("medium") == "Memory":
                yield from _in_memory(workload, volume, (*workload.spec_path, "volumes", index, "emptyDir"))


def _sub_path(workload: Workload, mount: Object, volume: Object, path: Path) -> Iterator[Finding]:
    """kubelet_pods.go:makeMounts makes a directory where a volume has no such subPath."""
    wanted = str(mount.get("subPath") or "")
    target, files = _files_of(workload, volume)
    if not wanted or target is None or not files:
        return
    clean = posixpath.normpath(wanted)
    if clean == "." or any(each == clean or each.startswith(f"{clean}/") for each in files):
        return
    text = (
        f"subPath {wanted} is no file of {target}, which has {', '.join(files[:6])}{', …' if len(files) > 6 else ''}: "
        f"the kubelet mounts an empty directory at {mount.get('mountPath')}."
    )
    best = closest(clean, files)
    patch = [Op("replace", path, best)] if best else []
    yield found("configKeyMissing", workload.subject, path, text, patch=patch, severity="warning")


def _files_of(workload: Workload, volume: Object) -> tuple[Subject | None, list[str]]:
    """Return the ConfigMap or Secret of a volume and the paths of its files; none where others fill it in."""
    for field, kind, name in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(field)
        if not source:
            continue
        target = workload.application.get(kind, workload.subject.namespace, str(source.get(name)))
        if source.get("items"):
            return target, [posixpath.normpath(str(each.get("path"))) for each in source["items"]]
        keys = (
            [key for each in ("data", "binaryData", "stringData") for key in (target.raw.get(each) or ())]
            if target
            else []
        )
        return target, list(map(str, keys))
    return None, []


def _in_memory(workload: Workload, volume: Object, path: Path) -> Iterator[Finding]:
    """Files of a tmpfs count against the memory of the container that writes them (empty_dir.go, cgroup v2: shmem)."""
    size = _bytes((volume.get("emptyDir") or {}).get("sizeLimit"))
    limits = [(limit, each) for each in workload.all_containers if (limit := _limit(each)) and _writes(each, volume)]
    if not limits:
        return
    limit, container = min(limits, key=lambda each: each[0])
    if _is_shared_memory(container, volume) if size is None else size < limit:
        return
    allows = (
        f"sizeLimit: {volume['emptyDir']['sizeLimit']} lets them take all of it"
        if size
        else "the volume has no sizeLimit"
    )
    said = container.spec["resources"]["limits"]["memory"]
    text = (
        f"Files in volume {volume.get('name')} are memory of {container.name}, whose limit is {said}, and {allows}: a "
        "full volume ends it as out of memory (137), in place of an error of the file system."
    )
    yield found("memoryVolumeFills", workload.subject, path, text, severity="info" if size is None else "warning")


def _writes(container: Container, volume: Object) -> bool:
    mounts = container.spec.get("volumeMounts") or ()
    return any(each.get("name") == volume.get("name") and not each.get("readOnly") for each in mounts)


_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path in a container


def _is_shared_memory(container: Container, volume: Object) -> bool:
    """Return whether it is mounted for shared memory, where a program chooses the size itself."""
    mounts = container.spec.get("volumeMounts") or ()
    return any(each.get("mountPath") == _SHARED_MEMORY for each in mounts if each.get("name") == volume.get("name"))


def _limit(container: Container) -> int | None:
    return _bytes(((container.spec.get("resources") or {}).get("limits") or {}).get("memory"))


def _bytes(quantity: Any) -> int | None:
    return None if quantity in (None, "", 0, "0") else int(parse({"it": quantity})["it"].value)
