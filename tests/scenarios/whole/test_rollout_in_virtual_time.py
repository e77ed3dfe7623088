"""`rollout --find-safe` in virtual time: real controllers, kubelet and proxy; Pods that end as it was measured."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lastcall.errors import WorldError
from lastcall.experiment.rollout.checks import plain_text
from lastcall.experiment.rollout.embedded import EmbeddedWorkspace
from lastcall.experiment.rollout.html import html_page
from lastcall.experiment.rollout.old_pods import stories
from lastcall.experiment.rollout.options import RolloutOptions
from lastcall.experiment.rollout.report_json import as_json
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.rollout.session import RolloutSession
from lastcall.experiment.rollout.target import find_target
from lastcall.kube.apiserver.auth.pki import new_key_pem
from lastcall.kube.cluster.node_capacity import parse_node_capacity
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.kube.cluster.propagation import parse_propagation
from lastcall.kube.cluster.virtual.tree import VirtualRolloutCluster
from lastcall.manifests.read import load_manifests
from lastcall.traffic.load import Load
from lastcall.traffic.thresholds import Thresholds
from lastcall.traffic.verdict import Judgement, judge
from lastcall.traffic.virtual import Behaviour, KindBehaviour, VirtualLoad
from lastcall.world.clock import monotonic
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "rollout"
KEY = new_key_pem()


def experiment(name: str, behaviour: Behaviour, propagation: str, **changed: Any) -> Result:
    manifests = load_manifests((name if name.endswith(".yaml") else str(EXAMPLES / f"{name}.yaml"),))
    plan = parse_propagation([propagation])
    load = Load(rates=changed.pop("rates", {"fresh": 200.0}))
    options = replace(RolloutOptions(load=load), **changed).with_cluster(propagation=plan)
    target = find_target(manifests, options)

    async def main(world: World) -> Result:
        template = target.workload.obj["spec"]["template"]
        nodes = options.nodes
        made = VirtualRolloutCluster(world, template, behaviour, VirtualLoad.to(behaviour), plan, KEY, nodes=nodes)
        async with made as cluster:
            place = EmbeddedWorkspace(cluster, manifests, target)
            found = await RolloutSession(place, options, world).run()
            return replace(found, endings=stories(place.records, found.lives, options.kubernetes_version))

    return run_virtual(main)


LEAVES = Behaviour(accepts=0.0, drains=0.0)
EDGES = [
    ("a hook of 5 s outlasts 4.9 s", "polite", LEAVES, {"propagation": "4.9s"}, True),
    ("and does not outlast 5.1 s", "polite", LEAVES, {"propagation": "5.1s"}, False),
    ("unless the Pod accepts a while longer", "polite", Behaviour(0.5, 1.0), {"propagation": "5.1s"}, True),
    ("a server that leaves at once survives no lag", "naive", LEAVES, {"propagation": "200ms"}, False),
    ("the kernel's hop counts as the watch does", "polite", LEAVES, {"propagation": "watch=3s,kernel=2.1s"}, False),
    (
        "a balancer outside is told late",
        "polite",
        LEAVES,
        {"propagation": "balancer=5.1s", "source": "balancer"},
        False,
    ),
    ("and the node's lag is nothing to it", "polite", LEAVES, {"propagation": "watch=9s", "source": "balancer"}, True),
    ("a drained node's Pods end as others", "polite", LEAVES, {"propagation": "4.9s", "disrupt": "drain"}, True),
]


@pytest.mark.parametrize(("name", "behaviour", "changed", "safe"), [e[1:] for e in EDGES], ids=[e[0] for e in EDGES])
def test_the_edge_is_where_the_hook_and_the_listener_end(
    name: str, behaviour: Behaviour, changed: dict[str, str], safe: bool
) -> None:
    found = experiment(name, behaviour, **changed).account
    assert (found.lost == ()) is safe and found.control_lost == 0 and found.total > 200
    assert all(each.cause == "late endpoint" for each in found.lost)


def test_one_seed_is_one_story() -> None:
    first, second = (experiment("naive", LEAVES, "1s") for _ in range(2))
    assert [each.to_wire() for each in first.outcomes] == [each.to_wire() for each in second.outcomes]
    assert len(first.account.lost) > 50


def test_each_old_pod_has_its_story_in_the_text_the_document_and_the_page() -> None:
    found = experiment("naive", LEAVES, "1s")
    assert [each.pod.name for each in found.endings] == [life.name for life in found.lives if life.deleted]
    assert all(each.outcome == "graceful" and each.gone for each in found.endings)
    assert not any("lc-" in line.text for each in found.endings for line in each.output)
    text = plain_text([found], Thresholds())
    assert text.count("DELETE accepted") == 1 and "the stories of 2 more" in text
    (told,) = as_json([found])["experiments"]
    assert [each["name"] for each in told["stories"]] == [each.pod.name for each in found.endings]
    page = json.loads(html_page([found]).partition(' id="saved">')[2].partition("</script>")[0])
    assert [each["uid"] for each in page["reports"][0]["ends"]] == [each["uid"] for each in page["stories"]]
    assert len(page["stories"]) == 3


KINDS = dict.fromkeys(("fresh", "keep-alive", "slow", "stream", "websocket", "http2", "tcp"), 50.0)
LASTS = {kind: KindBehaviour(1.0, finished=True) for kind in ("slow", "stream", "websocket", "http2")}
LEAVES_THEM = {kind: replace(each, finished=False) for kind, each in LASTS.items()}
OF_KINDS = [
    ("a lag that the hook outlasts loses none of any kind", "4.9s", Behaviour(0.0, 1.0, kinds=LASTS), set()),
    ("beyond it whatever opens a connection is refused", "6s", Behaviour(0.0, 1.0, kinds=LASTS), set(KINDS)),
    (
        "what is under way when the Pod leaves is lost, and requests on open connections whatever the lag",
        "4.5s",
        Behaviour(0.0, 0.0, kinds=LEAVES_THEM),
        {"slow", "stream", "websocket", "http2"},
    ),
    ("what is over by then is not", "3.9s", Behaviour(0.0, 0.0, kinds={"slow": LEAVES_THEM["slow"]}), set()),
    (
        "an answer that outlasts the grace period of 30 s is killed",
        "4s",
        Behaviour(0.0, 28.0, kinds={"slow": KindBehaviour(28.0, finished=True)}),
        {"slow"},
    ),
]


@pytest.mark.parametrize(("lag", "behaviour", "lost"), [row[1:] for row in OF_KINDS], ids=[row[0] for row in OF_KINDS])
def test_each_kind_of_load_is_lost_in_its_own_way(lag: str, behaviour: Behaviour, lost: set[str]) -> None:
    found = experiment("polite", behaviour, lag, rates=KINDS).account
    assert {kind for kind, count in found.losses.items() if count} == lost
    assert set(found.totals) == set(KINDS) and found.control_lost == 0
    assert {each.cause for each in found.lost} <= {"late endpoint", "cut off", "killed", "stale connection"}


def with_spec(tmp_path: Path, old: str, new: str) -> str:
    text = (EXAMPLES / "polite.yaml").read_text()
    assert old in text
    path = tmp_path / "changed.yaml"
    path.write_text(text.replace(old, new))
    return str(path)


def failure(tmp_path: Path, old: str, new: str, more: str = "", **changed: Any) -> tuple[str, list[str], float]:
    """What a rollout of POLITE with a changed field ends with, what was shown meanwhile, and after how many seconds."""
    path = Path(with_spec(tmp_path, old, new))
    path.write_text(f"{path.read_text()}\n---\n{more}" if more else path.read_text())
    options = replace(RolloutOptions(load=Load(rates={"fresh": 10.0}), timeout=40), **changed)
    manifests = load_manifests((str(path),))
    target = find_target(manifests, options)
    shown: list[str] = []
    took: list[float] = []

    async def main(world: World) -> None:
        template = target.workload.obj["spec"]["template"]
        nodes = options.nodes
        async with VirtualRolloutCluster(
            world,
            template,
            LEAVES,
            VirtualLoad.to(LEAVES),
            options.propagation,
            KEY,
            nodes=nodes,
            node_capacity=options.cluster.node_capacity,
        ) as cluster:
            began = monotonic(world.clock)
            place = EmbeddedWorkspace(cluster, manifests, target)
            session = RolloutSession(place, options, world, show=lambda now, waited, text: shown.append(text))
            try:
                await session.run()
            finally:
                took.append(monotonic(world.clock) - began)

    with pytest.raises(WorldError) as error:
        run_virtual(main)
    return str(error.value), shown, took[0]


PULL = "imagePullPolicy: IfNotPresent\n"
SPEC = "    spec:\n      containers:\n"
NEVER_READY = [
    (
        "no node has the processors",
        (PULL, f"{PULL}          resources: {{requests: {{cpu: 1k}}}}\n"),
        6,
        "giving up waiting for Pods to become available: 0 of 3 Pods are available",
        "Event FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu",
        "fix: Insufficient cpu: lower resources.requests",
    ),
    (
        "no node has the label",
        (SPEC, "    spec:\n      nodeSelector: {disk: ssd}\n      containers:\n"),
        6,
        "giving up waiting for Pods to become available",
        "fix: no node has the labels that nodeSelector or nodeAffinity ask for",
    ),
    (
        "there is no such claim",
        ("volumes:\n  ", "volumes:\n        - {name: d, persistentVolumeClaim: {claimName: data}}\n  "),
        6,
        "giving up waiting for Pods to become available",
        "fix: add PersistentVolumeClaim data to the manifests",
    ),
    (
        "the API server refuses them",
        (SPEC, "    spec:\n      serviceAccountName: nobody\n      containers:\n"),
        6,
        "giving up waiting for Pods to become available: 0 of 3 Pods are available",
        "Deployment default/polite: 0 of its 3",
        'serviceaccount "nobody" not found',
        "fix: add ServiceAccount nobody to the manifests",
    ),
    (
        "the Service's port has another name",
        ("targetPort: 8080", "targetPort: httpp"),
        6,
        "Service polite sends to the port named httpp, and no container of the Pods has a port of that name",
        "fix: correct targetPort of Service polite, or name the container's port httpp",
    ),
]


@pytest.mark.parametrize(
    ("change", "seconds", "words"), [(row[1], row[2], row[3:]) for row in NEVER_READY], ids=[r[0] for r in NEVER_READY]
)
def test_what_waiting_cannot_change_is_given_up_and_named_with_the_reason(
    tmp_path: Path, change: tuple[str, str], seconds: float, words: tuple[str, ...]
) -> None:
    text, shown, took = failure(tmp_path, *change)
    assert [word for word in words if word not in text] == []
    assert took <= seconds and "minReadySeconds" not in text
    assert not shown or shown[0].startswith("Pods to become available: 0 of 3 Pods are available")


def test_what_does_not_fit_nodes_of_a_given_size_is_given_up(tmp_path: Path) -> None:
    sized = ClusterOptions(node_capacity=parse_node_capacity(["cpu=2,memory=1Gi", "node-1:cpu=500m"]))
    asks = f"{PULL}          resources: {{requests: {{cpu: 300m}}}}\n"
    text, _, _ = failure(tmp_path, PULL, asks, cluster=sized)
    assert "Event FailedScheduling: 0/1 nodes are available: 1 Insufficient cpu" in text
    assert "1 of 3 Pods are available" in text, "one of them fits"


BUDGET = """\
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: whole}
spec: {minAvailable: 3, selector: {matchLabels: {app: polite}}}
"""


QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: three}
spec: {hard: {pods: "3"}}
"""


def test_an_update_that_a_quota_leaves_no_room_for_is_given_up_with_the_quotas_name(tmp_path: Path) -> None:
    strategy = "  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n"
    text, _, took = failure(tmp_path, "  replicas: 3\n", f"  replicas: 3\n{strategy}", QUOTA, timeout=300)
    assert text.startswith("giving up waiting for the rollout to be over: ")
    assert "3 of its 3 Pods are Ready, 0 of them made from the new template" in text
    assert text.count("exceeded quota: three") == 1 and "fix: ResourceQuota three has no room for another Pod" in text
    assert "minReadySeconds" not in text and took < 15


@pytest.mark.parametrize("disrupt", ["evict", "drain"])
def test_a_budget_that_never_allows_an_eviction_is_named_with_the_fix(tmp_path: Path, disrupt: str) -> None:
    text, shown, took = failure(tmp_path, PULL, PULL, BUDGET, disrupt=disrupt, timeout=300)
    assert "cannot be evicted: PodDisruptionBudget whole wants 3 healthy Pods and has 3 of 3" in text
    assert "fix: maxUnavailable: 1 in PodDisruptionBudget whole" in text and took < 30
    assert any("to be evicted: PodDisruptionBudget whole wants 3" in each for each in shown)


def test_a_budget_that_allows_one_at_a_time_only_slows_a_drain_down(tmp_path: Path) -> None:
    path = Path(with_spec(tmp_path, PULL, PULL))
    path.write_text(f"{path.read_text()}\n---\n{BUDGET.replace('minAvailable: 3', 'maxUnavailable: 1')}")
    found = experiment(str(path), LEAVES, "1s", disrupt="drain")
    assert found.account.lost == () and (found.node, found.nodes) == ("node-1", 2)
    assert sum(life.deleted is not None for life in found.lives) >= 2


ALONE = """\
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - labelSelector: {matchLabels: {app: polite}}
              topologyKey: kubernetes.io/hostname
"""


def test_a_pod_that_only_the_drained_node_would_take_ends_no_drain_and_is_told(tmp_path: Path) -> None:
    text = with_spec(tmp_path, SPEC, SPEC.replace("    spec:\n", f"    spec:\n{ALONE}"))
    two = Path(text).read_text().replace("  replicas: 3\n", "  replicas: 2\n")
    Path(text).write_text(two)
    found = experiment(text, LEAVES, "1s", disrupt="drain")
    (note,) = [each for each in found.notes if each.id == "strandedByDrain"]
    assert "waits for a node since node-1 was drained: 0/2 nodes are available: 1 node(s) didn't match" in note.text
    assert found.account.lost == () and found.node == "node-1"


def test_a_headless_service_is_sent_to_as_a_balancer_outside_does(tmp_path: Path) -> None:
    path = with_spec(tmp_path, "      targetPort: 8080\n", "      targetPort: 8080\n  clusterIP: None\n")
    found = experiment(path, LEAVES, "balancer=1s", source="balancer")
    assert (found.account.lost, found.account.control_lost) == ((), 0) and found.account.total > 200


def test_a_drained_node_is_named_and_an_updates_is_not() -> None:
    assert experiment("polite", LEAVES, "1s", disrupt="drain").node.startswith("node-")
    assert experiment("polite", LEAVES, "1s").node == ""


def test_advice_was_taken_by_the_server_of_the_experiment() -> None:
    found = experiment("naive", LEAVES, "1s")
    (advice,) = found.judgement.advice
    assert advice.patch and not advice.refused and found.judgement.sentence.endswith(advice.sentence)


def test_advice_that_the_server_refuses_is_told_without_its_patch(monkeypatch: pytest.MonkeyPatch) -> None:
    def bad(*arguments: Any, **options: Any) -> Judgement:
        judgement = judge(*arguments, **options)
        advice = [
            replace(each, patch={"spec": {"selector": {"matchLabels": {"app": "other"}}}}) for each in judgement.advice
        ]
        return replace(judgement, advice=tuple(advice))

    monkeypatch.setattr("lastcall.experiment.rollout.session.judge", bad)
    found = experiment("naive", LEAVES, "1s").judgement
    assert found.patch == {} and "It cannot be tried here: the API server refuses it" in found.sentence
    assert "is immutable" in found.advice[0].refused or "`selector` does not match" in found.advice[0].refused


@pytest.mark.parametrize("probe", [True, False])
def test_nothing_is_disrupted_when_nobody_answers(probe: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The Service's port is another one than the program's: refused, from the first request on."""
    monkeypatch.setattr(VirtualRolloutCluster, "_serving", lambda self, ip: [])
    text = (EXAMPLES / "naive.yaml").read_text().replace("targetPort: 8080", "targetPort: 9090")
    if not probe:
        begin, end = text.index("          readinessProbe:"), text.index("          volumeMounts:")
        text = text[:begin] + text[end:]
    (tmp_path / "other.yaml").write_text(text)
    found = experiment(str(tmp_path / "other.yaml"), LEAVES, "0s")
    assert found.unheard and found.judgement.verdict == "inconclusive" and found.account.total == 0
    assert not any(life.deleted for life in found.lives)
    assert "fresh requests was answered (refused)" in found.judgement.sentence
    assert "nothing listens on their port 9090: correct targetPort of Service naive: the containers declare 8080" in (
        found.judgement.sentence
    )
    assert [each.id for each in found.judgement.advice] == ["neverAnswered"]
    lasted = found.began - min(each.sent for each in found.outcomes)
    assert 1.9 < lasted < 2.5 if probe else 29.9 < lasted < 31


WORKER = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker}
spec:
  replicas: 2
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {containers: [{name: worker, image: busybox:1.36}]}
"""


def test_another_workload_of_the_manifests_is_created_and_left_alone(tmp_path: Path) -> None:
    path = Path(with_spec(tmp_path, PULL, PULL))
    path.write_text(f"{path.read_text()}\n---\n{WORKER}")
    found = experiment(str(path), LEAVES, "4.9s")
    assert found.what == "Deployment polite" and found.account.lost == ()
    assert len([life for life in found.lives if life.deleted is not None]) == 3
    assert not any(life.name.startswith("worker") for life in found.lives)
    chosen = experiment(str(path), LEAVES, "4.9s", workload="deployment/polite")
    assert chosen.what == found.what


def test_another_workload_that_never_comes_up_is_named(tmp_path: Path) -> None:
    broken = WORKER.replace("busybox:1.36}", "busybox:1.36, resources: {requests: {cpu: 1k}}}")
    text, _, took = failure(tmp_path, PULL, PULL, broken)
    assert text.startswith("giving up waiting for Pods of deployment/worker to become available: 0 of 2 Pods")
    assert "Insufficient cpu" in text and took < 10


@pytest.mark.parametrize("phase", ["requests before", "begins", "the last requests"])
def test_a_rollout_ends_at_once_when_a_process_of_its_cluster_dies(phase: str) -> None:
    manifests = load_manifests((str(EXAMPLES / "polite.yaml"),))
    options = replace(RolloutOptions(load=Load(rates={"fresh": 20.0})), control=5.0, settle=5.0)
    target = find_target(manifests, options)

    async def main(world: World) -> tuple[str, float]:
        template = target.workload.obj["spec"]["template"]
        plan = parse_propagation([])
        async with VirtualRolloutCluster(world, template, LEAVES, VirtualLoad.to(LEAVES), plan, KEY) as cluster:
            dies: list[Any] = []
            at: list[float] = []

            def say(text: str) -> None:
                if phase in text:
                    at.append(monotonic(world.clock))
                    dies[0]("control-plane", 7, None, 9)

            cluster.on_process_died = dies.append  # type: ignore[method-assign]
            place = EmbeddedWorkspace(cluster, manifests, target)
            with pytest.raises(WorldError) as found:
                await RolloutSession(place, options, world, say=say).run()
            return str(found.value), monotonic(world.clock) - at[0]

    text, seconds = run_virtual(main)
    assert text == "the cluster's control-plane (pid 7 inside the cluster) was killed by SIGKILL"
    assert seconds < 1.0


def test_the_end_of_a_load_generator_that_has_done_its_work_is_no_death() -> None:
    manifests = load_manifests((str(EXAMPLES / "polite.yaml"),))
    options = RolloutOptions(load=Load(rates={"fresh": 20.0}))
    target = find_target(manifests, options)

    async def main(world: World) -> str:
        template = target.workload.obj["spec"]["template"]
        plan = parse_propagation([])
        async with VirtualRolloutCluster(world, template, LEAVES, VirtualLoad.to(LEAVES), plan, KEY) as cluster:
            ends: list[Any] = []
            cluster.on_process_died = ends.append  # type: ignore[method-assign]

            def say(text: str) -> None:
                if "the last requests" in text:
                    ends[0]("load", 5, 0, None)

            found = await RolloutSession(EmbeddedWorkspace(cluster, manifests, target), options, world, say=say).run()
            return found.judgement.verdict

    assert run_virtual(main) == "nothing lost"
