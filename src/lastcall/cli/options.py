"""Options that several commands share, each written once, and types of values with errors that say what would do."""

import re
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click
from click.core import ParameterSource

from lastcall.endings.render import quoted_json
from lastcall.errors import UserError
from lastcall.world.durations import format_duration, parse_duration

if TYPE_CHECKING:
    from lastcall.manifests import Chart, Manifest

F = TypeVar("F", bound=Callable[..., Any])

JSON_LINE = "json-line"

DEFAULT_KUBERNETES_VERSION = "1.37"
KUBERNETES_VERSIONS = ("1.23", "1.27", "1.36", "1.37")

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SIZE = re.compile(r"[1-9][0-9]*[kmg]|[1-9][0-9]?%|100%", re.IGNORECASE)


class Whole(click.ParamType):  # type: ignore[type-arg]
    """A whole number of `least` to `most`, both included; `unit` is what it counts."""

    name = "integer"

    def __init__(self, least: int, most: int, unit: str = "") -> None:
        self._least, self._most, self._unit = least, most, unit and f" of {unit}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number: {self._wanted()}", param, ctx)
        if not self._least <= number <= self._most:
            word = "few" if number < self._least else "many"
            self.fail(f"{value} is too {word}: {self._wanted()}", param, ctx)
        return number

    def _wanted(self) -> str:
        return f"give a whole number{self._unit} from {self._least} to {self._most}"


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A time as `30s`, `1m30s`, `500ms` or plain seconds, from `least` to `most` seconds, both included; more than 0
    where `least` is not given. With `whole` an int of seconds."""

    name = "time"
    MOST = 86400.0

    def __init__(self, least: float | None = None, most: float = MOST, *, whole: bool = False) -> None:
        self._least, self._most, self._whole = least, most, whole

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            seconds = parse_duration(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time: {self._wanted()}", param, ctx)
        if seconds > self._most:
            self.fail(f"{value} is too long: {self._wanted()}", param, ctx)
        if seconds < (self._least or 0) or (seconds == 0 and self._least is None):
            self.fail(f"{value} is too short: {self._wanted()}", param, ctx)
        if not self._whole:
            return seconds
        if seconds != int(seconds):
            self.fail(f"{value} is not a whole number of seconds: {self._wanted()}", param, ctx)
        return int(seconds)

    def _wanted(self) -> str:
        examples = "30s, 1m30s or plain seconds" if self._whole else "30s, 1m30s, 500ms or plain seconds"
        most = format_duration(self._most)
        if self._least is None:
            return f"write {examples}, more than 0 and at most {most}"
        return f"write {examples}, from {format_duration(self._least)} to {most}"


def checked_size(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check a size as mount(8) takes it (a click callback)."""
    if not _SIZE.fullmatch(value):
        raise click.BadParameter(f"{value!r} is not a size: write 512m, 4g, or 50% of the machine's memory")
    return value


def timeout_option(default: float, help: str) -> Callable[[F], F]:
    """Return `--timeout TIME`: the keyword argument `timeout`, in seconds."""
    return duration_option("--timeout", default, help, Seconds())


def duration_option(name: str, default: float, help: str, kind: "Seconds", *, to: str = "") -> Callable[[F], F]:
    """Declare a time whose keyword argument is in seconds: `to`, or what `name` makes of it."""
    given = (name, to) if to else (name,)
    return click.option(
        *given, type=kind, metavar="TIME", default=format_duration(default), show_default=True, help=help
    )


def text_or_json_option(command: F) -> F:
    """Add `--output text|json`: the keyword argument `output`."""
    return output_option(("text", "json"), "Output format.", default="text")(command)


def output_option(formats: tuple[str, ...], help: str, default: str | None = None) -> Callable[[F], F]:
    """Return `--output FORMAT`: the keyword argument `output`, None where it is not given and has no default.

    `json-line` is the document of `json` on one line (`json_text`); `output` is "json" for both.
    """
    place = formats.index("json") + 1
    return click.option(
        "--output",
        "-o",
        type=click.Choice((*formats[:place], JSON_LINE, *formats[place:])),
        default=default,
        show_default=default is not None,
        callback=_one_line,
        help=help,
    )


def _one_line(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value != JSON_LINE:
        return value
    context.meta[JSON_LINE] = True
    return "json"


def is_given(name: str) -> bool:
    """Return whether the running command got this parameter on its command line, not by variable or lastcall.yaml."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def is_set(name: str) -> bool:
    """Return whether the running command got this parameter from anywhere: command line, a variable, lastcall.yaml."""
    return click.get_current_context().get_parameter_source(name) is not ParameterSource.DEFAULT


def asked_for_one_line() -> bool:
    """Return whether the running command was asked for `json-line`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(JSON_LINE))


def json_text(document: Any, indent: int = 2) -> str:
    """Return a document as the running command was asked for it, with a newline at its end."""
    return quoted_json(document, None if asked_for_one_line() else indent)


def audit_log_option(help: str) -> Callable[[F], F]:
    """Return `--audit-log FILE`: the keyword argument `audit_log`, "" where it is not given."""
    return click.option("--audit-log", metavar="FILE", default="", help=help)


def output_file_option(help: str = "") -> Callable[[F], F]:
    """Return `--output-file FILE`: the keyword argument `output_file`."""
    return click.option(
        "--output-file",
        metavar="FILE",
        type=click.Path(dir_okay=False, path_type=Path),
        help=help or "Write the report to FILE, in the format of its extension, and the text to stdout.",
    )


class Sources(NamedTuple):
    """Where manifests come from, and the namespace of objects that name none."""

    manifests: tuple[str, ...]
    kustomizations: tuple[str, ...]
    recursive: bool
    namespace: str
    chart: "Chart | None" = None

    def __bool__(self) -> bool:
        return bool(self.manifests or self.kustomizations or self.chart)

    def check(self, metavar: str) -> None:
        """Raise UsageError if no manifest is given."""
        if not self:
            raise click.UsageError(f"Missing argument {metavar!r}: give a file, a directory, - for stdin, or -k DIR")

    def load(self) -> "list[Manifest]":
        """Return all objects, in the order to create them, and print what was read. Raises UserError, WorldError."""
        # late: `--help` reads no manifest
        from lastcall.cli.terminal import note
        from lastcall.manifests import load_manifests, summary

        loaded = load_manifests(
            self.manifests,
            kustomizations=self.kustomizations,
            chart=self.chart,
            recursive=self.recursive,
            namespace=self.namespace,
            note=lambda line: note(f"note: {line}"),
        )
        note(summary(loaded))
        return loaded


def checked_namespace(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the name of a namespace, which is a DNS label (a click callback)."""
    if not _LABEL.fullmatch(value):
        raise click.BadParameter(
            f"{value!r} is not the name of a namespace: use at most 63 lower case letters, digits and -, "
            "with a letter or digit first and last"
        )
    return value


def manifest_options(metavar: str, *, required: bool = True, positional: bool = True) -> Callable[[F], F]:
    """Return `METAVAR… -f FILE -k DIR -R -n NAMESPACE`: the keyword argument `sources`, a `Sources`.

    If `required`, it is not empty. Without `positional` there is no METAVAR…, and no chart.
    """

    def add(command: F) -> F:
        @wraps(command)
        def gathered(
            *,
            manifests: tuple[str, ...] = (),
            filenames: tuple[str, ...],
            kustomizations: tuple[str, ...],
            recursive: bool,
            namespace: str,
            sets: tuple[str, ...] = (),
            release: str = "",
            **others: Any,
        ) -> Any:
            chart = _chart(manifests, filenames, kustomizations, sets, release, namespace)
            files = () if chart is not None else (*manifests, *filenames)
            sources = Sources(files, kustomizations, recursive, namespace, chart)
            if required:
                sources.check(metavar)
            return command(sources=sources, **others)

        decorated: Any = gathered
        decorators = _manifest_decorators(metavar)
        if positional:
            decorators += _chart_decorators()
        for decorator in reversed(decorators[0 if positional else 1 :]):
            decorated = decorator(decorated)
        return cast(F, decorated)

    return add


def _manifest_decorators(metavar: str) -> list[Callable[[Any], Any]]:
    return [
        click.argument("manifests", nargs=-1, metavar=f"[{metavar}…]"),
        click.option(
            "--filename",
            "-f",
            "filenames",
            metavar=metavar,
            multiple=True,
            help="A file, a directory, or - for stdin; with a chart, a values file. Repeatable.",
        ),
        click.option(
            "--kustomize",
            "-k",
            "kustomizations",
            metavar="DIR",
            multiple=True,
            help="Read what `kubectl kustomize DIR` prints. Repeatable.",
        ),
        click.option("--recursive", "-R", is_flag=True, help="Read subdirectories, too."),
        click.option(
            "--namespace",
            "-n",
            metavar="NAMESPACE",
            default="default",
            show_default=True,
            callback=checked_namespace,
            help="Namespace of objects that name none.",
        ),
    ]


def _chart_decorators() -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--set",
            "sets",
            metavar="KEY=VALUE",
            multiple=True,
            help="Set a value of a chart. Repeatable.",
        ),
        click.option("--release", metavar="NAME", default="", help="Release of a chart.  [default: release-name]"),
    ]


def _chart(
    manifests: tuple[str, ...],
    filenames: tuple[str, ...],
    kustomizations: tuple[str, ...],
    sets: tuple[str, ...],
    release: str,
    namespace: str,
) -> "Chart | None":
    """Return the chart that is asked for, None for none. Raises click.UsageError."""
    charts: list[str] = []
    if manifests:
        # late: only where something is named
        from lastcall.manifests import is_chart

        charts += filter(is_chart, manifests)
    if not charts:
        if sets or release:
            raise click.UsageError(f"{'--set' if sets else '--release'} is for a chart: name its directory or package")
        return None
    if len(manifests) > 1 or kustomizations:
        other = next((each for each in manifests if each != charts[0]), f"-k {' '.join(kustomizations)}")
        raise click.UsageError(f"{charts[0]} is a chart, which is read alone: leave out {other}")
    # late: only with a chart
    from lastcall.manifests import RELEASE, Chart

    command = f"lastcall {click.get_current_context().info_name}"
    return Chart(charts[0], filenames, sets, release or RELEASE, namespace, command)


kubernetes_version_option = click.option(
    "--kubernetes-version",
    type=click.Choice(KUBERNETES_VERSIONS),
    default=DEFAULT_KUBERNETES_VERSION,
    show_default=True,
    help="Kubernetes version to emulate.",
)

state_size_option = click.option(
    "--state-size",
    metavar="SIZE",
    default="50%",
    show_default=True,
    callback=checked_size,
    help="Maximum of images and other files in memory, and what containers may write to disk before the node evicts "
    "Pods (without a suitable disk: to memory): 512m, 4g, or a share of this machine's memory.",
)

platform_option = click.option(
    "--platform",
    default="",
    metavar="OS/ARCH[/VARIANT]",
    help="Platform to take, if the image has several: linux/arm64, arm/v7 …  [default: this machine's]",
)


_ETCD_FLAGS = (
    ("servers", "URLS", "Members of etcd, separated by commas: http(s)://HOST:PORT."),
    ("prefix", "PATH", "Prefix of all keys.  [default: /registry]"),
    ("cafile", "FILE", "CA that signed the members' certificates (PEM).  [default: the system's]"),
    ("certfile", "FILE", "Client certificate for etcd (PEM)."),
    ("keyfile", "FILE", "Its private key (PEM)."),
    (
        "user",
        "NAME:PASSWORD",
        "User of etcd, if it requires one. Better set LASTCALL_ETCD_USER: other users of this machine see options.",
    ),
)


def etcd_flags(*, required: bool) -> Callable[[F], F]:
    """Return kube-apiserver's --etcd-* flags as one argument `etcd`: EtcdOptions, None where no server is named."""

    def wrap(command: F) -> F:
        @wraps(command)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            given = {name: kwargs.pop(f"etcd_{name}") for name, _, _ in _ETCD_FLAGS}
            return command(*args, etcd=_etcd_options(given), **kwargs)

        found: Any = wrapped
        for name, metavar, text in reversed(_ETCD_FLAGS):
            must = required and name == "servers"
            found = click.option(
                f"--etcd-{name}", metavar=metavar, default=None if must else "", required=must, help=text
            )(found)
        return cast(F, found)

    return wrap


def _etcd_options(given: dict[str, str]) -> Any:
    """Raises UserError."""
    others = [name for name, value in given.items() if value and name != "servers"]
    if not given["servers"]:
        if others:
            raise UserError(f"--etcd-{others[0]}: needs --etcd-servers; fix: give the addresses of the servers")
        return None
    # late: only where there is an etcd
    from lastcall.kube.store import DEFAULT_PREFIX, etcd_options

    try:
        return etcd_options(
            given["servers"],
            prefix=given["prefix"] or DEFAULT_PREFIX,
            ca_file=given["cafile"],
            certificate_file=given["certfile"],
            key_file=given["keyfile"],
            user=given["user"],
        )
    except ValueError as error:
        raise UserError(str(error)) from None


def read_pem(flag: str, path: str) -> bytes:
    """Read the PEM file that a flag names. Raises UserError."""
    # late: only for servers that are given certificates
    from lastcall.kube.store import read_pem as read

    try:
        return read(flag, path)
    except ValueError as error:
        raise UserError(str(error)) from None


def read_service_account_key(path: str) -> bytes:
    """Read and check the file of --service-account-signing-key-file; b"" for no path. Raises UserError."""
    if not path:
        return b""
    # late: only where a key is given
    from lastcall.kube.apiserver import TokenIssuer
    from lastcall.world.world import World

    content = read_pem("service-account-signing-key-file", path)
    try:
        _ = TokenIssuer(World(), "", content).private_key
    except ValueError as error:
        raise UserError(
            f"--service-account-signing-key-file {path}: {error}; fix: openssl genrsa -out sa.key 2048"
        ) from None
    return content
