"""Stop one container: its preStop hook, its turn, CRI StopContainer (kubelet kuberuntime/kuberuntime_container.go)."""

# check: observes because it ran the hook and stopped the container

from __future__ import annotations

import asyncio
import logging
import math
from dataclasses import field
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.pods.handlers import handler_detail, handler_name
from lastcall.kube.cri.api import ContainerStatus, PodSandboxState, RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.kube.node.pods.spec import container_field_path, find_container
from lastcall.kube.node.runtime_deadlines import RUNTIME_REQUEST_TIMEOUT
from lastcall.kube.node.stopping import grace
from lastcall.kube.node.stopping.grace import KillReason
from lastcall.kube.node.stopping.hooks import HandlerRunner, HookError, HookResult, shown_output
from lastcall.kube.node.stopping.listener_watch import ListenerWatch
from lastcall.kube.node.stopping.order import TerminationOrdering
from lastcall.kube.node.stopping.waiting import wait_at_most
from lastcall.kube.node.versions import Behaviour
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, LifecycleHandler
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.kubelet_end import (
        Killing,
        ListenerClosedInHook,
        PreStopFinished,
        PreStopSkipped,
        PreStopStarted,
        StopFinished,
        StopRequested,
    )
    from lastcall.records.record import Facts, Kind


log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Hook:
    """One run of a preStop hook. `outlived` is set when its budget is over and it still runs."""

    task: asyncio.Task[None] | None = None
    outlived: bool = False
    record_id: str = ""
    facts: dict[str, object] = field(default_factory=dict)


class ContainerKiller:
    """`hook_tasks` owns the hooks: one that outlives its budget goes on until it ends or the kubelet does."""

    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        hooks: HandlerRunner,
        events: EventRecorder,
        recorder: Recorder,
        behaviour: Behaviour,
        hook_tasks: Tasks,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._hooks = hooks
        self._events = events
        self._recorder = recorder
        self._behaviour = behaviour
        self._hook_tasks = hook_tasks
        self._running_hooks: dict[str, _Hook] = {}
        """By container id. A stop that failed is tried again while the hook that outlived its budget still runs."""

    async def kill_container(
        self,
        pod: Pod,
        container: ContainerStatus,
        *,
        message: str = "",
        reason: KillReason | None = None,
        override: int | None = None,
        ordering: TerminationOrdering | None = None,
        runtime_only: bool = False,
        cause_id: str = "",
    ) -> None:
        """Stop a running container. Raises RuntimeServiceError when the runtime could not.

        `runtime_only`: no configuration of the Pod is known, so there are no hooks to run.
        """
        name = container.metadata.name
        spec, dgps, tgps = self._configuration(pod, container, runtime_only)
        period = grace.set_termination_grace_period(
            self._behaviour,
            deletion_grace_period_seconds=dgps,
            termination_grace_period_seconds=tgps,
            probe_grace_period_seconds=grace.probe_grace_period_seconds(spec, reason),
        )
        budget = grace.budget_before_hook(self._behaviour, period, override)
        message = message or f"Stopping container {name}"
        self._events.event(pod, "Normal", "Killing", message, field_path=container_field_path(pod, name))
        facts: Killing = {"message": message, "gracePeriodSeconds": budget}
        if reason is not None:
            facts["reason"] = str(reason)
        cause_id = self._record(kinds.KILLING, pod, name, rules.KILL_CONTAINER, facts, cause_id)
        left = budget
        pre_stop = (spec.get("lifecycle") or {}).get("preStop")
        if pre_stop and budget > 0:
            elapsed, cause_id = await self._execute_pre_stop_hook(pod, container, spec, pre_stop, budget, cause_id)
            left = grace.spend(left, elapsed)
        elif pre_stop:
            why = f"a grace period of {budget} s leaves no time for the hook"
            self.record_skipped(pod, name, why, cause_id)
        elif runtime_only:
            self.record_skipped(
                pod, name, "only the runtime knows this Pod: there is no spec to take a hook from", cause_id
            )
        waited = 0
        if ordering is not None and left > 0:
            waited = await ordering.wait_for_turn(name, left)
            left = grace.spend(left, waited)
        stop = grace.stop_timeout(self._behaviour, left, override)
        if runtime_only:
            # The housekeeping that finds such a Pod also removes its cgroup: SIGKILL at once, no SIGTERM (recorded on
            # 1.36.2; the reference's two seconds were never seen).
            stop = grace.StopTimeout(0, False)
        await self._stop_container(pod, container, stop, budget - left, waited, override, bool(pre_stop), cause_id)
        if ordering is not None:
            ordering.container_terminated(name)

    def record_skipped(self, pod: Pod, container_name: str, why: str, cause_id: str) -> None:
        """Record a preStop hook that is not run, and why."""
        facts: PreStopSkipped = {"why": why}
        self._record(kinds.PRE_STOP_SKIPPED, pod, container_name, rules.KILL_CONTAINER, facts, cause_id)

    async def _stop_container(
        self,
        pod: Pod,
        container: ContainerStatus,
        stop: grace.StopTimeout,
        deducted: int,
        waited: int,
        override: int | None,
        had_hook: bool,
        cause_id: str,
    ) -> None:
        name = container.metadata.name
        facts: StopRequested = {
            "timeoutSeconds": stop.timeout,
            "floor": stop.floor,
            "deductedSeconds": 0 if override is not None and self._behaviour.override_after_hook else deducted,
        }
        if waited:
            facts["waitedForTurnSeconds"] = waited
        if stop.timeout == 0:
            facts["why"] = "a Pod without configuration loses its cgroup in the same pass: SIGKILL at once"
        elif had_hook and override is not None and self._behaviour.why_hook_time_does_not_count:
            facts["why"] = self._behaviour.why_hook_time_does_not_count
        cause_id = self._record(kinds.STOP_REQUESTED, pod, name, rules.KILL_CONTAINER, facts, cause_id)
        started = self._world.clock.monotonic_ns()
        error: str = ""
        try:
            async with asyncio.timeout(stop.timeout + RUNTIME_REQUEST_TIMEOUT):
                await self._runtime.stop_container(container.id, stop.timeout)
        except TimeoutError:
            error = f"StopContainer gave no answer within {stop.timeout + RUNTIME_REQUEST_TIMEOUT} s"
            raise RuntimeServiceError(error, "DeadlineExceeded") from None
        except RuntimeServiceError as failure:
            if failure.reason != "NotFound":  # an unknown container is a stopped one
                error = str(failure)
                raise
        finally:
            finished: StopFinished = {"seconds": self._seconds_since(started), "error": error}
            self._record(kinds.STOP_FINISHED, pod, name, rules.KILL_CONTAINER, finished, cause_id)

    async def _execute_pre_stop_hook(
        self,
        pod: Pod,
        container: ContainerStatus,
        spec: Container,
        handler: LifecycleHandler,
        budget: int,
        cause_id: str,
    ) -> tuple[int, str]:
        """Run the hook, wait at most `budget` seconds: whole seconds elapsed, record id of its end or overrun.

        The hook is not cancelled at the end of its budget (executePreStopHook). One that still runs from a stop before
        is waited for and not started beside itself, where Kubernetes runs both.
        """
        name = container.metadata.name
        running = self._running_hooks.get(container.id)
        if running is not None and running.task is not None:
            why = "the hook of the stop before still runs: it is waited for, not started again"
            self.record_skipped(pod, name, why, cause_id)
            started = self._world.clock.monotonic_ns()
            await wait_at_most(self._world.clock, running.task, budget)
            return math.floor(self._seconds_since(started)), running.record_id
        facts: PreStopStarted = {
            "handler": handler_name(handler),
            "detail": handler_detail(handler),
            "budgetSeconds": budget,
        }
        started_id = self._record(kinds.PRE_STOP_STARTED, pod, name, rules.EXECUTE_PRE_STOP_HOOK, facts, cause_id)
        watch = self._listener_watch(pod, container, handler, started_id)
        if watch is not None:
            await watch.begin(self._hook_tasks)
        started = self._world.clock.monotonic_ns()
        hook = _Hook(record_id=started_id)
        run = self._run_pre_stop_hook(hook, pod, container, spec, handler, started)
        task = hook.task = self._hook_tasks.spawn(
            crash_guard.guarded("kubelet preStop hook", uid_of(pod), run), name=f"preStop {container.id}"
        )
        self._running_hooks[container.id] = hook
        task.add_done_callback(lambda _: self._running_hooks.pop(container.id, None))
        if not await wait_at_most(self._world.clock, task, budget):
            hook.outlived = True
            outlived: PreStopFinished = {
                "handler": handler_name(handler),
                "outcome": "outlived",
                "seconds": self._seconds_since(started),
                "message": f"the hook still runs at the end of its {budget} s; it goes on beside the stop signal",
            }
            rule = rules.EXECUTE_PRE_STOP_HOOK
            hook.record_id = self._record(kinds.PRE_STOP_FINISHED, pod, name, rule, outlived, started_id)
        if watch is not None:
            await watch.end()
        return math.floor(self._seconds_since(started)), hook.record_id

    def _listener_watch(
        self, pod: Pod, container: ContainerStatus, handler: LifecycleHandler, cause_id: str
    ) -> ListenerWatch | None:
        """Return None for a hook that only sleeps: the program learns nothing from it."""
        if handler_name(handler) == "sleep":
            return None

        def tell(facts: ListenerClosedInHook) -> None:
            name = container.metadata.name
            self._record(kinds.LISTENER_CLOSED_IN_HOOK, pod, name, rules.EXECUTE_PRE_STOP_HOOK, facts, cause_id)

        return ListenerWatch(self._world.clock, self._runtime, container.id, tell)

    async def _run_pre_stop_hook(
        self,
        hook: _Hook,
        pod: Pod,
        container: ContainerStatus,
        spec: Container,
        handler: LifecycleHandler,
        started: int,
    ) -> None:
        name = container.metadata.name
        facts: PreStopFinished = {"handler": handler_name(handler)}
        failure: HookError | None = None
        result: HookResult | HookError
        try:
            result = await self._hooks.run(container.id, pod, spec, handler, lambda: self.live_pod_ip(uid_of(pod)))
            facts["outcome"] = "succeeded"
        except HookError as error:
            result = failure = error
            facts["outcome"], facts["message"] = "failed", str(error)
        except Exception as error:  # whatever a hook does, it must not end the node
            crash_guard.noticed("kubelet preStop hook", uid_of(pod), error)
            log.exception("preStop hook of container %s", container.id)
            result = failure = HookError(f"{type(error).__name__}: {error}")
            facts["outcome"], facts["message"] = "failed", str(failure)
        facts["seconds"] = self._seconds_since(started)
        if result.exit_code is not None:
            facts["exitCode"] = result.exit_code
        if facts["handler"] == "exec":
            facts["stdout"], facts["stderr"] = shown_output(result.stdout), shown_output(result.stderr)
        if hook.outlived:
            facts["late"] = True
        record_id = self._record(kinds.PRE_STOP_FINISHED, pod, name, rules.RUN_HANDLER, facts, hook.record_id)
        if not hook.outlived:
            hook.record_id = record_id
        if failure is not None:
            text = "PreStopHook failed" if self._behaviour.hook_failure_text_is_fixed else str(failure)
            self._events.event(pod, "Warning", "FailedPreStopHook", text, field_path=container_field_path(pod, name))

    async def live_pod_ip(self, pod_uid: str) -> str:
        """Return the first address of the newest ready sandbox, asked now; "" for none and for a hostNetwork Pod."""
        try:
            sandboxes = await self._runtime.list_pod_sandbox(pod_uid)
        except RuntimeServiceError:
            return ""
        newest = next((s for s in sandboxes if s.state == PodSandboxState.SANDBOX_READY), None)
        return newest.ips[0] if newest is not None and newest.ips else ""

    def _configuration(
        self, pod: Pod, container: ContainerStatus, runtime_only: bool
    ) -> tuple[Container, int | None, int | None]:
        """Spec of the container, deletionGracePeriodSeconds, terminationGracePeriodSeconds."""
        if runtime_only:
            return {}, None, None
        return (
            find_container(pod, container.metadata.name) or {},
            pod["metadata"].get("deletionGracePeriodSeconds"),
            pod["spec"].get("terminationGracePeriodSeconds"),
        )

    def _seconds_since(self, started: int) -> float:
        return (self._world.clock.monotonic_ns() - started) / 1e9

    def _record(
        self, kind: Kind[Facts], pod: Pod, container: str, rule: rules.Rule, facts: Facts, cause_id: str
    ) -> str:
        return self._recorder.record(
            kind,
            pod_uid=uid_of(pod),
            container=container,
            rule=rule,
            facts=facts,
            cause_id=cause_id,
        )
