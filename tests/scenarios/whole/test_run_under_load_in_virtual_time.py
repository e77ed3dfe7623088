"""`run --load` in virtual time: real controllers, kubelet and proxy; all Pods of a workload are ended under load."""

import json
from io import StringIO
from pathlib import Path

from rich.console import Console

from lastcall.cli.output import document
from lastcall.cli.run.story import status_of
from lastcall.cli.run.under_load import send_requests, target_of_run
from lastcall.endings import Ending
from lastcall.endings.render.live import LiveTimeline
from lastcall.experiment.rollout.options import RolloutOptions
from lastcall.experiment.rollout.result import Result
from lastcall.experiment.run.embedded import EmbeddedRun
from lastcall.experiment.run.options import RunOptions
from lastcall.experiment.run.session import RunSession
from lastcall.kube.apiserver.auth.pki import new_key_pem
from lastcall.kube.cluster.propagation import parse_propagation
from lastcall.kube.cluster.virtual.tree import VirtualRolloutCluster
from lastcall.manifests.read import load_manifests
from lastcall.records.record import Recorder
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Kind
from lastcall.traffic.virtual import Behaviour, KindBehaviour, VirtualLoad
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "rollout"
KEY = new_key_pem()
CUT = Behaviour(0.0, 0.0, kinds={"slow": KindBehaviour(1.0, finished=False)})
FINISHES = Behaviour(0.0, 1.0, kinds={"slow": KindBehaviour(1.0, finished=True)})


class Cluster(VirtualRolloutCluster[VirtualLoad]):
    """With what a run needs beside it."""

    def recorder(self, actor: str) -> Recorder:
        return self._recorder.for_actor(actor)

    def kubeconfig_path(self) -> str:
        return ""

    def stop(self) -> None:
        pass


def run(name: str, behaviour: Behaviour, rates: dict[Kind, float], lag: str = "0s") -> tuple[list[Ending], Result]:
    manifests = load_manifests((str(EXAMPLES / f"{name}.yaml"),))
    plan = parse_propagation([lag])
    requests = RolloutOptions(load=Load(rates=rates), control=1.0, settle=0.0, disrupt="delete")
    requests = requests.with_cluster(propagation=plan)
    target = target_of_run(manifests, requests)

    async def main(world: World) -> tuple[list[Ending], Result]:
        template = target.workload.obj["spec"]["template"]
        console = Console(file=StringIO())
        async with Cluster(world, template, behaviour, VirtualLoad.to(behaviour), plan, KEY) as cluster:
            place = EmbeddedRun(cluster)
            session = RunSession(
                place, manifests, RunOptions(requests=requests), LiveTimeline(console, console), clock=world.clock
            )
            send_requests(session, cluster, requests)
            assert session.requests is not None
            session.requests.world = world
            endings = await session.run()
            assert session.found is not None
            return endings, session.found

    return run_virtual(main)


def test_what_is_under_way_at_pods_that_leave_at_once_is_lost_and_told_in_every_format() -> None:
    endings, found = run("naive", CUT, {"slow": 50.0})
    assert found.account.lost and {each.cause for each in found.account.lost} == {"cut off"}
    assert found.account.total < 150, "what comes when no Pod is ready any more does not count"
    assert status_of(endings, None, found) == 3 and len(endings) == 3
    told = {
        each: document(endings, each, kubernetes_version="1.36", status=3, requests=found)
        for each in ("text", "json", "html", "junit", "github")
    }
    assert all("requests lost" in text for text in told.values()), told.keys()
    requests = json.loads(told["json"])["requests"]
    assert (requests["disrupt"], requests["lost"]) == ("delete", len(found.account.lost))
    assert "--apply-advice" not in told["text"] and "ended gracefully" in told["text"]


def test_pods_that_finish_what_is_under_way_lose_nothing_however_long_they_take() -> None:
    endings, found = run("polite", FINISHES, {"fresh": 50.0, "slow": 50.0})
    assert (found.judgement.verdict, found.account.lost) == ("nothing lost", ()), found.judgement.sentence
    assert status_of(endings, None, found) == 0 and found.account.total > 40


def test_a_change_of_endpoints_that_is_late_is_to_blame_and_not_that_every_pod_has_gone() -> None:
    _, found = run("naive", CUT, {"fresh": 100.0}, lag="1s")
    assert {each.cause for each in found.account.lost} == {"late endpoint"} and len(found.account.lost) > 50
    assert found.judgement.advice[0].patch["spec"]["template"]["spec"]["containers"][0]["lifecycle"]
