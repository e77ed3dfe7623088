"""The runtime as the node's process has it."""

import os
import socket

from lastcall.kube.cluster.egress.pair import EgressClient
from lastcall.kube.cluster.layout import STATE_DIR
from lastcall.kube.cluster.runtime.other.runtime import OtherRuntime
from lastcall.kube.cri.sandbox.images.way_out import DialError
from lastcall.kube.cri.v1.remote.connection import RuntimeConnection
from lastcall.kube.cri.v1.remote.ends import EndsFromStatus
from lastcall.kube.cri.v1.remote.images import RemoteImages
from lastcall.kube.cri.v1.remote.paths import Paths
from lastcall.kube.cri.v1.remote.runtime import RemoteRuntime
from lastcall.kube.cri.v1.remote.witness import Witness
from lastcall.kube.cri.v1.witness.messages import SOCKET
from lastcall.records.record import Recorder
from lastcall.world.world import World


def open_runtime(
    world: World, other: OtherRuntime, state: str, way_out: EgressClient, recorder: Recorder
) -> tuple[RemoteRuntime, RemoteImages]:
    """Open the runtime without asking it yet. Streams are at ports of its loopback, which front dials."""

    async def dial(host: str, port: int) -> socket.socket:
        try:
            return await way_out.dial(host, port, tls=False)
        except DialError as error:
            raise OSError(str(error)) from None

    connection = RuntimeConnection(other.path)
    runtime = RemoteRuntime(
        world,
        connection,
        cluster=other.place.instance,
        paths=Paths(other.paths(state)),
        dial=dial,
        watcher=EndsFromStatus(recorder, world.clock, Witness(f"{STATE_DIR}/{SOCKET}", world.clock)),
        unified=os.path.exists("/sys/fs/cgroup/cgroup.controllers"),
    )
    return runtime, RemoteImages(connection, recorder, world.clock)
