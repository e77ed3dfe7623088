"""Which CNI network a directory configures: the first file in lexical order, and what is wrong with it.

Sources: CNI specification 1.1 section 1 (network configuration format); libcni conf.go; containerd's go-cni
opts.go:loadFromConfDir.
"""

import json
import os
import re
from typing import Any

from lastcall.kube.api.text.go_json import loads
from lastcall.kube.cri.sandbox.cni.versions import OLDEST, VERSIONS, newest
from lastcall.world.dataclass import dataclass

EXTENSIONS = (".conf", ".conflist", ".json")
_MOST_BYTES = 1 << 20
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*")
"""Of a network and, as no path may be in it, of a plugin."""

Configuration = dict[str, Any]


class CNIConfigError(Exception):
    """A directory without a configuration, or one that says something impossible. The text names file and field."""


@dataclass(frozen=True, slots=True)
class NetworkConfiguration:
    """A list of plugins. `versions` are those that the list offers, newest first; most lists offer one.

    `plugins` are the plugins' own configurations as they stand in the file; each has a `type`.
    """

    name: str
    versions: tuple[str, ...]
    plugins: tuple[Configuration, ...]
    disable_gc: bool = False
    file: str = ""


def load(directory: str) -> NetworkConfiguration:
    """Load what the first file in lexical order configures; later files are ignored. Raises CNIConfigError."""
    try:
        names = sorted(name for name in os.listdir(directory) if os.path.splitext(name)[1] in EXTENSIONS)
    except OSError as error:
        raise CNIConfigError(f"the CNI directory {directory} cannot be read: {error.strerror}") from error
    if not names:
        raise CNIConfigError(
            f"no network config found in {directory}: cni plugin not initialized; a file *.conflist, *.conf or *.json "
            "has to be there"
        )
    path = os.path.join(directory, names[0])
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise CNIConfigError(f"{path} cannot be read: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise CNIConfigError(f"{path} is bigger than {_MOST_BYTES} bytes: no CNI configuration is")
    return parse(data, path)


def parse(data: bytes, path: str) -> NetworkConfiguration:
    """Parse a configuration list if the file's name ends in `.conflist`, else one plugin's. Raises CNIConfigError."""
    try:
        value = loads(data)
    except ValueError as error:
        raise CNIConfigError(f"{path} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CNIConfigError(f"{path}: a JSON object was expected, not {_kind(value)}")
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise CNIConfigError(f"{path}: name: {_shown(name)} is not letters, digits, '_', '.' and '-'")
    if not path.endswith(".conflist"):
        if "type" not in value and "plugins" in value:
            raise CNIConfigError(f"{path}: type: is missing; a list of plugins belongs in a file named *.conflist")
        return NetworkConfiguration(name, _versions(value, path), (_plugin(value, "", path),), file=path)
    plugins = value.get("plugins")
    if not isinstance(plugins, list) or not plugins:
        raise CNIConfigError(f"{path}: plugins: a list with at least one plugin was expected, not {_shown(plugins)}")
    return NetworkConfiguration(
        name,
        _versions(value, path),
        tuple(_plugin(each, f"plugins[{index}].", path) for index, each in enumerate(plugins)),
        disable_gc=_boolean(value, "disableGC", path),
        file=path,
    )


def _versions(value: Configuration, path: str) -> tuple[str, ...]:
    """What `cniVersion` and `cniVersions` (since 1.1) offer and this runtime speaks, newest first."""
    offered = value.get("cniVersions", [])
    if not isinstance(offered, list) or not all(isinstance(each, str) for each in offered):
        raise CNIConfigError(f"{path}: cniVersions: a list of versions was expected, not {_shown(offered)}")
    single = value.get("cniVersion")
    if single is not None and not isinstance(single, str):
        raise CNIConfigError(f"{path}: cniVersion: a version in quotes was expected, not {_shown(single)}")
    if single or not offered:
        offered = [*offered, single or OLDEST]
    known = newest(offered)
    if not known:
        field = "cniVersions" if value.get("cniVersions") else "cniVersion"
        said = ", ".join(map(_shown, offered))
        raise CNIConfigError(f"{path}: {field}: {said} is none of {', '.join(VERSIONS)}")
    return known


def _plugin(value: Any, at: str, path: str) -> Configuration:
    if not isinstance(value, dict):
        raise CNIConfigError(f"{path}: {at.removesuffix('.')}: a JSON object was expected, not {_kind(value)}")
    kind = value.get("type")
    if not isinstance(kind, str) or not _NAME.fullmatch(kind):
        raise CNIConfigError(f"{path}: {at}type: {_shown(kind)} is not the name of a plugin")
    capabilities = value.get("capabilities") or {}
    if not isinstance(capabilities, dict) or not all(isinstance(each, bool) for each in capabilities.values()):
        raise CNIConfigError(f"{path}: {at}capabilities: names with true or false were expected")
    return value


def _boolean(value: Configuration, field: str, path: str) -> bool:
    said = value.get(field, False)
    # As a text since libcni 0.8: so do some generators of configurations write it.
    if said in ("true", "false"):
        return bool(said == "true")
    if not isinstance(said, bool):
        raise CNIConfigError(f"{path}: {field}: true or false was expected, not {_shown(said)}")
    return said


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _kind(value: Any) -> str:
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
