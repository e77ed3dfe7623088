"""Why a runtime could not start a container: the field that caused it, and the value that repairs it. Pure.

The runtime's words decide (those of runc, which lastcall's own runtime uses), with what the Pod's spec says of them.
"""

# check: pure

import json
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lastcall.endings.unready import fix_of
from lastcall.kube.api import Object
from lastcall.records.said import Said, tell
from lastcall.world.dataclass import dataclass

_QUOTED = r'"(?P<{}>(?:[^"\\]|\\.)*)"'
_PROGRAM = f"exec: {_QUOTED.format('program')}: "
_CWD = f"chdir to cwd \\({_QUOTED.format('path')}\\) set in config.json failed: "
_MOUNT = f"error mounting {_QUOTED.format('source')} to rootfs at {_QUOTED.format('path')}: "
_CONFIG = ("configMap", "secret", "projected", "downwardAPI")
_PLAIN_WORD = re.compile(r"[A-Za-z_./-][\w./=:@%+-]*")
"""What YAML takes for a text in a list. A word with a colon at its end would be a key."""


@dataclass(frozen=True, slots=True)
class _Start:
    """A start that failed: the container's spec, the Pod's volumes, and what the message named."""

    container: Object
    volumes: Mapping[str, Object]
    named: Mapping[str, str]

    @property
    def name(self) -> str:
        return str(self.container.get("name") or "")

    def mount_at(self, path: str) -> Object:
        """Return the volumeMount of a path; an empty one if the spec has none."""
        mounts: list[Object] = self.container.get("volumeMounts") or []
        return next((each for each in mounts if _normal(each.get("mountPath")) == _normal(path)), {})

    def mount_above(self, path: str) -> Object:
        """Return the volumeMount that a path lies in; an empty one if it lies in none."""
        mounts: list[Object] = self.container.get("volumeMounts") or []
        above = [each for each in mounts if _normal(path).startswith(f"{_normal(each.get('mountPath'))}/")]
        return max(above, key=lambda each: len(str(each.get("mountPath"))), default={})

    def kind_of(self, volume: str) -> str:
        """Return the key of a volume's source, such as `configMap`."""
        return next((key for key in self.volumes.get(volume, {}) if key != "name"), "")


_Says = Callable[[_Start], Said]


def fixes_of_start(message: str, pod: Object, container: str) -> Iterator[Said]:
    """Yield what to change, in words, with the cause's id; nothing for a message in unknown words."""
    spec = pod.get("spec") or {}
    those = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    own = next((each for each in those if each.get("name") == container), {"name": container})
    volumes = {str(each.get("name")): each for each in spec.get("volumes") or ()}
    for words, says in _ROWS:
        if match := re.search(words, message):
            named = {key: _unquoted(value) for key, value in match.groupdict().items()}
            yield says(_Start(own, volumes, named))
            return


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _normal(path: Any) -> str:
    return posixpath.normpath(f"/{str(path or '').lstrip('/')}")


# -- the program -----------------------------------------------------------------------------------------------------


def _field(start: _Start) -> str:
    program = start.named["program"]
    for field in ("command", "args"):
        if (start.container.get(field) or [""])[0] == program:
            return field
    return tell("the image's ENTRYPOINT or CMD")


def _not_in_path(start: _Start) -> Said:
    program, field = start.named["program"], _field(start)
    if len(program.split()) > 1 and field in ("command", "args"):
        return fix_of("commandNotStarted", "oneWord", field=field, words=_flow_list(program), program=program)
    return fix_of("commandNotStarted", "notInPath", field=field, program=program or '""')


def _flow_list(line: str) -> str:
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    shown = [each if _PLAIN_WORD.fullmatch(each) and each[-1] != ":" else json.dumps(each) for each in words]
    return f"[{', '.join(shown)}]"


def _not_there(start: _Start) -> Said:
    return fix_of("commandNotStarted", "missing", field=_field(start), path=start.named["program"])


def _is_a_directory(start: _Start) -> Said:
    return fix_of("commandNotStarted", "directory", field=_field(start), path=start.named["program"])


def _not_executable(start: _Start) -> Said:
    path = start.named["program"]
    volume = str(start.mount_above(path).get("name") or start.mount_at(path).get("name") or "")
    kind = start.kind_of(volume)
    if kind in _CONFIG:
        return fix_of("commandNotStarted", "mode", volume=volume, path=path)
    return fix_of("commandNotStarted", "notExecutable", path=path)


# -- the working directory -------------------------------------------------------------------------------------------


def _working_directory(variant: str) -> _Says:
    def says(start: _Start) -> Said:
        field = "workingDir" if start.container.get("workingDir") else tell("the image's WORKDIR")
        return fix_of("workingDirRefused", variant, field=field, path=start.named["path"])

    return says


# -- mounts ----------------------------------------------------------------------------------------------------------

_KINDS = {
    "configMap": tell("a ConfigMap"),
    "secret": tell("a Secret"),
    "persistentVolumeClaim": tell("a PersistentVolumeClaim"),
}


def _unlike(start: _Start) -> Said:
    """Of a directory that is to be mounted over a file, or of a file over a directory."""
    path = start.named["path"]
    mount = start.mount_at(path)
    volume, sub = str(mount.get("name") or ""), str(mount.get("subPath") or mount.get("subPathExpr") or "")
    kind = start.kind_of(volume)
    facts = {"container": start.name, "path": path, "volume": volume, "kind": _KINDS.get(kind, kind)}
    if not mount:
        return fix_of("mountRefused", "", **facts)
    if sub:
        return fix_of("mountRefused", "either", **facts, name=posixpath.basename(sub))
    if kind == "hostPath":
        host = (start.volumes[volume]["hostPath"] or {}).get("path")
        return fix_of("mountRefused", "hostPath", **facts, host=host)
    if kind in _CONFIG:
        return fix_of("mountRefused", "subPath", **facts, name=_file_of(start.volumes[volume][kind] or {}, path))
    return fix_of("mountRefused", "directory", **facts)


def _file_of(source: Object, path: str) -> str:
    """Return the file of a volume that is meant: by its name, or the only one that the volume names."""
    items = [str(each.get("path")) for each in source.get("items") or ()]
    name = posixpath.basename(path)
    return items[0] if len(items) == 1 and name not in items else name


def _below_a_file(start: _Start) -> Said:
    return fix_of("mountRefused", "belowFile", container=start.name, path=start.named["path"])


def _in_what_is_read_only(start: _Start) -> Said:
    path = start.named["path"]
    outer = start.mount_above(path).get("mountPath") or "/"
    return fix_of("mountRefused", "readOnly", container=start.name, path=path, outer=outer)


def _source_missing(start: _Start) -> Said:
    path, source = start.named["path"], start.named["source"]
    volume = str(start.mount_at(path).get("name") or "")
    if start.kind_of(volume) == "hostPath":
        return fix_of("mountRefused", "hostPathMissing", volume=volume, source=source)
    return fix_of("mountRefused", "sourceMissing", container=start.name, path=path, source=source)


# -- the user --------------------------------------------------------------------------------------------------------


def _user(variant: str) -> _Says:
    def says(start: _Start) -> Said:
        name = start.named.get("name") or ""
        return fix_of("userMissing", variant, name=f" {name}" if name else "")

    return says


def _no_command(start: _Start) -> Said:
    return fix_of("commandNotStarted", "none")


_ROWS: tuple[tuple[str, _Says], ...] = (
    (f"{_PROGRAM}executable file not found in \\$PATH", _not_in_path),
    (f"{_PROGRAM}stat .*: (?:no such file or directory|not a directory)", _not_there),
    (f"{_PROGRAM}(?:stat .*: )?permission denied", _not_executable),
    (f"{_PROGRAM}is a directory", _is_a_directory),
    (f"{_MOUNT}mount .*: not a directory", _unlike),
    (f"{_MOUNT}(?:mkdir|open|open o_path procfd: open) .*: not a directory", _below_a_file),
    (f"{_MOUNT}.*: read-only file system", _in_what_is_read_only),
    (f"{_MOUNT}stat .*: no such file or directory", _source_missing),
    (f"{_MOUNT}(?:.*: )?not a directory", _unlike),
    (f"{_CWD}(?:no such file or directory|not a directory)", _working_directory("notDirectory")),
    (f"{_CWD}permission denied", _working_directory("denied")),
    (r"container init: mkdir (?P<path>[^:]+): not a directory", _working_directory("notDirectory")),
    (r"container init: mkdir (?P<path>[^:]+): read-only file system", _working_directory("readOnly")),
    (r"unable to find user (?P<name>[^:]+): no matching entries", _user("")),
    (r"unable to find group (?P<name>[^:]+): no matching entries", _user("group")),
    (r"no users found", _user("")),
    (r"no groups found", _user("group")),
    (r"no command specified", _no_command),
)
"""The first row that knows the message. Sources: runc libcontainer (rootfs_linux.go, standard_init_linux.go), Go's
os/exec, containerd pkg/oci/spec_opts.go, moby/sys/user."""
