"""A client of the cluster that the options name, once it answers."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from lastcall._version import __version__
from lastcall.contexts.options import ContextOptions
from lastcall.errors import UserError
from lastcall.world.blocking import wall
from lastcall.world.dataclass import dataclass
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.contexts.clocks import Offset
    from lastcall.kube.api import StatusError
    from lastcall.kube.client import ClientConfig, HTTPClient

IN_CLUSTER = "in-cluster"
"""What the configuration of a Pod is called where a context's name is asked for."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The cluster, before anything was asked of it. `namespace` is "default" where nothing names another."""

    context: str
    server: str
    namespace: str
    config: "ClientConfig"
    asked: ContextOptions


@dataclass(frozen=True, slots=True)
class Connected:
    """`version` is what the API server says of itself: `v1.36.2`; decide nothing by it, see what it serves. `clock` is
    its clock against ours, to about a second; None if it does not say."""

    client: "HTTPClient"
    chosen: Chosen
    version: str
    clock: "Offset | None" = None


def choose(asked: ContextOptions, environ: Mapping[str, str] | None = None) -> Chosen:
    """Read the kubeconfig. Raises UserError."""
    # late: 260 ms of a command's --help
    from lastcall.kube.client import KubeconfigError, Overrides, load_kubeconfig

    overrides = Overrides(asked.context, asked.namespace, asked.impersonate, asked.insecure_skip_tls_verify)
    try:
        config = load_kubeconfig(asked.kubeconfig, environ=environ, overrides=overrides)
    except KubeconfigError as error:
        raise UserError(str(error)) from error
    return Chosen(config.context or IN_CLUSTER, config.server, config.namespace or "default", config, asked)


@asynccontextmanager
async def connected(
    chosen: Chosen,
    *,
    agent: str,
    warn: Callable[[str], None],
    on_refused: "Callable[[StatusError], None] | None" = None,
) -> AsyncIterator[Connected]:
    """Give a client that has had its first answer; it is closed with the block. `agent` is for logs: `lastcall-trace`.
    `warn` gets lines for the user: warnings, and what a credential plugin says, such as the address of a login.

    Once it has answered, requests are retried while it restarts (`access/patience.py`), with a line to the user.
    Raises UserError, WorldError, also for what the client raises inside the block.
    """
    # late: 375 ms of a command's --help
    from lastcall.contexts.diagnosis import clock_of, clock_sentence, explained
    from lastcall.contexts.untrusted_server import clock_sample, version_of
    from lastcall.kube.api import StatusError
    from lastcall.kube.client import ConnectionLost, KubeconfigError, Patience, UnusableAnswer, client_for, decoded

    patience = Patience(World(), lambda line: warn(f"warning: {line}"), chosen.server)
    options: dict[str, Any] = {
        "patience": patience,
        "user_agent": f"{agent}/{__version__}",
        "request_timeout": chosen.asked.request_timeout,
        "say": warn,
        "on_refused": on_refused,
    }
    try:
        client = client_for(chosen.config, **options)
    except KubeconfigError as error:
        raise UserError(f"context {chosen.context!r}: {error}") from error
    try:
        sent = wall()
        body, date = await client.dated("/version")
        try:
            decoded(body, "GET", f"{chosen.server}/version")
        except UnusableAnswer as error:
            why = f"{error}; fix: correct server of cluster {chosen.config.cluster!r} in the kubeconfig"
            raise UserError(f"context {chosen.context!r}: {why}") from error
        patience.begin()
        clock = clock_of(clock_sample(date, sent, wall()))
        if skew := clock_sentence(clock):
            warn(f"warning: {skew}")
        yield Connected(client, chosen, version_of(body), clock)
    except (StatusError, ConnectionLost) as error:
        raise await explained(error, chosen.context, chosen.config) from error
    except KubeconfigError as error:
        raise UserError(f"context {chosen.context!r}: {error}") from error
    finally:
        await client.close()
