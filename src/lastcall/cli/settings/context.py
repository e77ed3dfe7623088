"""Where click finds the value of an option that is not on the command line.

click asks the variable of the command first (`auto_envvar_prefix`: LASTCALL_UP_NODES), then `default_map`. A command's
`--config` is eager and fills that: from the variables of all commands (LASTCALL_NODES), else from lastcall.yaml.
`--help` comes before it and needs no file.
"""

import os
from functools import partial
from typing import Any

import click
from click.core import ParameterSource

from lastcall.cli.settings.file import NAME, find
from lastcall.cli.settings.keys import COMMAND_LINE, key_of, keyed, variable

VARIABLE = "LASTCALL_CONFIG"

ALIASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("ls",): ("status",),
    ("create", "cluster"): ("up",),
    ("delete", "cluster"): ("down",),
    ("delete", "clusters"): ("down",),
    ("get", "kubeconfig"): ("kubeconfig",),
}
"""Other words for a command → the command."""

_CONFIG = "lastcall.config"
"""In `Context.meta`: the file that `--config` before the command names."""

_PLACES = "lastcall.places"
"""In `Context.meta`: where a value of `default_map` was set, by the parameter's name."""


def config_option(words: tuple[str, ...] = ()) -> click.Option:
    """Return `--config FILE`: that of the root, or the hidden one of the command `words`."""
    return click.Option(
        ["--config"],
        metavar="FILE",
        expose_value=False,
        is_eager=True,
        hidden=bool(words),
        callback=partial(_fill, words) if words else _keep,
        help=f"Read values of options from FILE.  [default: ${VARIABLE}, or the nearest {NAME}]",
    )


def settle(command: click.Command, words: tuple[str, ...]) -> None:
    """Let a command, and those below it, take values from elsewhere. Idempotent."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            settle(below, (*words, name))
        return
    own = ALIASES.get(words, words)
    command.context_settings = {**command.context_settings, "auto_envvar_prefix": variable(*own)}
    for option in command.params:
        if isinstance(option, click.Option):
            key = key_of(option)
            if key in COMMAND_LINE:
                option.allow_from_autoenv = False
            elif option.name != key.replace("-", "_"):  # click makes the variable of the parameter's name
                option.allow_from_autoenv, option.envvar = False, variable(*own, key)
    if not any(each.name == "config" for each in command.params):
        command.params.append(config_option(own))


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_CONFIG] = value


def _fill(words: tuple[str, ...], context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Fill `default_map`. Raises UserError for what is wrong in the file."""
    if context.resilient_parsing or context.find_root() is context:
        return
    named = value if value is not None else context.meta.get(_CONFIG, os.environ.get(VARIABLE))
    settings: dict[str, tuple[Any, str]] = {}
    if (found := find(named)) is not None:
        # late: 20 ms, YAML, and only where there is a file
        from lastcall.cli.settings.reading import read_settings

        settings = read_settings(found, words, context)
    options = keyed(context.command)
    for key, option in options.items():
        if text := os.environ.get(variable(key)):
            settings[key] = (option.type.split_envvar_value(text) if option.multiple else text, variable(key))
    context.default_map = {str(options[key].name): value for key, (value, _) in settings.items()}
    context.meta[_PLACES] = {options[key].name: place for key, (_, place) in settings.items()}


def with_place(error: click.BadParameter) -> click.BadParameter:
    """Return the same error, with the place of the value if it is not on the command line."""
    context, option = error.ctx, error.param
    if context is None or not isinstance(option, click.Option) or not option.name:
        return error
    source = context.get_parameter_source(option.name)
    if source is ParameterSource.ENVIRONMENT:
        place = str(option.envvar or f"{context.auto_envvar_prefix}_{option.name.upper()}")
    elif source is ParameterSource.DEFAULT_MAP:
        place = context.meta[_PLACES][option.name]
    else:
        return error
    return click.BadParameter(f"{place}: {error.message}", context, option, error.param_hint)
