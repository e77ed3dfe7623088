"""`lastcall completion`: what a shell needs to complete commands, options and names of clusters."""

import click
from click.shell_completion import get_completion_class

from lastcall.cli.commands import cli
from lastcall.cli.terminal import show

_WHERE = {
    "bash": "source <(lastcall completion bash)",
    "zsh": "source <(lastcall completion zsh)",
    "fish": "lastcall completion fish | source",
}


@click.command(epilog="For every new shell, add to its start-up file: " + " · ".join(_WHERE.values()))
@click.argument("shell", type=click.Choice(sorted(_WHERE)))
def completion(shell: str) -> None:
    """Print the script that completes lastcall's commands, options and names of clusters in SHELL."""
    found = get_completion_class(shell)
    assert found is not None
    show(f"{found(cli, {}, 'lastcall', '_LASTCALL_COMPLETE').source()}\n")
