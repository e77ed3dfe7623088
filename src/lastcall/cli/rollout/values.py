"""How the values of `lastcall rollout`'s options are read."""

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from lastcall.world.durations import parse_seconds

if TYPE_CHECKING:
    from lastcall.traffic import MaxLost


def parsed_max_lost(context: click.Context, parameter: click.Parameter, value: str | None) -> "MaxLost | None":
    """Parse `3`, or a share as `0.1%`."""
    if value is None:
        return None
    # late: only with the option
    from lastcall.traffic import MaxLost

    number = value.removesuffix("%")
    with suppress(ValueError):
        limit = float(number)
        if value.endswith("%") and 0 <= limit <= 100:
            return MaxLost(limit / 100, share=True)
        if not value.endswith("%") and limit >= 0 and limit == int(limit):
            return MaxLost(limit)
    raise click.BadParameter(f"{value!r}: write how many requests may be lost (3), or which share of them (0.1%)")


def parsed_max_p99(context: click.Context, parameter: click.Parameter, value: str | None) -> dict[str, float]:
    """Parse `200ms` for all kinds, or `fresh=200ms,slow=3s`."""
    found: dict[str, float] = {}
    if not value:
        return found
    # late: only with the option
    from lastcall.traffic import KINDS, LONG_LIVED

    for part in value.split(","):
        name, equals, time = part.partition("=")
        kind, time = (name.strip(), time) if equals else ("", part)
        if kind and (kind not in KINDS or kind in LONG_LIVED):
            kinds = ", ".join(each for each in KINDS if each not in LONG_LIVED)
            raise click.BadParameter(
                f"{part!r}: write a time (200ms), or by kind (fresh=200ms,slow=3s); kinds: {kinds}"
            )
        found[kind] = parsed_seconds(context, parameter, time.strip())
    return found


def parsed_seconds(context: click.Context, parameter: click.Parameter, value: str) -> float:
    """Parse `1s`, `250ms`, `1.5`."""
    try:
        return parse_seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None
