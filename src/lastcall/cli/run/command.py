"""`lastcall run`: ends real Pods and shows how they ended."""

from typing import Any

import click

from lastcall.cli.options import Sources, manifest_options
from lastcall.cli.run.options import make_options, run_options


@click.command()
@manifest_options("MANIFEST")
@run_options
def run(sources: Sources, **options: Any) -> None:
    """Delete the Pods of MANIFEST… and report how each of them ended.

    MANIFEST is a file, a directory, or - for stdin, with Pods or owners of Pods (Deployment, StatefulSet, Job …).
    lastcall deletes an owner as `kubectl delete` does, and follows every Pod that it has at that moment. It starts a
    cluster for this and removes it afterwards; only the images that it pulled stay on disk.

    Exit status: 0 all Pods ended gracefully; 3 a container was SIGKILLed, a preStop hook failed, or a container
    crashed or was restarted by a probe before the DELETE; 2 bad input; 1 anything else.
    """
    # late: 100 ms of `run --help`
    from lastcall.cli.linting.early import tell_certain_errors
    from lastcall.cli.run.experiment import run_manifests

    loaded, made = sources.load(), make_options(**options)
    tell_certain_errors(loaded)
    raise SystemExit(run_manifests(loaded, made))
