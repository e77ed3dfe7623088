"""Files that a container has from ConfigMaps of the same manifests. Pure."""

# check: pure

from typing import NamedTuple

from lastcall.kube.api import Object
from lastcall.lint.application import Container, Workload
from lastcall.manifests import Path


class MountedFile(NamedTuple):
    """`path` is where its mode is said, or could be. `mode` are the permission bits. `source`: `ConfigMap hooks`."""

    text: str
    mode: int
    path: Path
    source: str


def mounted_file(workload: Workload, container: Container, name: str) -> MountedFile | None:
    """Return the file `name` of a container; None where it is not known what that is."""
    if not name.startswith("/"):
        return None
    mounts = [each for each in container.spec.get("volumeMounts") or () if each.get("mountPath")]
    under = [each for each in mounts if _inside(name, each["mountPath"]) is not None]
    if not under:
        return None
    mount = max(under, key=lambda each: len(each["mountPath"]))
    rest = _inside(name, mount["mountPath"])
    inner = "/".join(part for part in (str(mount.get("subPath") or ""), rest or "") if part)
    for index, volume in enumerate(workload.pod_spec.get("volumes") or ()):
        if volume.get("name") == mount.get("name") and volume.get("configMap"):
            return _of_volume(
                workload, volume["configMap"], inner, (*workload.spec_path, "volumes", index, "configMap")
            )
    return None


def _inside(name: str, directory: str) -> str | None:
    directory = directory.rstrip("/")
    if name == directory:
        return ""
    return name[len(directory) + 1 :] if name.startswith(f"{directory}/") else None


def _of_volume(workload: Workload, source: Object, inner: str, path: Path) -> MountedFile | None:
    configs = workload.application.get("ConfigMap", workload.subject.namespace, str(source.get("name")))
    if configs is None:
        return None
    key, mode, where = inner, int(source.get("defaultMode", 0o644)), (*path, "defaultMode")
    if source.get("items"):
        found = next(((at, each) for at, each in enumerate(source["items"]) if each.get("path") == inner), None)
        if found is None:
            return None
        key = str(found[1].get("key"))
        if found[1].get("mode") is not None:
            mode, where = int(found[1]["mode"]), (*path, "items", found[0], "mode")
    text = (configs.raw.get("data") or {}).get(key)
    return MountedFile(text, mode, where, f"{configs}") if isinstance(text, str) else None
