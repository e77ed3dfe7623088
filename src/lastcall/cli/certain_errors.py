"""Errors that the manifests alone prove, before `run` and `rollout` start a cluster."""

from collections.abc import Sequence

from lastcall.cli.terminal import say
from lastcall.lint import certain_errors
from lastcall.manifests import Manifest


def tell_certain_errors(manifests: Sequence[Manifest]) -> None:
    """Print a line or two for each certain error on stderr. The command goes on, to show what happens then."""
    found = certain_errors(manifests)
    for each in found:
        spot = f"{each.spot.file}:{each.spot.line}:{each.spot.column}"
        say(f"error: {spot}: {each.finding.message}", err=True)
        say(f"  fix: {each.finding.fix} (lastcall lint: {each.finding.rule})", err=True)
    if found:
        say("starting anyway, to show what happens (Ctrl-C stops)", err=True)
