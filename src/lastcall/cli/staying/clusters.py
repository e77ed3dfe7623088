"""What the commands for staying clusters share: names, errors, texts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lastcall.cli.options import json_text
from lastcall.cli.terminal import show
from lastcall.errors import UserError, WorldError
from lastcall.kube.cluster import (
    DEFAULT_NAME,
    ClusterDied,
    ClusterUsageError,
    ControlError,
    DirectoryError,
    NotRunning,
    PortTaken,
    check_name,
    name_in_kubeconfig,
    names,
)

if TYPE_CHECKING:
    from lastcall.endings.render import AboutCluster

F = TypeVar("F", bound=Callable[..., Any])


@contextmanager
def cluster_errors() -> Iterator[None]:
    """Turn the errors of clusters into those of a command."""
    try:
        yield
    except ClusterUsageError as error:
        raise UserError(str(error)) from error
    except NotRunning as error:
        others = names()
        way_out = f"there is: {', '.join(others)}" if others else "lastcall up starts one"
        raise WorldError(f"{error}; {way_out}") from error
    except (ControlError, DirectoryError, ClusterDied, PortTaken) as error:
        raise WorldError(str(error)) from error


def checked_name(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the name of a cluster (a click callback)."""
    try:
        return None if value is None else check_name(value)
    except ClusterUsageError as error:
        raise click.BadParameter(str(error)) from error


def _or_the_only_one(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """A click callback: where no name is given, that of the cluster that kubectl uses, of the only one there is, or
    that of `lastcall up`."""
    given = checked_name(context, parameter, value)
    there: list[str] = []
    with suppress(DirectoryError):  # the command itself meets it, too
        there = names() if given is None else []
    if (of_kubectl := name_in_kubeconfig()) in there:
        return of_kubectl
    return given or (there[0] if len(there) == 1 else DEFAULT_NAME)


def cluster_option(command: F) -> F:
    """Add `--name CLUSTER`, for commands whose argument is something of a cluster: the keyword argument `cluster`."""
    return click.option(
        "--name",
        "--cluster",
        "cluster",
        metavar="CLUSTER",
        default=None,
        callback=_or_the_only_one,
        shell_complete=lambda context, parameter, text: [each for each in names() if each.startswith(text)],
        help=f"Cluster name.  [default: that of $KUBECONFIG, or the only one that runs; of several {DEFAULT_NAME}]",
    )(command)


def published_text(facts: dict[str, Any]) -> str:
    """Return a line for each published port."""
    lines = []
    for each in facts.get("published") or ():
        message = f" (not published: {each['message']})" if "message" in each else ""
        lines.append(f"  published   {each['address']} → {each['target']}{message}\n")
    return "".join(lines)


def show_json(schema: str, content: dict[str, Any], cluster: "AboutCluster | None" = None) -> None:
    """Print a document to stdout. `cluster` is the one that it is about."""
    # late: only with --output json
    from lastcall.endings.render import envelope

    show(json_text({**envelope(schema, cluster), **content}))
