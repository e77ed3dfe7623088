"""`/statusz`: what a component is and how long it runs, for people and as JSON.

There is no Go here, so the Go version is empty. Source: component-base/zpages/statusz.
"""

import json
from collections.abc import Sequence

from lastcall.kube.api.text.times import from_unix
from lastcall.world.dataclass import dataclass

WARNING = (
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is "
    "for debugging purposes only."
)
VERSIONS = ("v1alpha1", "v1beta1")
ACCEPTED = "application/json, application/yaml, text/plain"


@dataclass(frozen=True, slots=True)
class Status:
    """`started` and `now` are seconds since the Unix epoch, `version` is like `1.36.2`."""

    component: str
    version: str
    started: float
    now: float
    paths: Sequence[str]

    @property
    def minor(self) -> str:
        return ".".join(self.version.split(".")[:2])


def form(accept: str) -> str | None:
    """Return "" for text, a version for JSON; None when no accepted type is available."""
    for clause in accept.split(","):
        media_type, *parameters = (piece.strip() for piece in clause.split(";"))
        if media_type in ("text/plain", "*/*", "text/*", ""):
            return ""
        given = dict(each.split("=", 1) for each in parameters if "=" in each)
        if media_type == "application/json" and (given.get("g"), given.get("as")) == ("config.k8s.io", "Statusz"):
            version = given.get("v", "")
            if version in VERSIONS:
                return version
    return None


def text(status: Status, colon: str = "") -> str:
    """Return the page as text. `colon`: components differ in what follows a name."""
    seconds = int(status.now - status.started)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    up = f"{days * 24 + hours} hr {minutes:02d} min {seconds % 60:02d} sec"
    rows = {
        "Started": from_unix(status.started).strftime("%a %b %e %H:%M:%S UTC %Y"),
        "Up": up,
        "Go version": "",
        "Binary version": status.version,
        "Emulation version": status.minor,
        "Paths": " ".join(status.paths),
    }
    lines = [f"{name}{colon}  {value}" for name, value in rows.items()]
    return "\n".join(["", f"{status.component} statusz", WARNING, "", *lines, ""])


def document(status: Status, version: str) -> bytes:
    content = {
        "kind": "Statusz",
        "apiVersion": f"config.k8s.io/{version}",
        "metadata": {"name": status.component},
        "startTime": from_unix(status.started).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "uptimeSeconds": int(status.now - status.started),
        "goVersion": "",
        "binaryVersion": status.version,
        "emulationVersion": status.minor,
        "paths": list(status.paths),
    }
    return json.dumps(content, indent=2).encode() + b"\n"
