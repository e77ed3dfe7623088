"""Random lives, one step at a time: whatever users, containers, the runtime, the API and a dying kubelet do to Pods,
and in whatever order, the rules of `node_invariants` hold after each step, and in the end nothing is left.

    LASTCALL_HYPOTHESIS=long pytest tests/scenarios/test_random_lives_step_by_step.py

looks for new examples for some minutes. What it finds becomes a test of its own.
"""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from node_invariants import NodeInvariants
from node_stats import MI, Stats, using
from scenario.faults import Faults, FaultyClient
from stepped_cluster import Step, SteppedCluster
from virtual_cluster import VirtualCluster, container, pod_manifest, service

from lastcall.kube.api.errors import StatusError
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.kube.node.shutdown.decide import grace_periods

COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "print_blob": False}
PROFILES = {
    "": settings(max_examples=50, phases=(Phase.generate,), stateful_step_count=20, derandomize=True, **COMMON),
    "long": settings(max_examples=2000, stateful_step_count=40, **COMMON),
}
"""In CI always the same examples, not made smaller: who repeats it by hand with the long profile gets a short story."""
PROFILE = PROFILES[os.environ.get("LASTCALL_HYPOTHESIS", "")]

EXECS = {
    "hook short": ExecResult(seconds=0.4),
    "hook long": ExecResult(seconds=4),
    "hook hangs": ExecResult(seconds=900),
    "hook fails": ExecResult(exit_code=1),
    "hook missing": ExecResult(error="no such file"),
    "begin short": ExecResult(seconds=0.3),
    "begin long": ExecResult(seconds=3),
    "begin fails": ExecResult(exit_code=1),
    "probe fails": (ExecResult(), ExecResult(), ExecResult(exit_code=1)),
}
PROGRAMS = {
    "drains": Program(drain_seconds=1.3, exit_code=0, execs=EXECS),
    "slow": Program(drain_seconds=6, exit_code=4, execs=EXECS),
    "ignores": Program(on_term="ignore", execs=EXECS),
    "default": Program(on_term="default", execs=EXECS),
    "ends": Program(exits_after=2.5, natural_exit_code=0, execs=EXECS),
    "crashes": Program(exits_after=0.7, natural_exit_code=3, execs=EXECS),
    "cannot": Program(start_error="exec: no such file"),
}
THEN = st.sampled_from([0.0, 0.0, 0.004, 0.3, 1.1, 3.0])
NAMES = [f"p{number}" for number in range(4)]
FAULTS = [
    Faults(duplicates=True),
    Faults(slow_seconds=0.4),
    Faults(late_seconds=0.7),
    Faults(late_seconds=3, duplicates=True),
    Faults(lost_watches=5),
    Faults(conflicts=2),
    Faults(failures=2),
    Faults(lost_answers=2),
    Faults(lost_watches=23, duplicates=True, conflicts=17, failures=19, lost_answers=29, slow_seconds=0.01),
]
VERBS = ["stop_container", "stop_pod_sandbox", "run_pod_sandbox", "create_container", "start_container", "exec_sync",
         "remove_container", "remove_pod_sandbox", "container_status", "list_containers", "list_pod_sandbox",
         "pod_sandbox_status", "image_status", "cni_add", "cni_del"]  # fmt: skip


def exec_(*command: str) -> dict[str, Any]:
    return {"exec": {"command": list(command)}}


def hooks() -> st.SearchStrategy[dict[str, Any]]:
    stop = st.sampled_from(
        [*(exec_("hook", how) for how in ("short", "long", "hangs", "fails", "missing")), {"sleep": {"seconds": 2}}]
    )
    start = st.sampled_from([exec_("begin", how) for how in ("short", "long", "fails")])
    lifecycle = st.fixed_dictionaries({}, optional={"preStop": stop, "postStart": start})
    return lifecycle.map(lambda made: {"lifecycle": made} if made else {})


PROBES = [
    {},
    {},
    {"readinessProbe": {**exec_("true"), "periodSeconds": 1}},
    {"livenessProbe": {**exec_("probe", "fails"), "periodSeconds": 1, "failureThreshold": 2}},
    {"livenessProbe": {**exec_("probe", "fails"), "periodSeconds": 1, "terminationGracePeriodSeconds": 4}},
    {"startupProbe": {**exec_("true"), "periodSeconds": 1}},
]


@st.composite
def containers(draw: st.DrawFn, name: str, sorts: list[str], **more: Any) -> dict[str, Any]:
    sort = draw(st.sampled_from(sorts))
    return container(name, image=f"{sort}:1", **draw(hooks()), **draw(st.sampled_from(PROBES)), **more) | {
        "image": f"{sort}:1"
    }


@st.composite
def pods(draw: st.DrawFn, name: str) -> dict[str, Any]:
    init: list[dict[str, Any]] = []
    for number in range(draw(st.sampled_from([0, 0, 1, 2]))):
        sorts = ["drains", "ignores", "slow", "crashes"]
        init.append(draw(containers(f"sidecar-{number}", sorts, restartPolicy="Always")))
    if draw(st.booleans()) and draw(st.booleans()):
        init.insert(0, container("init") | {"image": "ends:1"})
    count = draw(st.sampled_from([1, 1, 2]))
    more: dict[str, Any] = {}
    if draw(st.sampled_from([False] * 5 + [True])):
        more["finalizers"] = ["example.com/hold"]
    if draw(st.sampled_from([False] * 4 + [True])):
        more["activeDeadlineSeconds"] = draw(st.sampled_from([1, 6, 20]))
    return pod_manifest(
        name,
        labels={"app": "p"},
        terminationGracePeriodSeconds=draw(st.sampled_from([2, 3, 10, 30])),
        restartPolicy=draw(st.sampled_from(["Always", "OnFailure", "Never"])),
        initContainers=init,
        containers=[draw(containers(f"app-{number}", [*PROGRAMS, "ends", "ends"])) for number in range(count)],
        volumes=[{"name": "data", "emptyDir": {}}],
        **more,
    )


async def refused(call: Any) -> None:
    """Nobody is there, somebody is there already, or it is not allowed (now): users live with that."""
    try:
        await call
    except StatusError as error:
        if error.code not in (404, 409, 422):
            raise


class Lives(RuleBasedStateMachine):
    """Each rule is one thing that happens; time goes on only in rules."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = Faults()
        self.failed = False
        self.armed: int | None = None
        self.stats = Stats()
        self.stats.pods = {name: using(memory=10) for name in NAMES}
        self.world = SteppedCluster(
            PROGRAMS,
            wrap=lambda client, component: FaultyClient(client, lambda: self.faults, {}),
            kubelet={"stats": self.stats},
        )
        self.cluster = self.world.cluster
        self.laws = NodeInvariants(self.cluster)
        self.cluster.all_records._notice = self._recorded  # type: ignore[attr-defined]

    def step(self, step: Step) -> Any:
        try:
            return self.world.run(step)
        except BaseException:
            self.failed = True
            raise

    def do(self, step: Step, then: float) -> None:
        """The step, and `then` so many seconds for all others."""

        async def both(cluster: VirtualCluster) -> None:
            await step(cluster)
            await cluster.sleep(then)

        self.step(both)

    # -- the kubelet's death at any await

    def _recorded(self) -> None:
        self.cluster._changed.set()
        if self.armed is not None and self.is_up:
            self.armed -= 1
            if self.armed <= 0:
                self._kill()

    def _kill(self) -> None:
        """SIGKILL between two steps of the event loop: every task of the kubelet ends where it waits."""
        self.armed = None
        self.dying = self.cluster.first.kill_now()

    dying: Any = None

    @property
    def is_up(self) -> bool:
        return self.cluster.first.task is not None

    async def _dead(self, cluster: VirtualCluster) -> None:
        if self.dying is not None:
            while not self.dying.done():
                await cluster.sleep(0.001)
            self.dying = None
            self.laws.kubelet_died()

    # -- what happens

    @initialize(first=pods(NAMES[0]), second=pods(NAMES[1]), then=st.sampled_from([0.0, 0.02, 1.1, 5.0]))
    def some_pods(self, first: dict[str, Any], second: dict[str, Any], then: float) -> None:
        """Every life has some: a random choice of rules may have no `create`."""
        self.do(lambda cluster: cluster.create(service(), first, second), then)

    @rule(then=THEN, name=st.sampled_from(NAMES), data=st.data())
    def create(self, name: str, data: st.DataObject, then: float) -> None:
        manifest = data.draw(pods(name))
        self.do(lambda cluster: refused(cluster.create(manifest)), then)

    @rule(seconds=st.sampled_from([0.0, 0.002, 0.02, 0.3, 1.0, 2.1, 5.0, 40.0]))
    def wait(self, seconds: float) -> None:
        self.step(lambda cluster: cluster.sleep(seconds))

    @rule(then=THEN, name=st.sampled_from(NAMES), grace=st.sampled_from([None, None, 1, 2, 20, 60]))
    def delete(self, name: str, grace: int | None, then: float) -> None:
        """The first one, or one that shortens the grace period, or one that tries to lengthen it."""
        self.do(lambda cluster: refused(cluster.delete(f"pod/{name}", grace)), then)

    @rule(then=THEN, name=st.sampled_from(NAMES))
    def force_delete(self, name: str, then: float) -> None:
        self.do(lambda cluster: refused(cluster.delete(f"pod/{name}", 0)), then)

    @rule(then=THEN, name=st.sampled_from(NAMES), number=st.integers(0, 1), version=st.integers(1, 3))
    def update_image(self, name: str, number: int, version: int, then: float) -> None:
        def changed(pod: dict[str, Any]) -> dict[str, Any]:
            listed = [dict(each) for each in pod["spec"]["containers"]]
            each = listed[number % len(listed)]
            each["image"] = each["image"].partition(":")[0] + f":{version}"
            return {"spec": {"containers": listed}}

        async def update(cluster: VirtualCluster) -> None:
            if cluster.pod(name) and not cluster.is_gone(name):
                await refused(cluster.patch(f"pod/{name}", changed(cluster.pod(name))))

        self.do(update, then)

    @rule(
        then=THEN,
        name=st.sampled_from(NAMES),
        label=st.sampled_from(["a", "b"]),
        deadline=st.sampled_from([None, 2, 9]),
    )
    def update(self, name: str, label: str, deadline: int | None, then: float) -> None:
        spec = {"spec": {"activeDeadlineSeconds": deadline}} if deadline else {}
        body = {"metadata": {"labels": {"seen": label}}, **spec}
        self.do(lambda cluster: refused(cluster.patch(f"pod/{name}", body)), then)

    @rule(then=THEN, name=st.sampled_from(NAMES))
    def take_the_finalizers_away(self, name: str, then: float) -> None:
        self.do(lambda cluster: refused(cluster.patch(f"pod/{name}", {"metadata": {"finalizers": None}})), then)

    @rule(then=THEN, number=st.integers(0, 9), code=st.sampled_from([0, 1, 137]), oom=st.booleans())
    def crash(self, number: int, code: int, oom: bool, then: float) -> None:
        async def crash(cluster: VirtualCluster) -> None:
            running = self.laws.running()
            if running:
                cluster.runtime.kill(running[number % len(running)].id, code, oom=oom and code == 137)

        self.do(crash, then)

    @rule(verb=st.sampled_from(VERBS), times=st.integers(1, 3), seconds=st.sampled_from([0.0, 0.0, 0.5, 30.0]))
    def runtime_fails(self, verb: str, times: int, seconds: float) -> None:
        self.cluster.runtime.fail_next(verb, "injected", times=times, seconds=seconds)

    @rule(times=st.integers(1, 2))
    def runtime_is_away(self, times: int) -> None:
        for verb in VERBS:
            self.cluster.runtime.fail_next(verb, "connection refused", times=times)

    @rule(faults=st.sampled_from(FAULTS))
    def api_misbehaves(self, faults: Faults) -> None:
        self.faults = faults

    @precondition(lambda self: self.faults != Faults())
    @rule()
    def api_behaves(self) -> None:
        self.faults = Faults()

    @rule(then=THEN, short=st.booleans())
    def memory(self, short: bool, then: float) -> None:
        """Of little memory one Pod after the other is evicted."""
        self.stats.free["memory.available"] = (50 * MI if short else 900 * MI, 1000 * MI)
        self.step(lambda cluster: cluster.sleep(then))

    @precondition(lambda self: self.is_up)
    @rule(then=THEN, seconds=st.sampled_from([3, 8, 20]))
    def node_shuts_down(self, seconds: int, then: float) -> None:
        async def shut_down(cluster: VirtualCluster) -> None:
            manager = cluster.kubelet.shutdown
            shutting_down = manager.shut_down(grace_periods(seconds, 1))
            try:
                manager._tasks.spawn(shutting_down, name="shutdown")
            except RuntimeError:  # the kubelet has not begun yet
                shutting_down.close()

        self.do(shut_down, then)

    @precondition(lambda self: self.is_up)
    @rule(then=THEN)
    def node_stays_after_all(self, then: float) -> None:
        async def cancel(cluster: VirtualCluster) -> None:
            cluster.kubelet.shutdown.cancel()

        self.do(cancel, then)

    @precondition(lambda self: self.is_up and self.armed is None)
    @rule(then=THEN, records=st.integers(0, 12))
    def kill_kubelet(self, records: int, then: float) -> None:
        """At once, or when so many more records have been written: in the middle of whatever it does then."""

        async def kill(cluster: VirtualCluster) -> None:
            if records:
                self.armed = records
            else:
                self._kill()

        self.do(kill, then)

    @precondition(lambda self: not self.is_up)
    @rule(then=THEN)
    def start_kubelet(self, then: float) -> None:
        async def start(cluster: VirtualCluster) -> None:
            await self._dead(cluster)
            cluster.start_kubelet()

        self.do(start, then)

    @precondition(lambda self: self.is_up)
    @rule(then=THEN)
    def restart_kubelet(self, then: float) -> None:
        async def restart(cluster: VirtualCluster) -> None:
            self._kill()
            await self._dead(cluster)
            cluster.start_kubelet()

        self.do(restart, then)

    @invariant()
    def the_rules_hold(self) -> None:
        if self.dying is not None and self.dying.done():
            self.dying = None
            self.laws.kubelet_died()
        try:
            self.laws.check()
        except BaseException:
            self.failed = True
            raise

    def teardown(self) -> None:
        try:
            if not self.failed:
                self.step(self._end)
                self.laws.check_end()
                assert self.cluster.endpoints("svc")[-1:] in ([], [[]])
        finally:
            self.world.close()

    async def _end(self, cluster: VirtualCluster) -> None:
        """All goes well again, everything is deleted, and there is time for it."""
        self.armed = None
        self.faults = Faults()
        self.stats.free.clear()
        cluster.runtime._failures.clear()
        await self._dead(cluster)
        if not self.is_up:
            cluster.start_kubelet()
        names = [name for name in NAMES if cluster.versions(name)]
        for name in names:
            await refused(cluster.delete(f"pod/{name}"))
            await refused(cluster.patch(f"pod/{name}", {"metadata": {"finalizers": None}}))
        await cluster.wait_until(lambda: not cluster.last_of_each_pod(), limit=1200)
        await cluster.sleep(180)  # garbage is collected every minute
        assert await cluster.runtime.list_containers() == [], "a container is left"
        assert await cluster.runtime.list_pod_sandbox() == [], "a sandbox is left"


@pytest.mark.rule("node-semantics 5.1/never-grows, 6/exit-codes, 6/final, 8/regular-first, 22.3/once, 22.3/timeout")
def test_every_rule_holds_after_every_step_of_a_random_life() -> None:
    run_state_machine_as_test(Lives, settings=PROFILE)
