"""`main(SOCKET, [INSTANCE])` in a Python of its own: ask a runtime before and after.

Without INSTANCE it prints what the runtime is, as JSON, and removes what clusters left there that have ended; with
INSTANCE it removes all that is this cluster's. A process of its own: front forks its roles, and gRPC has threads.
"""

# check: prints because front reads both streams

import asyncio
import json
import sys
from collections.abc import Iterable

from lastcall.kube.cluster.runtime.other import place
from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.v1.messages import new
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection
from lastcall.kube.cri.v1.remote.runtime import CLUSTER_LABEL
from lastcall.world.tasks import gather

ANSWER_SECONDS = 10.0
STOP_SECONDS = 60.0


def why_unusable(error: RuntimeServiceError) -> str:
    """Return why a runtime that listens cannot be used, with the fix."""
    text = str(error)
    if error.reason == "Unimplemented":
        return (
            f"does not serve CRI v1 ({text}); fix: switch on its CRI plugin (containerd: remove cri from "
            "disabled_plugins), or name a runtime that serves CRI v1"
        )
    if error.reason == "DeadlineExceeded" or "before receiving SETTINGS frame" in text:
        return f"has not answered within {ANSWER_SECONDS:.0f} s; fix: start the runtime again"
    if text.startswith("rpc error: code = Unavailable"):
        return f"does not speak gRPC, or hung up ({text}); fix: start the runtime again, or name one that serves CRI v1"
    return f"{text}; fix: see the log of the runtime"


async def sandboxes(connection: RuntimeConnection) -> dict[str, str]:
    """Return id → instance of the cluster, of all sandboxes that belong to a cluster."""
    answer = await connection.runtime("ListPodSandbox", new("ListPodSandboxRequest"), ANSWER_SECONDS)
    return {each.id: each.labels[CLUSTER_LABEL] for each in answer.items if CLUSTER_LABEL in each.labels}


async def remove(connection: RuntimeConnection, ids: Iterable[str]) -> None:
    """Remove sandboxes. Raises RuntimeServiceError for the first that is still there."""
    for result in await gather(_remove(connection, each) for each in ids):
        if isinstance(result, Exception):
            raise result


async def _remove(connection: RuntimeConnection, identity: str) -> None:
    for verb in ("StopPodSandbox", "RemovePodSandbox"):
        try:
            await connection.runtime(verb, new(f"{verb}Request", pod_sandbox_id=identity), STOP_SECONDS)
        except RuntimeServiceError as error:
            if error.reason != "NotFound":
                raise


async def begin(socket: str) -> dict[str, str]:
    """Remove what dead clusters left, and return what the runtime says of itself. Raises RuntimeServiceError."""
    connection = RuntimeConnection(socket)
    try:
        version = await connection.runtime("Version", new("VersionRequest"), ANSWER_SECONDS)
        there = await sandboxes(connection)
        dead = {each for each in {*there.values(), *place.instances()} if not place.lives(each)}
        await remove(connection, [identity for identity, instance in there.items() if instance in dead])
        for instance in dead:
            place.remove(instance)
        return {"name": version.runtime_name, "version": version.runtime_version}
    finally:
        await connection.close()


async def end(socket: str, instance: str) -> None:
    """Remove the sandboxes of a cluster. Raises RuntimeServiceError."""
    connection = RuntimeConnection(socket)
    try:
        there = await sandboxes(connection)
        await remove(connection, [identity for identity, each in there.items() if each == instance])
    finally:
        await connection.close()


def main(socket: str, instance: str = "") -> int:
    """Run what the module describes. Return the exit status: 1 if the runtime does not do it; stderr says why."""
    try:
        if instance:
            asyncio.run(end(socket, instance))
        else:
            sys.stdout.write(json.dumps(asyncio.run(begin(socket))))
    except RuntimeServiceError as error:
        sys.stderr.write(f"{why_unusable(error)}\n")
        return 1
    return 0
