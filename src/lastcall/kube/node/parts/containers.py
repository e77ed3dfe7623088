"""What starts and stops containers: the runtime manager, images, hooks, killers."""

from __future__ import annotations

from lastcall.kube.api.features.gates import TCP_SOCKET_LIFECYCLE_HOOK
from lastcall.kube.node.image_manager import PodImageManager
from lastcall.kube.node.logs.files import LogLinks
from lastcall.kube.node.parts.common import Common
from lastcall.kube.node.parts.status import PodReports
from lastcall.kube.node.parts.work import PodWork
from lastcall.kube.node.pods.user_namespaces import UserNamespaces
from lastcall.kube.node.runtime.backoff import Backoff
from lastcall.kube.node.runtime.classes import runtime_handlers
from lastcall.kube.node.runtime.container_config import generate_pod_sandbox_config
from lastcall.kube.node.runtime.container_configs import ContainerConfigs
from lastcall.kube.node.runtime.manager import RuntimeManager
from lastcall.kube.node.runtime.notices import RuntimeNotices
from lastcall.kube.node.runtime.start_container import ContainerStarter
from lastcall.kube.node.runtime.state import RuntimeState
from lastcall.kube.node.stopping.hooks import HandlerRunner
from lastcall.kube.node.stopping.kill_container import ContainerKiller
from lastcall.kube.node.stopping.kill_pod import PodKiller
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Containers:
    """`configs` has what containers are made of (ConfigMaps, Secrets, Services), `state` what the runtime can do."""

    configs: ContainerConfigs
    starter: ContainerStarter
    manager: RuntimeManager
    killer: ContainerKiller
    pod_killer: PodKiller
    notices: RuntimeNotices
    state: RuntimeState
    users: UserNamespaces
    backoff: Backoff
    log_links: LogLinks


def make_containers(common: Common, work: PodWork, reports: PodReports) -> Containers:
    """Make what starts and stops the containers of Pods."""
    given, config, runtime = common.given, common.given.config, common.runtime
    hooks, killer, pod_killer = _stopping(common)
    configs = ContainerConfigs(
        world=given.world,
        client=given.client,
        config=config,
        volumes=given.volumes,
        pleg=work.pleg,
        gates=common.gates,
    )
    notices, state = RuntimeNotices(runtime, common.events), RuntimeState(given.world, runtime)
    users = UserNamespaces(
        config.user_ids, common.events, lambda: state.no_user_namespaces, given.volumes.owners_can_be_mapped
    )
    backoff, log_links = Backoff(), LogLinks(config.container_log_links)
    starter = _starter(common, configs, hooks, killer, log_links)
    manager = RuntimeManager(
        world=given.world,
        runtime=runtime,
        starter=starter,
        pod_killer=pod_killer,
        container_killer=killer,
        probes=reports.probes,
        reasons=reports.reasons,
        backoff=backoff,
        make_sandbox_config=lambda pod, attempt: generate_pod_sandbox_config(
            pod,
            attempt,
            hostname=given.volumes.hostname(pod),
            dns_config=given.volumes.dns_config(pod),
            pod_log_root=config.pod_log_root,
            pod_pids_limit=config.pod_pids_limit,
            users=users.options(pod),
        ),
        runtime_handler_of=runtime_handlers(given.client),
        is_termination_requested=work.workers.is_pod_termination_requested,
        on_pod_sandbox_ready=reports.statuses.set_pod_sandbox_ready,
        notices=notices,
        events=common.events,
        recorder=given.recorder,
    )
    return Containers(configs, starter, manager, killer, pod_killer, notices, state, users, backoff, log_links)


def _stopping(common: Common) -> tuple[HandlerRunner, ContainerKiller, PodKiller]:
    given, runtime, behaviour = common.given, common.runtime, common.behaviour
    hooks = HandlerRunner(
        clock=given.world.clock,
        runtime=runtime,
        dialer=given.dialer,
        events=common.events,
        behaviour=behaviour,
        tcp_socket_connects=common.gates.enabled(TCP_SOCKET_LIFECYCLE_HOOK),
    )
    killer = ContainerKiller(
        world=given.world,
        runtime=runtime,
        hooks=hooks,
        events=common.events,
        recorder=given.recorder,
        behaviour=behaviour,
        hook_tasks=common.tasks,
    )
    pod_killer = PodKiller(
        world=given.world,
        runtime=runtime,
        container_killer=killer,
        recorder=given.recorder,
        behaviour=behaviour,
    )
    return hooks, killer, pod_killer


def _starter(
    common: Common, configs: ContainerConfigs, hooks: HandlerRunner, killer: ContainerKiller, log_links: LogLinks
) -> ContainerStarter:
    given = common.given
    images = PodImageManager(
        world=given.world,
        images=given.images,
        events=common.events,
        recorder=given.recorder,
        features=common.behaviour,
        pull_secrets=configs.sources.secret,
    )
    return ContainerStarter(
        world=given.world,
        runtime=common.runtime,
        images=images,
        make_config=configs.make,
        hooks=hooks,
        killer=killer,
        events=common.events,
        recorder=given.recorder,
        behaviour=common.behaviour,
        log_links=log_links,
        reported_restarts=common.calls.reported_restarts,
    )
