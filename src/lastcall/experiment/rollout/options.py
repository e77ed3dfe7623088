"""What `lastcall rollout` is told: its options, and how their values are read."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lastcall.kube.cluster.propagation import PropagationPlan
from lastcall.traffic.outcome import KINDS, LONG_LIVED, Kind
from lastcall.traffic.thresholds import MaxLost, Thresholds
from lastcall.world.durations import parse_seconds

if TYPE_CHECKING:
    from lastcall.cli.page_options import AskedPage
    from lastcall.experiment.not_simulated import Note

DISRUPTIONS = ("rollout", "scale-in", "delete", "drain", "evict")
SOURCES = ("node", "pod", "published", "balancer", "client")


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """`rates` are requests per second by kind; `control`, `settle` and `timeout` are seconds.

    `source` is one of `SOURCES`.
    """

    disrupt: str = "rollout"
    rates: dict[Kind, float] = field(default_factory=dict)
    path: str = "/"
    slow_path: str = "/slow"
    stream_path: str = "/stream"
    websocket_path: str = "/ws"
    length: float = 5.0
    http2_connections: int = 4
    workload: str = ""
    service: str = ""
    port: str = ""
    propagation: PropagationPlan = field(default_factory=PropagationPlan)
    source: str = "node"
    control: float = 2.0
    settle: float = 2.0
    request_timeout: float = 10.0
    timeout: float = 120.0
    output: str = "text"
    output_file: Path | None = None
    summary: str = ""
    apply_advice: bool = False
    find_safe: bool = False
    keep_on_failure: bool = False
    confirm: int = 5
    runs: int = 1
    max_lost: MaxLost | None = None
    max_p99: dict[str, float] = field(default_factory=dict)
    kubernetes_version: str = "1.36"
    max_pods: int = 110
    seccomp_default: bool = True
    cni_conf_dir: str = ""
    cni_bin_dir: str = ""
    container_runtime: str = ""
    page: "AskedPage | None" = None
    differences: "tuple[Note, ...]" = ()
    """What is here otherwise than in the cluster that the workload was taken from."""

    @property
    def thresholds(self) -> Thresholds:
        return Thresholds(self.max_lost, self.max_p99)

    @property
    def sleep_hooks(self) -> bool:
        """PodLifecycleSleepAction is on by default from 1.30."""
        return int(self.kubernetes_version.partition(".")[2]) >= 30


def parsed_load(context: click.Context, parameter: click.Parameter, value: str) -> dict[Kind, float]:
    """`fresh=150,keep-alive=50`, or a number for the two of them together."""
    with suppress(ValueError):
        if 0 < float(value) <= 5000:
            return {"fresh": float(value) * 0.75, "keep-alive": float(value) * 0.25}
    rates: dict[Kind, float] = {}
    for part in value.split(","):
        name, _, rate = part.partition("=")
        kind = next((each for each in KINDS if each == name.strip()), None)
        try:
            number = float(rate)
        except ValueError:
            number = -1.0
        if kind is None or not 0 < number <= 5000:
            raise click.BadParameter(
                f"{part!r}: write requests per second (200), or by kind, as in fresh=150,keep-alive=50; "
                f"kinds: {', '.join(KINDS)}; at most 5000 a second each"
            )
        rates[kind] = number
    return rates


def parsed_max_lost(context: click.Context, parameter: click.Parameter, value: str | None) -> MaxLost | None:
    """`3`, or a share as `0.1%`."""
    if value is None:
        return None
    number = value.removesuffix("%")
    with suppress(ValueError):
        limit = float(number)
        if value.endswith("%") and 0 <= limit <= 100:
            return MaxLost(limit / 100, share=True)
        if not value.endswith("%") and limit >= 0 and limit == int(limit):
            return MaxLost(limit)
    raise click.BadParameter(f"{value!r}: write how many requests may be lost (3), or which share of them (0.1%)")


def parsed_max_p99(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, float]:
    """`200ms` for all kinds, or `fresh=200ms,slow=3s`."""
    found: dict[str, float] = {}
    for part in (value or "").split(",") if value else ():
        name, equals, time = part.partition("=")
        kind, time = (name.strip(), time) if equals else ("", part)
        if kind and (kind not in KINDS or kind in LONG_LIVED):
            kinds = ", ".join(each for each in KINDS if each not in LONG_LIVED)
            raise click.BadParameter(
                f"{part!r}: write a time (200ms), or by kind (fresh=200ms,slow=3s); kinds: {kinds}"
            )
        found[kind] = parsed_seconds(context, parameter, time.strip())
    return found


def checked_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """The target of an HTTP request."""
    if not value.startswith("/") or any(each <= " " or each > "~" for each in value):
        raise click.BadParameter(f"{value!r}: a path begins with / and has neither spaces nor letters beyond ASCII")
    return value


def parsed_seconds(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """`1s`, `250ms`, `1.5`."""
    try:
        return parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
