"""How a command takes the name of a cluster: as NAME and as --name, with completion."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from lastcall.cli.staying.clusters import checked_name
from lastcall.kube.cluster import DEFAULT_NAME, names

F = TypeVar("F", bound=Callable[..., Any])

_GIVEN = "lastcall.kube.cluster-name"
_MEANT = "lastcall.kube.cluster-meant"


def complete_name(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the running clusters of this user, for shells."""
    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]


def _one_of_both(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """NAME and --name are the same; the last of the two that click reads knows both. A name that was not given on the
    command line, from $LASTCALL_CLUSTER or lastcall.yaml, yields to one that was."""
    value = checked_name(context, parameter, value)
    if value is not None and context.get_parameter_source(parameter.name or "") is not ParameterSource.COMMANDLINE:
        context.meta[_MEANT] = value
        value = None
    if value is None:
        return context.meta.get(_GIVEN)
    given = context.meta.setdefault(_GIVEN, value)
    if given != value:
        raise click.BadParameter(f"{given!r} and {value!r} are two names: give only one")
    return value


def optional_name(command: F) -> F:
    """Add `[NAME]` or `--name NAME`: the keyword argument `name`, None for neither."""
    return _both(command, None)


def _both(command: F, default: str | None) -> F:
    @wraps(command)
    def called(*arguments: Any, name: str | None, name_option: str | None, **more: Any) -> Any:
        given = name or name_option
        if given is None and not more.get("all_of_them"):
            given = click.get_current_context().meta.get(_MEANT, default)
        return command(*arguments, name=given, **more)

    added = click.option(
        "--name",
        "--cluster",
        "name_option",
        metavar="NAME",
        callback=_one_of_both,
        shell_complete=complete_name,
        help="Another way to give NAME.",
    )(called)
    argument = click.argument("name", required=False, callback=_one_of_both, shell_complete=complete_name)
    return argument(added)  # type: ignore[return-value]  # click keeps the type of what it decorates


def name_argument(command: F) -> F:
    """Add `[NAME]` or `--name NAME`: the keyword argument `name`, by default that of `lastcall up`."""
    return _both(command, DEFAULT_NAME)
