"""The command line. Commands are imported when they are used: `lastcall --version` imports none."""

import signal
import sys
from importlib import import_module
from typing import cast

import click

from lastcall import __version__

COMMANDS = {
    "run": ("lastcall.cli.run.command:run", "Delete Pods and report how each of them ended."),
    "demo": ("lastcall.cli.demo:demo", "Watch a Pod end gracefully, by SIGKILL, or both."),
    "rollout": (
        "lastcall.cli.rollout.command:rollout",
        "Update a workload under load, and tell which requests were lost.",
    ),
    "lint": ("lastcall.cli.linting.command:lint", "Check manifests without a cluster, and propose fixes."),
    "up": ("lastcall.cli.up:up", "Start a cluster that keeps running."),
    "down": ("lastcall.cli.down:down", "Stop a cluster that up started."),
    "status": ("lastcall.cli.status:status", "Show the running clusters."),
    "kubeconfig": ("lastcall.cli.kubeconfig:kubeconfig", "Print the path of a cluster's kubeconfig."),
    "logs": ("lastcall.cli.logs:logs", "Show recent logs of a cluster's own processes."),
    "controller-manager": (
        "lastcall.cli.controller_manager:controller_manager",
        "Run the controllers as a process of their own.",
    ),
    "story": ("lastcall.cli.story:story", "Report how a Pod ended in a cluster started by up."),
    "node": ("lastcall.cli.node:node", "Disconnect a node of a running cluster from the network, or shut it down."),
    "doctor": ("lastcall.cli.doctor:doctor", "Check whether this machine can run a cluster."),
    "image": ("lastcall.cli.image.command:image", "Show, make and remove images."),
}
"""Name → (module:attribute, short help). The help stands here so that `--help` imports nothing."""


class LazyGroup(click.Group):
    """A group whose commands are imported on their first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = cast(click.Command, getattr(import_module(module), attribute))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # held by main()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, words) for name, (_, words) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="lastcall", message="%(prog)s %(version)s")
def cli() -> None:
    """Real Kubernetes Pods on one Linux machine, and the exact story of how each of them ends."""


def invoke(arguments: list[str] | None) -> int:
    """Run `arguments` (None: the process's own). Raises what `lastcall.cli.errors.guarded` tells."""
    result = cli.main(args=arguments, prog_name="lastcall", standalone_mode=False)
    sys.stdout.flush()
    return result if isinstance(result, int) else 0
