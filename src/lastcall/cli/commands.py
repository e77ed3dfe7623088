"""The command line. Commands are imported when they are used: `lastcall --version` imports none."""

import signal
import sys
from importlib import import_module
from typing import Any, cast

import click

from lastcall._version import __version__
from lastcall.cli.settings.context import config_option, settle, with_place
from lastcall.errors import ReaderGone
from lastcall.records.quoted_log import quote_what_nobody_handles
from lastcall.world.elsewhere import CLIENTS

COMMANDS = {
    "run": ("lastcall.cli.run.command:run", "Start Pods, delete them, and report how each of them ended."),
    "demo": ("lastcall.cli.demo:demo", "Watch a Pod end gracefully, by SIGKILL, or both."),
    "rollout": (
        "lastcall.cli.rollout.command:rollout",
        "Update a workload under load, and report lost requests.",
    ),
    "trace": ("lastcall.cli.trace.command:trace", "Report how Pods of an existing cluster end, as it happens."),
    "lint": ("lastcall.cli.lint:lint", "Check manifests without a cluster, and propose fixes."),
    "up": ("lastcall.cli.up:up", "Start a cluster that keeps running."),
    "down": ("lastcall.cli.down:down", "Stop a cluster."),
    "status": ("lastcall.cli.status:status", "Show the running clusters."),
    "kubeconfig": ("lastcall.cli.staying.kubeconfig:kubeconfig", "Print the path of a cluster's kubeconfig."),
    "logs": ("lastcall.cli.staying.logs:logs", "Show logs of the cluster itself: API server, kubelets …"),
    "controller-manager": (
        "lastcall.cli.controller_manager:controller_manager",
        "Run the controllers, for any API server.",
    ),
    "scheduler": ("lastcall.cli.scheduler:scheduler", "Run the scheduler, for any API server."),
    "apiserver": ("lastcall.cli.apiserver:apiserver", "Run the API server, on an etcd."),
    "story": ("lastcall.cli.story:story", "Report how a Pod of a running cluster ended."),
    "ui": ("lastcall.cli.staying.page:ui", "Watch a running cluster in a browser."),
    "tour": ("lastcall.cli.tour:tour", "Learn how a Pod stops: levels to play, in a browser."),
    "node": ("lastcall.cli.node:node", "Add, remove, disconnect or shut down nodes."),
    "exec": ("lastcall.cli.staying.execute:execute", "Run a command with a cluster of its own, which ends with it."),
    "cleanup": ("lastcall.cli.cleanup:cleanup", "Undo what a killed experiment left on an existing cluster."),
    "doctor": ("lastcall.cli.doctor:doctor", "Check what this machine can do, and how to fix the rest."),
    "image": ("lastcall.cli.image.command:image", "Show, make and remove images."),
    "completion": ("lastcall.cli.completion:completion", "Print the completion script of a shell."),
}
"""Name → (module:attribute, short help). The help is here so that `--help` imports nothing."""

GROUPS = {
    "See how Pods end": ("run", "demo", "rollout", "trace", "lint", "story"),
    "Learn": ("tour", "ui"),
    "Clusters": ("up", "down", "status", "kubeconfig", "exec", "node", "image", "logs"),
    "This machine, and existing clusters": ("doctor", "cleanup", "completion"),
    "Parts of a cluster, as processes": ("apiserver", "controller-manager", "scheduler"),
}
"""Heading of `lastcall --help` → commands."""

OTHER_WORDS = {
    "ls": "lastcall.cli.status:status",
    "create": "lastcall.cli.kind.words:create",
    "delete": "lastcall.cli.kind.words:delete",
    "get": "lastcall.cli.kind.words:get",
    "load": "lastcall.cli.kind.words:load",
}
"""What kind and docker call a command of ours → module:attribute. Not in the list of commands, but in its last line."""


class LazyGroup(click.Group):
    """A group whose commands are imported on their first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS[cmd_name][0] if cmd_name in COMMANDS else OTHER_WORDS.get(cmd_name)
        if place is None:
            return None
        if sys.platform != "linux" and cmd_name not in CLIENTS:
            return _stand_in(cmd_name)
        module, _, attribute = place.partition(":")
        command = cast(click.Command, getattr(import_module(module), attribute))
        settle(command, (cmd_name,))
        if hasattr(signal, "pthread_sigmask"):  # Windows has none
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # held by main()
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.BadParameter as error:
            raise with_place(error) from error.__cause__
        except BrokenPipeError as error:
            raise ReaderGone from error

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError as error:
            raise ReaderGone from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", COMMANDS[name][1]) for name in names])
        formatter.write_paragraph()
        formatter.write_text(
            "kind's commands work, too: create cluster, delete cluster, get clusters, get nodes, get kubeconfig, "
            "load docker-image, load image-archive."
        )
        formatter.write_text("First steps: lastcall demo. lastcall COMMAND --help explains a command.")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        word = args[0]
        if self.get_command(ctx, word) is None and not word.startswith("-"):
            # late: only for a word that is no command
            from difflib import get_close_matches

            near = get_close_matches(word, [*COMMANDS, *OTHER_WORDS], 1)
            meant = f" Did you mean {near[0]}?" if near else " lastcall --help lists the commands."
            ctx.fail(f"No such command {word!r}.{meant}")
        return super().resolve_command(ctx, args)


def _stand_in(name: str) -> click.Command:
    """Takes the place of a command that needs Linux, elsewhere: its `--help` and its error say what to do."""
    # late: never needed on Linux
    from lastcall.errors import WorldError
    from lastcall.world.elsewhere import why_not

    why = why_not(name, sys.platform)

    def refuse(arguments: tuple[str, ...]) -> None:
        raise WorldError(why)

    words = COMMANDS[name][1] if name in COMMANDS else "A command of kind's."
    return click.Command(
        name,
        callback=refuse,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED, metavar="[…]")],
        help=f"{words}\n\n\b\n{why}",
        context_settings={"ignore_unknown_options": True},
    )


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="lastcall", message="%(prog)s %(version)s")
def cli() -> None:
    """Real Kubernetes Pods on one Linux machine, and the exact story of how each of them ends."""


cli.params.append(config_option())


def invoke(arguments: list[str] | None) -> int:
    """Run `arguments` (None: the process's own). Raises what `lastcall.cli.errors.guarded` reports."""
    quote_what_nobody_handles()
    try:
        result = cli.main(args=arguments, prog_name="lastcall", standalone_mode=False)
    finally:
        sys.stdout.flush()  # report its errors here: when the interpreter ends nobody does
    return result if isinstance(result, int) else 0
