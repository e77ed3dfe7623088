"""The options of `lastcall trace` for watching for weeks."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from lastcall.world.dataclass import dataclass

DEFAULT_LISTEN = "127.0.0.1:9464"
NEED_SERVE = ("otlp_endpoint", "events", "lease")


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """As they were given; `serve` None: not asked for."""

    serve: str | None
    otlp_endpoint: str
    events: bool
    lease: str
    most_workloads: int


def serve_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, handed to the command as one ServeOptions `serve`."""

    @click.option(
        "--serve",
        is_flag=False,
        flag_value=DEFAULT_LISTEN,
        default=None,
        metavar="[ADDRESS:PORT]",
        help=f"Run until a signal, and serve metrics for Prometheus.  [without a value: {DEFAULT_LISTEN}]",
    )
    @click.option(
        "--otlp-endpoint",
        default="",
        metavar="URL",
        help="Send each end as a trace to this OTLP/HTTP receiver (needs lastcall[otel]; with --serve).",
    )
    @click.option("--events", is_flag=True, help="Write Events with the fix on Pods that were killed (with --serve).")
    @click.option(
        "--lease",
        default="",
        metavar="NAMESPACE/NAME",
        help="Of several processes, only the holder of this Lease watches (with --serve).",
    )
    @click.option(
        "--most-workloads",
        type=click.IntRange(1, 10_000),
        default=200,
        show_default=True,
        metavar="N",
        help="Maximum number of workloads with metrics of their own (with --serve).",
    )
    @wraps(command)
    def gathered(
        *args: Any,
        serve: str | None,
        otlp_endpoint: str,
        events: bool,
        lease: str,
        most_workloads: int,
        **more: Any,
    ) -> Any:
        given = ServeOptions(serve, otlp_endpoint, events, lease, most_workloads)
        if serve is None:
            for name in NEED_SERVE:
                if getattr(given, name):
                    raise click.UsageError(f"--{name.replace('_', '-')} needs --serve; fix: add --serve")
        return command(*args, serve=given, **more)

    return gathered
