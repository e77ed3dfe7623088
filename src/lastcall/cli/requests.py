"""The requests that `run --load` and `rollout` send: their options, how values are read, and where they enter."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lastcall.cli.options import Seconds, Whole, duration_option, is_set
from lastcall.errors import UserError
from lastcall.experiment.rollout import SOURCES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from lastcall.experiment.existing import ExistingWorkspace
    from lastcall.experiment.rollout import RolloutOptions
    from lastcall.traffic import Kind

F = TypeVar("F", bound=Callable[..., Any])

_OF_LOAD = ("rates", "path", "slow_path", "stream_path", "websocket_path", "http2_connections")
LASTING_EVERY = 5
"""Of so many streams one outlives the Pods that are to end, unless --stream-length says how long all are held."""
_OF_REQUESTS = ("workload", "service", "port", "source")


def asked_requests(options: dict[str, Any]) -> dict[str, Any]:
    """Return what is sent and where to, as keywords of `RolloutOptions`; they are taken out of `options`."""
    # late: only for requests
    from lastcall.traffic import Load

    asked = {each: options.pop(each) for each in _OF_LOAD}
    if (length := options.pop("length")) is None:
        asked["lasting_every"] = LASTING_EVERY
    else:
        asked["length"] = length
    load = Load(timeout=options.pop("request_timeout"), **asked)
    return {"load": load, **{each: options.pop(each) for each in _OF_REQUESTS}}


def parsed_load(context: click.Context, parameter: click.Parameter, value: str | None) -> "dict[Kind, float]":
    """Parse `fresh=150,keep-alive=50`, or a number for the two of them together; none without a value."""
    if value is None:
        return {}
    with suppress(ValueError):
        if 0 < float(value) <= 5000:
            return {"fresh": float(value) * 0.75, "keep-alive": float(value) * 0.25}
    # late: only for some of the kinds
    from lastcall.traffic import KINDS

    rates: dict[Kind, float] = {}
    for part in value.split(","):
        name, _, rate = part.partition("=")
        kind = next((each for each in KINDS if each == name.strip()), None)
        try:
            number = float(rate)
        except ValueError:
            number = -1.0
        if kind is None or not 0 < number <= 5000:
            raise click.BadParameter(
                f"{part!r}: write requests per second (200), or by kind, as in fresh=150,keep-alive=50; "
                f"kinds: {', '.join(KINDS)}; at most 5000 a second each"
            )
        rates[kind] = number
    return rates


def checked_path(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the target of an HTTP request."""
    if not value.startswith("/") or any(each <= " " or each > "~" for each in value):
        raise click.BadParameter(f"{value!r}: a path begins with / and has neither spaces nor letters beyond ASCII")
    return value


def complete_workload(context: "click.Context", parameter: "click.Parameter", begun: str) -> "list[CompletionItem]":
    """Return the workloads of the manifests that are on the command line before the option."""
    # late: for a shell that completes: 71 modules of `run --help`
    from click.shell_completion import CompletionItem

    from lastcall.experiment.rollout import WORKLOADS, kubectl_name
    from lastcall.manifests import STDIN, load_manifests

    given = (*(context.params.get("manifests") or ()), *(context.params.get("filenames") or ()))
    sources, recursive = [each for each in given if each != STDIN], bool(context.params.get("recursive"))
    with suppress(UserError):
        found = load_manifests(sources, recursive=recursive)
        names = [kubectl_name(each) for each in found if each.resource in WORKLOADS]
        return [CompletionItem(name) for name in names if name.startswith(begun.lower())]
    return []


_REQUESTS: list[Callable[[Any], Any]] = [
    click.option("--path", default="/", show_default=True, callback=checked_path, help="Path to request."),
    click.option(
        "--slow-path", default="/slow", show_default=True, callback=checked_path, help="Path of slow requests."
    ),
    click.option("--stream-path", default="/stream", show_default=True, callback=checked_path, help="Path of streams."),
    click.option(
        "--websocket-path", default="/ws", show_default=True, callback=checked_path, help="Path of WebSockets."
    ),
    click.option(
        "--stream-length",
        "length",
        type=Seconds(0.1, 3600),
        metavar="TIME",
        default=None,
        help="How long a stream or a WebSocket is held before the client leaves.  [default: 5s, and every fifth until "
        "the load is over]",
    ),
    click.option(
        "--http2-connections",
        metavar="N",
        type=Whole(1, 1000, "connections"),
        default=4,
        show_default=True,
        help="Number of connections that all HTTP/2 requests share.",
    ),
    click.option(
        "--workload",
        metavar="KIND/NAME",
        default="",
        shell_complete=complete_workload,
        help="Workload to send to: deployment/web, or KIND.GROUP/NAME.  [default: the one behind the Service]",
    ),
    click.option("--service", default="", help="Service to send to, if there are several."),
    click.option(
        "--port",
        default="",
        help="Port of the Service, by name or number.  [default: http, or the only one]",
    ),
    click.option(
        "--from",
        "source",
        type=click.Choice(SOURCES),
        default="node",
        show_default=True,
        help="Where requests come from: a node, a Pod, the host through a published port, a load balancer, or (with "
        "--context) this machine.",
    ),
    click.option(
        "--url",
        metavar="URL",
        default="",
        help="Where to send requests: https://shop.example.com.  [default: the Service's external address]",
    ),
    click.option(
        "--url-ca",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        default=None,
        help="CA certificates (PEM) to trust for an https --url.  [default: this machine's CAs]",
    ),
    click.option(
        "--image",
        metavar="IMAGE",
        default="",
        help="Image of the Pod that sends requests.  [default: the one that lastcall image build-agent makes]",
    ),
    duration_option("--request-timeout", 10, "Time after which a request counts as lost.", Seconds(0, 3600)),
]
"""Where requests are sent to, and from where."""


def requests_options(rate: str | None) -> Callable[[F], F]:
    """Add what is sent, where it is sent to and from where; `rate` is the default of --load, None for no requests."""

    def add(command: F) -> F:
        for option in reversed(_REQUESTS):
            command = option(command)
        return click.option(
            "--load",
            "rates",
            metavar="RATE",
            default=rate,
            show_default=rate is not None,
            callback=parsed_load,
            help="Requests per second (3/4 fresh, 1/4 keep-alive), or by kind: fresh=150,slow=5 (kinds: lastcall "
            "rollout --help).",
        )(command)

    return add


def entered(
    options: "RolloutOptions", url: str, url_ca: Path | None, image: str
) -> "tuple[RolloutOptions, Callable[..., ExistingWorkspace]]":
    """Return from where requests come, and what makes the workspace where they enter. Raises UsageError, UserError."""
    # late: 104 ms of `run --help`
    from lastcall.cli.image.build_agent import AGENT_IMAGE
    from lastcall.experiment.existing import ExistingWorkspace, read_ca

    if not is_set("source"):
        options = replace(options, source="client" if url else "pod")
    if url_ca and not url.startswith("https:"):
        raise click.UsageError("--url-ca needs an https URL: add --url https://…")
    return options, partial(ExistingWorkspace, url=url, image=image or AGENT_IMAGE, url_ca=read_ca(url_ca))
