"""Random lives: Pods of every sort are created, deleted, force deleted, while the kubelet dies and the API misbehaves.

Whatever happens, in the end nothing is left. A seed that fails is a scenario to write down.
"""

import random

import pytest
from scenario_faults import Faults, FaultyClient
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service

from lastcall.api.errors import StatusError
from lastcall.api.resources import PODS
from lastcall.cri.simulated_program import ExecResult, Program
from lastcall.timeline import kinds

PROGRAMS = {
    "drains": Program(drain_seconds=1.3, execs={"hang": ExecResult(seconds=900)}),
    "ignores": Program(on_term="ignore", execs={"hang": ExecResult(seconds=900)}),
    "default": Program(on_term="default"),
    "ends": Program(exits_after=2.5, natural_exit_code=0),
    "crashes": Program(exits_after=0.7, natural_exit_code=3),
    "cannot": Program(start_error="exec: no such file"),
}


def random_pod(choose: random.Random, name: str) -> dict:
    def one(container_name: str, **more) -> dict:
        hook = choose.choice([{}, {}, pre_stop(exec=["sleep", "1"]), pre_stop(exec=["hang"]), pre_stop(sleep=1)])
        probe = choose.choice([{}, {"readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1}}])
        return container(container_name, **hook, **probe, **more)

    sorts = list(PROGRAMS)
    init = [container("ends")] if choose.random() < 0.3 else []
    if choose.random() < 0.3:
        init.append(one("drains-too", restartPolicy="Always"))
    more = {"finalizers": ["example.com/hold"]} if choose.random() < 0.15 else {}
    if choose.random() < 0.2:
        more["activeDeadlineSeconds"] = 6
    return pod_manifest(
        name,
        labels={"app": "p"},
        terminationGracePeriodSeconds=choose.choice([1, 3, 10]),
        restartPolicy=choose.choice(["Always", "OnFailure", "Never"]),
        initContainers=init,
        containers=[one(sort) for sort in choose.sample([s for s in sorts if s != "ends"], choose.choice([1, 1, 2]))],
        **more,
    )


def life(seed: int, faults: Faults):
    choose = random.Random(seed)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(service())
        names: list[str] = []
        for number in range(40):
            await cluster.sleep(choose.choice([0.0, 0.003, 0.2, 1.1]))
            action = choose.random()
            if action < 0.35 or not names:
                names.append(f"p{number}")
                await cluster.create(random_pod(choose, names[-1]))
            elif action < 0.85:
                grace = choose.choice([None, None, 0, 1, 2, 20])
                await ignore_missing(cluster.delete(f"pod/{choose.choice(names)}", grace))
            elif cluster._node_tasks is not None and action < 0.92:
                await cluster.kill_kubelet()
            elif cluster._node_tasks is None:
                cluster.start_kubelet()
            if action > 0.98:
                cluster.runtime.fail_next(choose.choice(["stop_container", "cni_del", "cni_add"]), "injected")
        if cluster._node_tasks is None:
            cluster.start_kubelet()
        for name in names:
            await ignore_missing(cluster.delete(f"pod/{name}"))
            await ignore_missing(cluster.patch(f"pod/{name}", {"metadata": {"finalizers": None}}))
        for name in names:
            await cluster.wait_until(lambda name=name: cluster.is_gone(name), limit=300)
        await cluster.sleep(60)
        running = [c for c in await cluster.runtime.list_containers() if c.state.name == "CONTAINER_RUNNING"]
        assert not running, running
        assert (await cluster.client.list(PODS)).items == []
        assert await cluster.runtime.list_pod_sandbox() == [], "a sandbox is left"

    async def ignore_missing(call) -> None:
        try:
            await call
        except StatusError as error:
            if error.code not in (404, 422):
                raise

    log: dict[str, int] = {}
    cluster = run_cluster(
        scenario, PROGRAMS, seed=seed, wrap=lambda client, component: FaultyClient(client, faults, log)
    )
    attached = sorted(r.facts["ip"] for r in cluster.records(kinds.NETWORK_ATTACHED))
    detached = sorted(r.facts["ip"] for r in cluster.records(kinds.NETWORK_DETACHED) if not r.facts["error"])
    assert attached == detached
    assert cluster.endpoints("svc")[-1] == []


QUIET = Faults()
UNRELIABLE = Faults(lost_watches=23, duplicates=True, conflicts=17, failures=19, lost_answers=29)


@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_left_of_a_random_life(seed: int) -> None:
    life(seed, QUIET)


@pytest.mark.parametrize("seed", range(100, 115))
def test_nothing_is_left_of_a_random_life_with_an_unreliable_api_server(seed: int) -> None:
    life(seed, UNRELIABLE)
