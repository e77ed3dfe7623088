"""`python -I -m lastcall.kube.cluster.runtime.other.sweep SOCKET [INSTANCE]`: ask a runtime before and after.

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


async def sandboxes(connection: RuntimeConnection) -> dict[str, str]:
    """Id → instance of the cluster, of all sandboxes that are a cluster's."""
    answer = await connection.runtime("ListPodSandbox", new("ListPodSandboxRequest"), ANSWER_SECONDS)
    return {each.id: each.labels[CLUSTER_LABEL] for each in answer.items if CLUSTER_LABEL in each.labels}


async def remove(connection: RuntimeConnection, ids: Iterable[str]) -> None:
    """Raises RuntimeServiceError for the first that is still there."""
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
    """Raises RuntimeServiceError."""
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
    """Raises RuntimeServiceError."""
    connection = RuntimeConnection(socket)
    try:
        there = await sandboxes(connection)
        await remove(connection, [identity for identity, each in there.items() if each == instance])
    finally:
        await connection.close()


def main(socket: str, instance: str = "") -> int:
    """Return the exit status: 1 when the runtime does not do it; stderr says why."""
    try:
        if instance:
            asyncio.run(end(socket, instance))
        else:
            sys.stdout.write(json.dumps(asyncio.run(begin(socket))))
    except RuntimeServiceError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
