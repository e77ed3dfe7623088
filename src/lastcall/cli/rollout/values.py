"""How the values of `lastcall rollout`'s options are read."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from lastcall.errors import UserError
from lastcall.experiment.rollout import WORKLOADS, kubectl_name
from lastcall.manifests import STDIN, load_manifests
from lastcall.traffic import KINDS, LONG_LIVED, Kind, MaxLost
from lastcall.world.durations import parse_seconds

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


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


def complete_workload(context: "click.Context", parameter: "click.Parameter", begun: str) -> "list[CompletionItem]":
    """The workloads of the manifests that stand on the command line before the option."""
    # late: 0.8 ms of `rollout --help`
    from click.shell_completion import CompletionItem

    given = (*(context.params.get("manifests") or ()), *(context.params.get("filenames") or ()))
    sources, recursive = [each for each in given if each != STDIN], bool(context.params.get("recursive"))
    with suppress(UserError):
        found = load_manifests(sources, recursive=recursive)
        names = [kubectl_name(each) for each in found if each.resource in WORKLOADS]
        return [CompletionItem(name) for name in names if name.startswith(begun.lower())]
    return []
