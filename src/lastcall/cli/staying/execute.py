"""`lastcall exec`: a command with a cluster of its own."""

# check: starts processes because it runs the command of lastcall exec

import os
import shlex
import subprocess
import sys

import click

from lastcall.errors import UserError, WorldError
from lastcall.experiment import ClusterProcess, unused_name
from lastcall.kube.cluster import ClusterStartError
from lastcall.world.interrupts import Interrupts


@click.command("exec", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("--up", "options", metavar="OPTIONS", default="", help='Options of lastcall up: "--nodes 2 --egress".')
@click.argument("command", metavar="-- COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
def execute(options: str, command: tuple[str, ...]) -> None:
    """Start a cluster, run COMMAND with KUBECONFIG set, and stop the cluster when it ends.

    LASTCALL_CLUSTER has the cluster's name, for other lastcall commands. Exit status: that of COMMAND (128 plus the
    signal's number if a signal ended it), 1 if the cluster cannot start.
    """
    words = list(command[1:] if command[0] == "--" else command)
    if not words:
        raise click.UsageError("COMMAND is missing: write lastcall exec -- kubectl get nodes")
    cluster = ClusterProcess(unused_name("exec"), shlex.split(options))
    with Interrupts() as interrupts:
        try:
            facts = cluster.start()
            interrupts.check()
            environment = {**os.environ, "KUBECONFIG": facts["kubeconfig"], "LASTCALL_CLUSTER": cluster.name}
            raise SystemExit(_run(words, environment, interrupts))
        except ClusterStartError as error:
            raise WorldError(str(error)) from error
        finally:
            cluster.stop()


def _run(words: list[str], environment: dict[str, str], interrupts: Interrupts) -> int:
    """The exit status of a command that has the terminal's Ctrl-C for itself."""
    try:
        process = subprocess.Popen(words, env=environment)  # noqa: S603 (what the user asked for)
    except FileNotFoundError:
        raise UserError(f"{words[0]!r} is not installed, or not on PATH") from None
    except PermissionError:
        raise UserError(f"{words[0]!r} is not executable") from None
    interrupts.on_first = process.terminate
    if interrupts.number:  # it came between the command's start and the line above
        process.terminate()
    status = process.wait()
    sys.stdout.flush()
    return status if status >= 0 else 128 - status
