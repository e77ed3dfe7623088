"""`trace` beside a real kube-apiserver: late attachment, watches that break off, history that is compacted, and what
Kubernetes 1.27 to 1.35 lack. The kubelet's part is written by hand."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from engines.api_server import RealAPIServer, needs, real_api_server
from engines.by_hand import PodByHand, manifest
from engines.older import Older, older
from engines.relay import Relay, relay

from lastcall.cli.terminal import note
from lastcall.contexts.connection import choose, connected
from lastcall.contexts.options import ContextOptions
from lastcall.endings.story import Ending
from lastcall.kube.api.resources import CONFIGMAPS
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.client.kubeconfig import render_kubeconfig
from lastcall.kube.store.etcd import messages
from lastcall.records import kinds
from lastcall.trace.follower import Follower, Options
from lastcall.trace.scope import Scope
from lastcall.world.tasks import Tasks

pytestmark = [pytest.mark.timeout(300), needs("etcd", "kube-apiserver", "kubectl")]

Act = Callable[[Follower], Awaitable[None]]
HERE = {"ready": True, "serving": True, "terminating": False}
LEAVING = {"ready": False, "serving": True, "terminating": True}


@asynccontextmanager
async def client_of(kubeconfig: str) -> AsyncIterator[HTTPClient]:
    async with connected(choose(ContextOptions(kubeconfig)), agent="test", warn=note) as cluster:
        yield cluster.client


async def traced(client: HTTPClient, act: Act) -> tuple[list[Ending], list[str]]:
    """(the stories, what was noted meanwhile) until one Pod has ended."""
    notes: list[str] = []
    follower = Follower(client, Scope("default"), options=Options(logs=False, count=1), on_note=notes.append)
    async with Tasks() as tasks:
        tasks.spawn(follower.run(), name="trace")
        await follower.synced()
        assert follower.failure is None
        await act(follower)
        told = [ending async for ending in follower.endings()]
        tasks.cancel()
    return told, notes


def steps(ending: Ending) -> list[str]:
    wanted = (
        kinds.DELETE_ACCEPTED, kinds.KILLING, kinds.PRE_STOP_STARTED, kinds.PRE_STOP_FINISHED, kinds.STOP_REQUESTED,
        kinds.SIGNAL_SENT, kinds.ENDPOINT_CHANGED, kinds.ENDPOINT_REMOVED, kinds.PROCESS_EXITED, kinds.OBJECT_REMOVED,
    )  # fmt: skip
    return [str(e.record.kind) for e in ending.entries if e.record.kind in wanted and e.at >= 0]


async def whole_end(pod: PodByHand, code: int = 0) -> None:
    await pod.delete()
    await pod.endpoint(**LEAVING)
    await pod.killing()
    await asyncio.sleep(1.2)  # how long the Pod takes to end
    await pod.endpoint()
    await pod.end(code)


def test_a_pod_that_was_ending_already_is_told_from_its_object_and_its_events(real: RealAPIServer) -> None:
    async def scenario() -> Ending:
        async with client_of(real.kubeconfig) as client:
            pod = PodByHand(client, manifest("late"))
            await pod.begin()
            await pod.delete()
            await pod.killing()
            await asyncio.sleep(4)  # the follower comes late

            async def act(_: Follower) -> None:
                await pod.end()

            return (await traced(client, act))[0][0]

    ending = asyncio.run(scenario())
    accepted = next(e.record for e in ending.entries if e.record.kind == kinds.DELETE_ACCEPTED)
    assert accepted.evidence == "inferred"
    assert ending.grace_seconds == 10
    said = re.compile(r"It was followed from about [4-9] s after the DELETE on")  # longer on a busy machine
    assert any(said.match(each) for each in ending.not_known), ending.not_known
    assert steps(ending) == [
        "DeleteAccepted",
        "Killing",
        "StopRequested",
        "SignalSent",
        "ProcessExited",
        "ObjectRemoved",
    ]
    assert ending.containers[0].stop.signal_at == pytest.approx(0, abs=1.5)
    assert ending.gone == pytest.approx(6, abs=4)


@pytest.fixture
def relayed(real: RealAPIServer) -> Iterator[tuple[Relay, str]]:
    """Our connection to the API server, which can be cut, and a kubeconfig that uses it."""
    with relay(real.port) as made:
        cert, key = real.issue("relayed", "system:masters")
        text = render_kubeconfig(
            "relayed", f"https://127.0.0.1:{made.port}", real.ca.certificate_pem, cert_pem=cert, key_pem=key
        )
        path = real.folder / "relayed.kubeconfig"
        path.write_text(text)
        path.chmod(0o600)
        yield made, str(path)


def test_what_happens_while_the_connection_is_cut_comes_late_and_is_said_to(real, relayed) -> None:
    cut, kubeconfig = relayed

    async def scenario() -> tuple[list[Ending], list[str]]:
        async with client_of(real.kubeconfig) as admin, client_of(kubeconfig) as client:
            pod = PodByHand(admin, manifest("cut"))
            await pod.begin()

            async def act(_: Follower) -> None:
                await pod.delete()
                await asyncio.sleep(0.5)  # the DELETE is seen before the connection breaks
                cut.down()
                await pod.killing()
                await asyncio.sleep(1.5)  # how long the connection is gone
                cut.up()
                await asyncio.sleep(4)  # longer than the client waits between two tries
                await pod.end(3)

            return await traced(client, act)

    (ending,), notes = asyncio.run(scenario())
    late = [each for each in ending.not_known if "shows what happened then too late" in each]
    assert any("no news of pods arrived" in each for each in late), ending.not_known
    assert any("no news of pods arrived" in each for each in notes), notes
    assert ending.outcome == "graceful" and ending.containers[0].exit.code == 3, "nothing of it was lost"


def test_a_pod_that_goes_while_the_history_is_compacted_is_said_not_to_have_been_seen(tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("compacted")
    with real_api_server(folder, flags=("--watch-cache=false",)) as server, relay(server.port) as cut:
        cert, key = server.issue("relayed", "system:masters")
        text = render_kubeconfig(
            "relayed", f"https://127.0.0.1:{cut.port}", server.ca.certificate_pem, cert_pem=cert, key_pem=key
        )
        path = folder / "relayed.kubeconfig"
        path.write_text(text)
        path.chmod(0o600)

        async def scenario() -> tuple[list[Ending], list[str]]:
            async with client_of(server.kubeconfig) as admin, client_of(str(path)) as client:
                ending, living = PodByHand(admin, manifest("ending")), PodByHand(admin, manifest("living"))
                await ending.begin()
                await living.begin()

                async def act(_: Follower) -> None:
                    await ending.delete()
                    await asyncio.sleep(0.5)  # the DELETE is seen before the connection breaks
                    cut.down()
                    await living.delete()
                    for pod in (living, ending):
                        await pod.end()
                    last = await admin.create(CONFIGMAPS, {"metadata": {"name": "last"}}, "default")
                    await asyncio.to_thread(compact, server, str(last["metadata"]["resourceVersion"]))
                    cut.up()

                return await traced(client, act)

        (told,), notes = asyncio.run(scenario())
    assert told.outcome == "unknown"
    assert "It went while the watch was interrupted: how its end went on was not seen." in told.not_known
    assert any("the pods were not watched (the API server no longer had the history)" in each for each in notes), notes
    assert any("default/living disappeared while the watch was interrupted" in each for each in notes), notes


def compact(server: RealAPIServer, revision: str) -> None:
    """What the API server does every five minutes."""
    write, read = messages.serializers(messages.COMPACT)
    with grpc.insecure_channel(server.etcd.removeprefix("http://")) as channel:
        call = channel.unary_unary(messages.COMPACT, request_serializer=write, response_deserializer=read)
        call(messages.CompactionRequest(revision=int(revision), physical=True), timeout=60)


@pytest.fixture(scope="module")
def token(real: RealAPIServer) -> str:
    real.kubectl("create", "serviceaccount", "trace")
    real.kubectl(
        "create", "clusterrolebinding", "trace", "--clusterrole=cluster-admin", "--serviceaccount=default:trace"
    )
    return real.kubectl("create", "token", "trace").strip()


@pytest.fixture(params=[27, 29, 30, 34, 36], ids=lambda minor: f"1.{minor}")
def server(request: pytest.FixtureRequest, real: RealAPIServer) -> Iterator[Older]:
    with older(real, request.param) as made:
        yield made


def test_an_end_has_the_same_steps_on_older_versions(server: Older, token: str) -> None:
    async def scenario() -> Ending:
        async with client_of(server.kubeconfig(token)) as client:
            pod = PodByHand(client, manifest(f"old-{server.minor}"))
            await pod.begin()
            await pod.endpoint(**HERE)

            async def act(_: Follower) -> None:
                await whole_end(pod)

            return (await traced(client, act))[0][0]

    ending = asyncio.run(scenario())
    assert ending.outcome == "graceful"
    told = steps(ending)
    # Slices and Events come by watches of their own, on a busy machine one later than the other.
    assert [each for each in told if not each.startswith("Endpoint")] == [
        "DeleteAccepted", "Killing", "StopRequested", "SignalSent", "ProcessExited", "ObjectRemoved"
    ]  # fmt: skip
    assert [each for each in told if each.startswith("Endpoint")] == ["EndpointChanged", "EndpointRemoved"]
    assert [(e.ready, e.serving, e.terminating) for e in ending.endpoints if e.at >= 0] == [
        (False, True, True),
        (None, None, None),
    ]


def test_the_length_of_a_hook_that_an_older_version_has_not_is_unknown(real: RealAPIServer, token: str) -> None:
    """`sleep` came with 1.30: before it the field is dropped, so that there is no such hook to tell of."""
    hook: dict[str, Any] = {"lifecycle": {"preStop": {"exec": {"command": ["drain"]}}}}

    async def scenario(made: Older, container: dict[str, Any], name: str) -> Ending:
        async with client_of(made.kubeconfig(token)) as client:
            pod = PodByHand(client, manifest(name, container=container))
            await pod.begin()

            async def act(_: Follower) -> None:
                await pod.delete()
                await pod.killing()
                await asyncio.sleep(1.2)  # how long the Pod takes to end
                await pod.end()

            return (await traced(client, act))[0][0]

    sleep: dict[str, Any] = {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}
    with older(real, 29) as without, older(real, 30) as having:
        bare = asyncio.run(scenario(without, sleep, "sleep-29"))
        slept = asyncio.run(scenario(having, sleep, "sleep-30"))
        ran = asyncio.run(scenario(without, hook, "exec-29"))
    assert bare.containers[0].hook is None
    assert slept.containers[0].hook is not None and slept.containers[0].hook.outcome == "succeeded"
    assert "How the preStop hook of app ended is not known, nor when its stop signal came." in ran.not_known
