"""A change of a manifest that would have saved lost requests, and where in the owner of Pods it goes. Pure."""

# check: pure

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from lastcall.endings import ProgramChange
from lastcall.traffic.account import Account
from lastcall.traffic.lives import PodLife
from lastcall.world.dataclass import dataclass

SPARE_SECONDS = 1.0
"""Beyond the longest lag that was seen: what is left over is what saves requests on a slower day."""


@dataclass(frozen=True, slots=True)
class Advice:
    """`patch` is a strategic merge patch for the owner of the Pods, {} when no manifest can help. `saves` is how many
    of the lost requests it is for, `id` their cause in the catalogue. `program` is what only the
    program can change. `refused`: why what was meant is not a patch for this owner. `pause`: the seconds that it lets
    a preStop hook wait, 0 for none."""

    id: str
    sentence: str
    saves: int
    patch: dict[str, Any] = field(default_factory=dict)
    program: ProgramChange | None = None
    refused: str = ""
    pause: int = 0


@dataclass(frozen=True, slots=True)
class Disruption:
    """What advice is drawn from. `owner` is the Deployment (or other owner of Pods) as it was, `port` the container's
    port of the Service, `sleep_hooks` whether this Kubernetes has preStop hooks that sleep (1.30 on), `longest_lag` how
    late, in seconds, a change of endpoints may usually be, `disrupt` what was done, `path` what requests ask for."""

    account: Account
    lives: Sequence[PodLife]
    owner: dict[str, Any]
    port: int | str
    sleep_hooks: bool
    longest_lag: float
    disrupt: str
    path: str


def grace_of(owner: dict[str, Any]) -> int:
    """Return terminationGracePeriodSeconds of the owner's Pods."""
    return int(owner["spec"]["template"]["spec"].get("terminationGracePeriodSeconds", 30))


def declared_serving(pod_spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the containers that say which ports they listen on; the first one where none does."""
    containers: list[dict[str, Any]] = pod_spec["containers"]
    return [each for each in containers if each.get("ports")] or containers[:1]


def container_behind(pod_spec: dict[str, Any], port: int | str) -> dict[str, Any]:
    """Return the container that says it listens on the port; else the first one that serves."""
    serving = declared_serving(pod_spec)
    named = [
        each for each in serving for own in each.get("ports") or () if port in (own["containerPort"], own.get("name"))
    ]
    return named[0] if named else serving[0]


def number_of(container: Mapping[str, Any], port: int | str | None) -> int | str | None:
    return next((own["containerPort"] for own in container.get("ports") or () if own.get("name") == port), port)


def in_template(pod_spec: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"template": {"spec": pod_spec}}}
