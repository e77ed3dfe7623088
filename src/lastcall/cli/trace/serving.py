"""`lastcall trace --serve`: watching for weeks, in place of telling it on a terminal."""

import asyncio
import importlib.util
import os
import re
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from lastcall.cli.terminal import note, say_from
from lastcall.cli.trace.serve_options import ServeOptions
from lastcall.contexts import connected
from lastcall.errors import UserError, WorldError
from lastcall.kube.api import StatusError
from lastcall.kube.client import LeadershipLost
from lastcall.trace import Follower, Options, Scope
from lastcall.trace.exporting import AddressError, Asked, Health, Serving, parse_endpoint, parse_listen
from lastcall.world import crash_guard
from lastcall.world.interrupts import Interrupts
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.contexts import Chosen, Connected

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_LEASE = re.compile(rf"({_LABEL})/({_LABEL}(\.{_LABEL})*)")


def run_serve(chosen: "Chosen", scope: Scope, given: ServeOptions, *, logs: bool) -> int:
    """Serve until a signal; the exit status. Raises LastcallError."""
    world = World()
    asked = asked_for(given, f"{socket.gethostname()}_{world.new_uid()[:8]}")
    with Interrupts(message="the trace has ended") as interrupts:
        asyncio.run(_run(chosen, scope, asked, logs, world, interrupts))
    return 0


def asked_for(given: ServeOptions, identity: str) -> Asked:
    """Return what is asked for. Raises UserError for a wrong value, and for an extra that is not installed."""
    try:
        listen = parse_listen(given.serve or "")
    except AddressError as error:
        raise UserError(f"--serve: {error}") from error
    endpoint = ""
    if given.otlp_endpoint:
        try:
            endpoint = parse_endpoint(given.otlp_endpoint)
        except AddressError as error:
            raise UserError(f"--otlp-endpoint: {error}") from error
        if importlib.util.find_spec("opentelemetry") is None:
            raise UserError("--otlp-endpoint needs OpenTelemetry's SDK; fix: pip install 'lastcall[otel]'")
    lease: tuple[str, str] | None = None
    if given.lease:
        found = _LEASE.fullmatch(given.lease)
        if found is None:
            raise UserError(f"--lease {given.lease!r} is not NAMESPACE/NAME; fix: --lease=lastcall/lastcall-trace")
        lease = found[1], found[3]
    return Asked(listen, endpoint, given.events, lease, identity, given.most_workloads)


async def _run(chosen: "Chosen", scope: Scope, asked: Asked, logs: bool, world: World, interrupts: Interrupts) -> None:
    crash_guard.install(crash_guard.Faults(say=_note))
    async with connected(chosen, agent="lastcall-trace", warn=note) as there:
        followers: list[Follower] = []
        serving = Serving(
            world,
            there.client,
            asked,
            _follow(there, scope, logs, world, followers),
            lambda: health_of(followers[-1]) if followers else Health(),
            _note,
        )
        loop = asyncio.get_running_loop()

        def end() -> None:
            loop.call_soon_threadsafe(serving.end)

        interrupts.on_first = end
        if interrupts.number:
            serving.end()
        where = f"namespace {scope.namespace}" if scope.namespace else "all namespaces"
        _note(f"{chosen.server} (Kubernetes {there.version}), {where}")
        try:
            await serving.run()
        except OSError as error:
            text = (
                f"cannot listen at {asked.listen}: {error.strerror or error}; fix: another port, as --serve=127.0.0.1:0"
            )
            raise WorldError(text) from error
        except LeadershipLost as error:
            raise WorldError(f"{error}: stopping; a restarted process waits for the lease") from error
        finally:
            interrupts.on_first = None
        _cannot_follow(followers, chosen.server)


def _follow(
    there: "Connected", scope: Scope, logs: bool, world: World, followers: list[Follower]
) -> Callable[[], Follower]:
    def follow() -> Follower:
        version = ".".join(there.version.removeprefix("v").split(".")[:2])
        made = Follower(
            there.client, scope, world=world, kubernetes_version=version, options=Options(logs=logs), on_note=_note
        )
        followers.append(made)
        return made

    return follow


def health_of(follower: Follower) -> Health:
    """Return what the follower says of itself, as the metrics have it."""
    sources = {each.resource.plural: each for each in follower.sources()}
    return Health(
        watches={name: each.connected for name, each in sources.items()},
        reconnects={name: max(0, each.watches - 1) for name, each in sources.items()},
        gaps={name: each.gaps for name, each in sources.items()},
        forbidden=frozenset(resource for resource, _ in follower.missing if resource in sources),
        pods=follower.following(),
        ending=follower.ending(),
        waiting=follower.waiting(),
    )


def _cannot_follow(followers: list[Follower], server: str) -> None:
    failure = followers[-1].failure if followers else None
    if isinstance(failure, StatusError):
        raise UserError(f"no permission to watch Pods at {server}: {failure.message}") from failure
    if failure is not None:
        raise WorldError(str(failure)) from failure


def _note(text: str) -> None:
    say_from(f"trace[{os.getpid()}]", text)
