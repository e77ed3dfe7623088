"""What a command and its page's process say to each other: lines of JSON over a socket pair (`world/messages.py`)."""

from __future__ import annotations

from typing import Any

from lastcall.kube.api import CRONJOBS, DAEMONSETS, DEPLOYMENTS, JOBS, NODES, PODS, REPLICASETS, STATEFULSETS
from lastcall.world.messages import Message

LINE = 1 << 26
"""Bytes of a line, at most."""
SHOWN = {
    each.plural: each for each in (PODS, NODES, DEPLOYMENTS, STATEFULSETS, DAEMONSETS, REPLICASETS, JOBS, CRONJOBS)
}
"""Of what the page shows, by their names in `Seen`."""

# -- the command ------------------------------------------------------------------------------------------------------


class Begin(Message, verb="begin"):
    """First of all. `cluster` is the name of one that `lastcall up` started, "" for those that come by `Cluster`."""

    title: str
    port: int
    opens: bool
    cluster: str = ""
    read_only: bool = False
    view: str = ""


class Cluster(Message, verb="cluster"):
    """A cluster runs, until `Over`. `facts`: name, server, kubernetesVersion, kubeconfig (a path). One outside lastcall
    has `asked`, the options by which it is reached; of it the page shows what comes by `Seen` and `Story`."""

    facts: dict[str, Any]
    asked: dict[str, Any] | None = None


class Records(Message, verb="records"):
    """Records of the cluster that runs, as the control socket has them."""

    records: list[dict[str, Any]]


class Seen(Message, verb="seen"):
    """A watch saw an object: `type` is ADDED, MODIFIED or DELETED."""

    resource: str
    type: str
    obj: dict[str, Any]


class Story(Message, verb="story"):
    """The story of a Pod of an existing cluster, as it is followed there, so far or `whole`. `not_known` are texts as
    `records/said.py` writes them."""

    uid: str
    records: list[dict[str, Any]]
    not_known: list[Any]
    whole: bool


class Over(Message, verb="over"):
    """Say that the cluster has ended."""


class Setup(Message, verb="setup"):
    """What experiments are made of, for predictions: `manifests` and `options` (`experiment/rollout/forecast.py`)."""

    manifests: list[dict[str, Any]]
    options: dict[str, Any]


class Rollout(Message, verb="rollout"):
    """How far an experiment is; replaces what was said before."""

    state: dict[str, Any]


class Outcomes(Message, verb="outcomes"):
    """More of its requests, as `Outcome.to_wire` has them."""

    outcomes: list[list[Any]]


class Bye(Message, verb="bye"):
    """The command ends. So does a connection that is gone. `staying`: the cluster does not end with it."""

    staying: bool = False


# -- the page's process -----------------------------------------------------------------------------------------------


class Link(Message, verb="link"):
    """What lets one browser in; another comes when it was used."""

    link: str


class NotOpened(Message, verb="notOpened"):
    """There is no browser that could be opened."""


class Browsers(Message, verb="browsers"):
    """How many look at the page now."""

    count: int


class Again(Message, verb="again"):
    """The user wants another experiment: with this patch of the workload, and these delays of hops."""

    patch: dict[str, Any]
    propagation: str


class Failed(Message, verb="failed"):
    """There is no page."""

    why: str
