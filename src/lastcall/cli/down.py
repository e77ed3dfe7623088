"""`lastcall down`: stops clusters that `lastcall up` started."""

from concurrent.futures import ThreadPoolExecutor

import click

from lastcall.cli.options import timeout_option
from lastcall.cli.staying.clusters import cluster_errors
from lastcall.cli.staying.names import optional_name
from lastcall.cli.staying.nodes import ask_node, checked_periods
from lastcall.cli.terminal import say, say_all, say_from
from lastcall.errors import UserError
from lastcall.kube.cluster import DEFAULT_NAME, ControlClient, ControlError, NotRunning, names


@click.command()
@optional_name
@click.option("--all", "all_of_them", is_flag=True, help="Stop all clusters of this user.")
@timeout_option(30.0, "How long a cluster may take to stop before it is killed.")
@click.option("--graceful", is_flag=True, help="Shut the nodes down first: their Pods have 30 s to end.")
def down(name: str | None, all_of_them: bool, timeout: float, graceful: bool) -> None:
    """Stop the cluster NAME (default: lastcall) and return when all of it is gone.

    Exit status 0 also when no such cluster is running.
    """
    if name is not None and all_of_them:
        raise UserError(f"{name!r} and --all: give NAME or --all, not both")
    with cluster_errors():
        chosen = names() if all_of_them else [name or DEFAULT_NAME]
        for each in chosen:
            if graceful:
                _shut_down(each)
            _end(each, timeout)
        if not chosen:
            say("no cluster is running")


def _shut_down(name: str) -> None:
    """Run `lastcall node shutdown`. Report what prevents it; the cluster ends all the same."""

    def shut_down(node: str) -> None:
        for text in ask_node(name, node, "shutdown", checked_periods(30, 10)):
            say(f"{node}: {text}" if len(nodes) > 1 else text)

    try:
        nodes = [node["name"] for node in ControlClient(name).status()["nodes"]]
        with ThreadPoolExecutor(len(nodes)) as threads:
            list(threads.map(shut_down, nodes))
    except NotRunning:
        return  # said by what follows
    except ControlError as error:
        say_from("lastcall", f"not gracefully: {error}")


def _end(name: str, timeout: float) -> None:
    try:
        how = ControlClient(name).stop(timeout)
    except NotRunning as error:
        say_all(str(error))
        return
    say(f"cluster {name} is gone" + (f" (killed: it took more than {timeout:g} s)" if how == "killed" else ""))
