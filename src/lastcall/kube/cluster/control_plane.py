"""The control plane's role: API server, controllers and scheduler on one event loop."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

import uvloop

from lastcall.kube.api.features.gates import feature_gates
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.tls import client_context, server_context
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FrontProxy
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletClient
from lastcall.kube.cluster.health.guards import install_guards
from lastcall.kube.cluster.health.heartbeat import Heartbeat
from lastcall.kube.cluster.local_path import HostDirectories
from lastcall.kube.cluster.options import API_ENDPOINT, DURABLE_DIR, KUBERNETES_SERVICE_IP, SERVICE_CIDR, STORE_BYTES
from lastcall.kube.cluster.plan import Plan
from lastcall.kube.cluster.staying.credentials import Credentials
from lastcall.kube.controllers.manager import NAMES, run_controllers
from lastcall.kube.controllers.volumes.storage_class import STANDARD_CLASS
from lastcall.kube.scheduler.scheduler import run_scheduler
from lastcall.kube.store.api import Store
from lastcall.kube.store.memory import MemoryStore
from lastcall.records.record_json import encode_record
from lastcall.records.ring import RingRecorder
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.heap import give_back_free_heap
from lastcall.world.huge_pages import keep_in_huge_pages
from lastcall.world.listeners import allow_most_connections
from lastcall.world.start_code import AFTER_SECONDS, give_back_start_code
from lastcall.world.tasks import Background, Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.store.etcd.options import EtcdOptions

ADMIN = UserInfo("kubernetes-admin", ("system:masters", "system:authenticated"))
CONTROLLERS = UserInfo("system:kube-controller-manager", ("system:masters", "system:authenticated"))
SCHEDULER = UserInfo("system:kube-scheduler", ("system:masters", "system:authenticated"))


def main(plan: Plan) -> None:
    """Run until killed."""
    allow_most_connections()
    uvloop.run(_run(plan))


async def _run(plan: Plan) -> None:
    world = World()
    heart = plan.hearts["control-plane"]
    heart.start(asyncio.get_running_loop())
    credentials = plan.credentials
    recorder = RingRecorder(plan.rings["control-plane"], "apiserver", world.clock, encode_record)
    install_guards("control-plane", recorder)
    kubelets = KubeletClient(
        client_context(
            credentials.ca_certificate, credentials.api_server_client.certificate, credentials.api_server_client.key
        )
    )
    async with _way_to_the_store(plan) as etcd:
        await _serve(plan, world, heart, recorder, kubelets, await _open_store(plan, world, etcd))


async def _serve(
    plan: Plan, world: World, heart: Heartbeat, recorder: RingRecorder, kubelets: KubeletClient, store: Store
) -> None:
    credentials = plan.credentials
    server = _api_server(plan, world, recorder, kubelets, store)
    await server.bootstrap()
    heart.as_usual()
    context = server_context(
        credentials.api_server.certificate, credentials.api_server.key, client_ca=credentials.ca_certificate
    )
    sockets = [plan.api_socket, *plan.inside_sockets]
    batch = plan.options.propagation.of("controller")
    async with Tasks() as tasks:
        tasks.spawn(server.serve(sockets, context), name="apiserver")
        tasks.spawn(crash_guard.guarded("control-plane", "settle", _settle(world, server)), name="apiserver tokens")
        tasks.spawn(crash_guard.guarded("control-plane", "huge pages", keep_in_huge_pages(world)), name="huge pages")
        tasks.spawn(crash_guard.guarded("control-plane", "free heap", give_back_free_heap(world)), name="free heap")
        gates = feature_gates(plan.options.kubernetes_version, plan.options.feature_gates)
        # The provisioner stays here, beside their directories, also when all controllers are elsewhere.
        controllers = partial(
            run_controllers,
            world=world,
            client=server.client(CONTROLLERS, "kube-controller-manager"),
            recorder_for=recorder.for_actor,
            root_ca_pem=credentials.ca_certificate,
            names=NAMES if plan.options.controllers else (),
            endpoint_updates_batch_period=lambda: batch.seconds(world.random, monotonic(world.clock)),
            volume_directories=HostDirectories(),
            sign=partial(_sign, credentials),
            openapi=server.openapi_document,
            fetch=server.fetch,
            gates=gates,
        )
        scheduler = partial(
            run_scheduler,
            world=world,
            client=server.client(SCHEDULER, "kube-scheduler"),
            recorder=recorder.for_actor("scheduler"),
            minor=gates.minor,
        )
        alone = heart.serves_alone
        named = server.running if plan.options.controllers else set()
        tasks.spawn(_after(world, alone, controllers, named, "controller-manager"), name="controllers")
        if plan.options.scheduler:
            tasks.spawn(_after(world, alone, scheduler, server.running, "scheduler"), name="scheduler")


def _api_server(plan: Plan, world: World, recorder: RingRecorder, kubelets: KubeletClient, store: Store) -> APIServer:
    credentials = plan.credentials
    return APIServer(
        world=world,
        store=store,
        recorder=recorder,
        config=APIServerConfig(
            kubernetes_version=plan.options.kubernetes_version,
            service_cidr=SERVICE_CIDR,
            kubernetes_service_ip=KUBERNETES_SERVICE_IP,
            endpoint=API_ENDPOINT,
            service_account_key_pem=plan.options.service_account_key or credentials.service_account_key,
            root_ca_pem=credentials.ca_certificate,
            tokens={credentials.admin_token: ADMIN},
            feature_gates=plan.options.feature_gates,
            storage_classes=(STANDARD_CLASS,),
            audit=plan.options.audit,
            components=store.shared or not (plan.options.controllers and plan.options.scheduler),
            front_proxy=FrontProxy(
                credentials.front_proxy_ca_certificate, credentials.front_proxy.certificate, credentials.front_proxy.key
            ),
        ),
        kubelet_logs=kubelets,
        kubelet_streams=kubelets,
        ask_kubelet=kubelets.ask,
    )


def _sign(credentials: Credentials, request_pem: bytes, usages: Sequence[str], valid_for: timedelta) -> bytes:
    # late: cryptography takes 60 ms and 12 MB
    from lastcall.kube.apiserver.auth.pki import ClusterCA

    return ClusterCA.load(credentials.ca_certificate, credentials.ca_key).sign_request(request_pem, usages, valid_for)


async def _after(
    world: World, seconds: float, run: Callable[[], Awaitable[None]], running: set[str], name: str
) -> None:
    """`run`, at once unless they were the end of this process again and again; `name` is in `running` meanwhile."""
    if seconds:
        await world.clock.sleep(seconds)
    running.add(name)
    try:
        await run()
    finally:
        running.discard(name)


async def _settle(world: World, server: APIServer) -> None:
    """What the start did not wait for."""
    await server.prepare_tokens()
    await world.clock.sleep(AFTER_SECONDS)
    give_back_start_code()


@asynccontextmanager
async def _way_to_the_store(plan: Plan) -> "AsyncIterator[EtcdOptions | None]":
    """How to reach the etcd outside, as long as the block runs; None if no etcd is outside."""
    if plan.options.etcd is None or plan.store_way is None:
        yield None
        return
    # late: few have an etcd
    from lastcall.kube.cluster.egress.etcd import EtcdWay

    os.makedirs(DURABLE_DIR, 0o700, exist_ok=True)
    way = EtcdWay(plan.options.etcd, plan.store_way[1], DURABLE_DIR)
    running = Background(way.run(), name="way to etcd")
    try:
        yield way.options
    finally:
        await running.end()


async def _open_store(plan: Plan, world: World, etcd: "EtcdOptions | None") -> Store:
    """Raises StoreError for a store that a newer lastcall wrote, and for one out of reach."""
    if plan.options.store == "memory":
        return MemoryStore()
    if etcd is not None:
        # late: few have an etcd
        from lastcall.kube.store.etcd.open import open_etcd

        return await open_etcd(etcd, world=world)
    # late: 4.3 ms of the control plane's start
    from lastcall.kube.store.open import open_store

    os.makedirs(DURABLE_DIR, 0o700, exist_ok=True)
    # On a tmpfs of its own nobody else takes the store's room; there a reserve of blocks would be memory.
    reserve = plan.options.state != ""
    return await open_store(f"{DURABLE_DIR}/store.sqlite", world=world, most_bytes=STORE_BYTES, reserve=reserve)
