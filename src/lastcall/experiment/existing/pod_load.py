"""Drive a load generator in a Pod of an existing cluster through the API server (`pods/proxy`).

Its clock is another machine's. It is looked at from before the first request to after the last one, and its times are
converted to ours, wrong by at most `offset.error`.
"""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict, field, replace
from typing import Any

import orjson

from lastcall.contexts import NotOneOffset, Offset, Sample, offset_of, widest_offset
from lastcall.endings import hopeless_reason
from lastcall.errors import WorldError
from lastcall.experiment.existing.changes import Changes
from lastcall.experiment.existing.connection import Reached
from lastcall.experiment.reasons.object_events import events_of, runtime_of
from lastcall.experiment.reasons.why_not_ready import is_ready, why_not_ready
from lastcall.kube.api import PODS, Object, StatusError
from lastcall.kube.client import ConnectionLost
from lastcall.traffic import Load, Outcome
from lastcall.world.clock import Clock, monotonic
from lastcall.world.dataclass import dataclass

NAME = "lastcall-load"
PORT = 8099
LOOK_SECONDS = 0.25
PATIENCE_SECONDS = 60.0
"""How long the API server may be away."""
JITTER_SECONDS = 2.0
"""A clock that is further off at times was set, and does not only jump."""
_FEW = 5
"""Looks at the clock before the load starts, and after it."""

_BUILD = (
    "lastcall image build-agent -o agent.tar makes {image}; load it into the nodes, or push it and name it (--image)"
)

Ask = Callable[[str, str], Awaitable[bytes]]
"""Method and path below the Pod's port. Raises StatusError, ConnectionLost."""


def generator_pod(image: str, load: Load, token: str) -> Object:
    """Build the Pod that sends the load: no permissions, no files, an ordinary user."""
    container = {
        "name": "load",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-m", "lastcall.traffic.served", str(PORT)],
        "env": [
            {"name": "LASTCALL_LOAD", "value": orjson.dumps(asdict(load)).decode()},
            {"name": "LASTCALL_TOKEN", "value": token},
        ],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": PORT}, "periodSeconds": 1},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": NAME, "labels": {"app.kubernetes.io/name": NAME}},
        "spec": {
            "containers": [container],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65534,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        },
    }


def new_token() -> str:
    """Create a secret of this process and its Pod: others in the cluster can connect to the Pod's port, too."""
    return secrets.token_urlsafe(24)


async def start_in_pod(
    cluster: Reached, changes: Changes, clock: Clock, image: str, load: Load, timeout: float
) -> "PodLoad":
    """Create a generator, and return it when its Pod is Ready. It sends nothing yet.

    Raises UserError, WorldError, StatusError.
    """
    token = new_token()
    pod = generator_pod(image, load, token)
    pod["metadata"]["name"] = name = f"{NAME}-{changes.world.new_uid()[:8]}"
    await changes.create(PODS, pod)
    deadline = monotonic(clock) + timeout
    while not is_ready(there := await changes.client.get(PODS, name, changes.namespace)):
        hopeless = hopeless_reason(there)
        if hopeless or monotonic(clock) > deadline:
            events, runtime = await events_of(changes.client, there), await runtime_of(changes.client, there)
            lines = why_not_ready(there, events, runtime)
            lines.append(f"fix: {_BUILD.format(image=image)}, or send from this machine: --from client")
            raise WorldError("\n".join(["the load generator's Pod is not Ready", *lines]))
        await clock.sleep(LOOK_SECONDS)

    async def ask(method: str, path: str) -> bytes:
        below = f"/api/v1/namespaces/{changes.namespace}/pods/{name}:{PORT}/proxy/{token}/{path}"
        return await cluster.client.request(method, below)

    return PodLoad(ask, clock)


@dataclass(slots=True)
class PodLoad:
    """As `lastcall.traffic.process.LoadClient`: `start`, follow `outcomes`, which end after `stop`."""

    ask: Ask
    clock: Clock
    begun: int | None = None
    samples: list[Sample] = field(default_factory=list)
    _stopped: bool = False
    _stop_requested: bool = False

    async def start(self) -> None:
        """Start to send. Raises WorldError."""
        for _ in range(_FEW):
            await self._look_at_clock()
        await self._patiently("POST", "start")

    def stop(self) -> None:
        """Send no more; answers under way are waited for."""
        self._stopped = True

    @property
    def offset(self) -> Offset:
        """Return the offset of its clock to ours.

        One that jumps a little has an error so large that it covers that; raises WorldError for one that was set.
        """
        try:
            return offset_of(self.samples)
        except NotOneOffset as error:
            jumping = widest_offset(self.samples)
            if jumping.error <= JITTER_SECONDS:
                return jumping
            raise WorldError(f"the load generator's clock: {error}: its times cannot be used") from error

    async def outcomes(self) -> AsyncIterator[Outcome]:
        """Yield every outcome, in times of our clock, by the samples taken until then. Raises WorldError."""
        known = 0
        while True:
            if self._stopped and not self._stop_requested:
                await self._patiently("POST", "stop")
                self._stop_requested = True
            answer: dict[str, Any] = orjson.loads(await self._patiently("GET", f"outcomes/{known}"))
            await self._look_at_clock()
            offset = self.offset
            for values in answer["outcomes"]:
                yield by_our_clock(Outcome.from_wire(values), offset)
            known += len(answer["outcomes"])
            if answer["done"]:
                self.begun = answer["begun"]
                return
            if not answer["outcomes"] or len(answer["outcomes"]) < 1000:
                await self.clock.sleep(LOOK_SECONDS)

    async def _look_at_clock(self) -> None:
        sent = monotonic(self.clock)
        try:
            answer = orjson.loads(await self.ask("GET", "clock"))
        except (StatusError, ConnectionLost):
            return  # one look less; without any there is no offset
        self.samples.append(Sample(sent, float(answer["now"]), monotonic(self.clock)))

    async def _patiently(self, method: str, path: str) -> bytes:
        deadline = monotonic(self.clock) + PATIENCE_SECONDS
        while True:
            try:
                return await self.ask(method, path)
            except (StatusError, ConnectionLost) as error:
                if isinstance(error, StatusError) and error.code == 403:
                    raise
                if monotonic(self.clock) > deadline:
                    raise WorldError(f"the load generator's Pod does not answer: {error}") from error
            await self.clock.sleep(LOOK_SECONDS)


def by_our_clock(outcome: Outcome, offset: Offset) -> Outcome:
    """Return an outcome with its times by our clock."""
    return replace(
        outcome,
        planned=offset.to_ours(outcome.planned),
        sent=offset.to_ours(outcome.sent),
        finished=offset.to_ours(outcome.finished),
    )
