"""What every document of `--output json` begins with. Pure.

`schema` is the name of its JSON Schema; `kind` and `version` say the same in parts. A record on a line of its own
(`lastcall/record/v1`) is no document.
"""

# check: pure

from typing import Any, Literal, TypedDict

from lastcall._version import __version__


class Tool(TypedDict):
    """What wrote a document."""

    name: Literal["lastcall"]
    version: str


class AboutCluster(TypedDict):
    """Which cluster a document is about: `name` of one of `lastcall up`, `context` of an existing one; of one that a
    command starts for itself neither."""

    name: str | None
    context: str | None
    kubernetesVersion: str | None


class Head(TypedDict):
    """All of the envelope but `schema`. `cluster` is null for a document that is not about one cluster."""

    kind: str
    version: int
    tool: Tool
    cluster: AboutCluster | None


def about_cluster(kubernetes_version: str = "", *, name: str = "", context: str = "") -> AboutCluster:
    """Return what names a cluster; "" is what is not known."""
    return {"name": name or None, "context": context or None, "kubernetesVersion": kubernetes_version or None}


def envelope(schema: str, cluster: AboutCluster | None = None) -> dict[str, Any]:
    """Return what a document of `schema` (`lastcall/KIND/vNUMBER`) begins with."""
    _, kind, version = schema.split("/")
    number, tool = int(version.removeprefix("v")), Tool(name="lastcall", version=__version__)
    return {"schema": schema, **Head(kind=kind, version=number, tool=tool, cluster=cluster)}
