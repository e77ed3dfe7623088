"""Where a command's options get their values: the command line, else a variable, else lastcall.yaml, else the default.

click asks for them in this order. Here are the names of the variables, the file (read when the first option asks for
it: `--help` needs none), and what an error says of a value's place.
"""

import os
import stat
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from lastcall.cli.settings.reading import Setting

NAME = "lastcall.yaml"
VARIABLE = "LASTCALL_CONFIG"

ALIASES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("ls",): ("status",),
    ("create", "cluster"): ("up",),
    ("delete", "cluster"): ("down",),
    ("delete", "clusters"): ("down",),
    ("get", "kubeconfig"): ("kubeconfig",),
}
"""Other words for a command → the command."""

CONFIG = "lastcall.config"
"""In `Context.meta`: the file that `--config` names."""


def key_of(option: click.Option) -> str:
    """What an option is called in the file: the last of its long names, `cluster` for --name and --cluster."""
    return next((each[2:] for each in reversed(option.opts) if each.startswith("--")), "")


def _keep_config(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[CONFIG] = value


def config_option(*, hidden: bool = False) -> click.Option:
    """`--config FILE`, before the command or after it."""
    return click.Option(
        ["--config"],
        metavar="FILE",
        expose_value=False,
        is_eager=True,
        hidden=hidden,
        callback=_keep_config,
        help=f"Read values of options from FILE.  [default: ${VARIABLE}, or the nearest {NAME}]",
    )


class SettingsContext(click.Context):
    """Of a command: it knows what lastcall.yaml says of the command's options."""

    _settings: "dict[str, Setting] | None" = None

    def lookup_default(self, name: str, call: bool = True) -> Any:
        """What the file says for a parameter, None for nothing. Without `call` the help page asks."""
        if not call or self.resilient_parsing:
            return None
        setting = self.setting(name)
        return None if setting is None else setting.value

    def setting(self, name: str) -> "Setting | None":
        """Raises UserError."""
        if self._settings is None:
            self._settings = self._read()
        return self._settings.get(name)

    def _read(self) -> "dict[str, Setting]":
        root = self.find_root()
        found = None if root is self else find(self.meta.get(CONFIG))
        if found is None:
            return {}
        # late: 20 ms, YAML, and only where there is a file
        from lastcall.cli.settings.file import Found
        from lastcall.cli.settings.keys import GROUPS
        from lastcall.cli.settings.reading import read_settings

        commands = {name: GROUPS.get(name) for name in cast(click.Group, root.command).list_commands(root)}
        options = {key_of(each): each for each in self.command.params if isinstance(each, click.Option)}
        options.pop("config", None)
        read = read_settings(Found(*found), command_of(self), options, commands)
        return {str(options[key].name): setting for key, setting in read.items()}


def command_of(context: click.Context) -> tuple[str, ...]:
    """The command's own words: ("image", "pull"); ("up",) for `create cluster`."""
    words: list[str] = []
    here: click.Context | None = context
    while here is not None and here.parent is not None:
        words.insert(0, here.info_name or "")
        here = here.parent
    return ALIASES.get(tuple(words), tuple(words))


def settle(command: click.Command, words: tuple[str, ...]) -> None:
    """Let a command, and those below it, take values from elsewhere. Idempotent."""
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            settle(below, (*words, name))
        return
    command.context_class = SettingsContext
    if not any(each.name == "config" for each in command.params):
        command.params.append(config_option(hidden=True))
    if not any(each.startswith("LASTCALL_") for each in os.environ):
        return
    # late: only where a variable is set
    from lastcall.cli.settings.keys import COMMAND_LINE

    own = ALIASES.get(words, words)
    for each in command.params:
        if isinstance(each, click.Option) and not each.envvar and (key := key_of(each)) not in COMMAND_LINE:
            each.envvar = variables(own, key)


def with_place(error: click.BadParameter) -> click.BadParameter:
    """The same error, saying where the value stands if it is not on the command line."""
    context, option = error.ctx, error.param
    if not isinstance(context, SettingsContext) or not isinstance(option, click.Option) or not option.name:
        return error
    source = context.get_parameter_source(option.name)
    if source is ParameterSource.ENVIRONMENT:
        names = [option.envvar] if isinstance(option.envvar, str) else option.envvar or []
        where = next((each for each in names if os.environ.get(each)), "")
    elif source is ParameterSource.DEFAULT_MAP:
        setting = context.setting(option.name)
        where = "" if setting is None else setting.where
    else:
        return error
    return click.BadParameter(f"{where}: {error.message}", context, option, error.param_hint)


def variables(command: tuple[str, ...], key: str) -> list[str]:
    """The environment variables of an option, the first that is not empty wins: LASTCALL_UP_NODES, LASTCALL_NODES."""
    name = key.replace("-", "_").upper()
    return [f"LASTCALL_{'_'.join(command).replace('-', '_').upper()}_{name}", f"LASTCALL_{name}"]


# -- the file ----------------------------------------------------------------------------------------------------


def find(named: str | None) -> tuple[str, bool] | None:
    """(path, whether it was named): the file of `--config` or $LASTCALL_CONFIG ("" or /dev/null: none), or the nearest.

    Looked for in the current directory and those above it, up to the first with a .git, or to $HOME. A directory above
    that somebody else owns, or that everybody may write to (/tmp), is not looked into, nor what is above it.
    """
    if named is None:
        named = os.environ.get(VARIABLE)
    if named is not None:
        return (named, True) if named and named != os.devnull else None
    try:
        directory = os.getcwd()
    except OSError:
        return None  # it was removed
    home = os.path.realpath(os.environ.get("HOME") or "/")
    above = False
    while True:
        if above and not _is_ours(directory):
            return None
        path = os.path.join(directory, NAME)
        if os.path.lexists(path):
            return path, False
        if directory == home or os.path.lexists(os.path.join(directory, ".git")):
            return None
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory, above = parent, True


def users() -> set[int]:
    """Whose files are read without being named: the user's, root's, and under sudo those of who called it."""
    user = os.geteuid() if hasattr(os, "geteuid") else 0  # Windows has none, and calls everybody 0
    caller = os.environ.get("SUDO_UID", "")
    return {user, 0, int(caller)} if user == 0 and caller.isascii() and caller.isdecimal() else {user, 0}


def _is_ours(directory: str) -> bool:
    try:
        status = os.stat(directory)
    except OSError:
        return False
    return status.st_uid in users() and not status.st_mode & stat.S_IWOTH
