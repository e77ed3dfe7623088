"""`lastcall demo`: two Pods that show the two ways to end."""

from pathlib import Path
from typing import Any

import click

from lastcall.cli.run.options import run_options
from lastcall.cli.sectioned_help import SectionedCommand

DEMOS = {
    "graceful": ("term-demo.yaml",),
    "sigkill": ("sigkill-demo.yaml",),
    "all": ("term-demo.yaml", "sigkill-demo.yaml"),
}

EXAMPLES = Path(__file__).parent / "examples"


@click.command(cls=SectionedCommand)
@click.argument("which", type=click.Choice(list(DEMOS)), default="all")
@run_options
def demo(which: str, **options: Any) -> None:
    """Watch a Pod end gracefully, or by SIGKILL, or both side by side.

    The manifests are those of examples/. Exit status as for `lastcall run`: 3 for the Pod that is killed.
    """
    # late: 100 ms of `demo --help`
    from lastcall.cli.run.experiment import run_manifests
    from lastcall.cli.run.option_values import make_options
    from lastcall.manifests import load_manifests

    manifests = load_manifests([str(EXAMPLES / name) for name in DEMOS[which]])
    raise SystemExit(run_manifests(manifests, make_options(**options)))
