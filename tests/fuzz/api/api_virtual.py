"""Batches of requests against a whole cluster in virtual time: API server, controllers, scheduler and a kubelet.

Requests go through the HTTP handler, with bodies as bytes, but not through a socket. Nothing catches what a component
raises: an exception anywhere ends the batch and is the finding. After the inputs a quarter of an hour of virtual time
passes, and then a Pod has to live and to end.
"""

import asyncio
import signal
import time
from collections.abc import Sequence
from typing import Any, cast
from unittest.mock import Mock

from aiohttp.test_utils import make_mocked_request
from api_inputs import Input, setup
from api_outcome import Outcome, is_finding
from api_seeds import NAMESPACE
from virtual_cluster import VirtualCluster

from lastcall.kube.api.resources import PODS
from lastcall.kube.apiserver.auth.authentication import Authenticator, UserInfo
from lastcall.kube.apiserver.http import APIHandler
from lastcall.kube.client.api import Client
from lastcall.kube.cri.simulated import Program
from lastcall.kube.streaming.hosts import Hosts
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

ADMIN = UserInfo("kubernetes-admin", ("system:masters", "system:authenticated"))
PROGRAMS = {"app": Program(), "quick": Program(exits_after=0.1), "init": Program(exits_after=0.1)}
LIFE_SECONDS = 600.0
"""How long a Pod may take from its creation to its end, in virtual seconds."""
AFTERWARDS_SECONDS = 900.0
"""What passes after the inputs: sweeps, deadlines, back-offs and TTLs come due."""
SLOW_SECONDS = 3.0
"""An input that holds the loop longer, in seconds of the processor, is a finding."""
BATCH_SECONDS = 60.0
"""A batch that takes more, in seconds of the processor, stands still; where, is the finding."""


class StandsStillError(BaseException):
    """A batch took BATCH_SECONDS. Nothing on the way catches it."""


class _Body:
    """A request's body as the HTTP handler reads it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def is_eof(self) -> bool:
        return True

    async def iter_any(self) -> Any:
        if self._data:
            yield self._data


def _reader() -> Any:
    """Return a transport whose client takes everything at once."""
    transport = Mock()
    transport.get_write_buffer_size.return_value = 0
    transport.get_extra_info.return_value = None
    return transport


class _Handlers:
    """Stands before `Operations` and notes that a request came so far: its body was read."""

    def __init__(self, operations: Any, noted: list[str]) -> None:
        self._operations, self._noted = operations, noted

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._operations, name)
        if name in ("create", "update", "patch", "delete", "get", "get_bytes", "list"):
            self._noted.append(name)
        return found


class Target:
    """A cluster in virtual time that takes `Input`s."""

    def __init__(self, world: World, cluster: VirtualCluster) -> None:
        server = cast(Any, cluster.server)
        self._noted: list[str] = []
        authenticator = Authenticator({"token": ADMIN}, server.policy.authenticator._verify_token)
        handlers = _Handlers(server.operations, self._noted)
        hosts = Hosts(("localhost",))
        self._face = APIHandler(
            world, cast(Any, handlers), authenticator, server.serving.catalog, server.policy.issuer, hosts
        )

    async def send(self, each: Input, outcome: Outcome) -> int:
        """Send it; the status of the answer. 5xx, an exception and a long hold of the loop are findings."""
        headers = {
            "Host": "localhost",
            "Authorization": "Bearer token",
            "Accept": each.accept,
            "Content-Length": str(len(each.body)),
        }
        if each.content_type:
            headers["Content-Type"] = each.content_type
        payload = cast(Any, _Body(each.body))
        request = make_mocked_request(each.method, each.path, headers=headers, payload=payload, transport=_reader())
        self._noted.clear()
        began = time.thread_time()
        response = await self._face.handle(request)
        took = time.thread_time() - began
        outcome.sent[each.kind, each.encoding] += 1
        outcome.reached[each.kind, each.encoding] += bool(self._noted)
        outcome.statuses[response.status] += 1
        body = bytes(getattr(response, "body", None) or b"")  # a large one was sent in pieces
        if is_finding(response.status, body):
            outcome.answered(each, response.status, body)
        if took > SLOW_SECONDS:
            outcome.findings.append(f"{each.method} {each.path[:100]}: held the loop for {took:.1f} s")
        return response.status


async def _lives_and_ends(cluster: VirtualCluster, client: Client) -> None:
    """A Pod of a namespace that no input named runs, is deleted and is gone. Raises AssertionError."""
    spec = {
        "containers": [{"name": "app", "image": "app:1", "command": ["app"]}],
        "tolerations": [{"operator": "Exists"}],
    }
    manifest = {
        "metadata": {"name": "alive"},
        "spec": {**spec, "terminationGracePeriodSeconds": 1, "nodeName": "node-1"},
    }

    async def phase() -> str:
        found = (await client.list(PODS, "default", field_selector="metadata.name=alive")).items
        return str(found[0]["status"].get("phase")) if found else "gone"

    await client.create(PODS, manifest, "default")
    try:
        async with asyncio.timeout(LIFE_SECONDS):
            while await phase() != "Running":
                await cluster.sleep(1)
            await client.delete(PODS, "alive", "default")
            while await phase() != "gone":
                await cluster.sleep(1)
    except TimeoutError:
        raise AssertionError(f"a Pod did not live and end within {LIFE_SECONDS:g} s: it is {await phase()}") from None


def run_batch(inputs: Sequence[Input]) -> Outcome:
    """All inputs, a quarter of an hour of virtual time, and a Pod that lives and ends. What is raised is a finding."""
    outcome = Outcome()

    async def scenario(world: World) -> None:
        async with VirtualCluster(world, PROGRAMS, namespace=NAMESPACE) as cluster:
            target = Target(world, cluster)
            for each in (*setup(), *inputs):
                await target.send(each, outcome)
                await cluster.sleep(0.2)
            await cluster.sleep(AFTERWARDS_SECONDS)
            await _lives_and_ends(cluster, cluster.client)

    def stands_still(number: int, frame: Any) -> None:
        raise StandsStillError(f"the batch took {BATCH_SECONDS:g} s")

    before = signal.signal(signal.SIGPROF, stands_still)
    signal.setitimer(signal.ITIMER_PROF, BATCH_SECONDS)
    try:
        run_virtual(scenario)
    except BaseException as error:  # also what is no Exception: RecursionError's relatives, a cancelled cluster
        if isinstance(error, KeyboardInterrupt):
            raise
        outcome.findings.append("; ".join(_leaves(error)))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return outcome


def _leaves(error: BaseException) -> list[str]:
    """The exceptions of a group, each with the place where it was raised."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for each in error.exceptions for leaf in _leaves(each)]
    place, at = "", error.__traceback__
    while at is not None:
        code = at.tb_frame.f_code
        if "lastcall" in code.co_filename:
            place = f"{code.co_filename.rpartition('lastcall/')[2]}:{at.tb_lineno} {code.co_name}"
        at = at.tb_next
    return [f"{type(error).__name__} in {place}: {str(error)[:200]}"]
