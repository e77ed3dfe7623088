"""The tour's experiments in virtual time: what its steps claim is so, and nothing of a run stays."""

from typing import Any

import make_tour
import orjson
import pytest
from scenario.programs import ShellPrograms
from virtual_cluster import VirtualCluster, run_cluster

from lastcall.endings.ending import build_endings
from lastcall.endings.story import Ending, PodFacts
from lastcall.kube.api.meta import name_of
from lastcall.kube.api.resources import NAMESPACES, PODS
from lastcall.records.explain import explain
from lastcall.ui.texts import texts
from lastcall.ui.tour.claims import CLAIMS
from lastcall.ui.tour.experiments import EXPERIMENTS
from lastcall.ui.tour.running import MANAGED, Run
from lastcall.world.tasks import Background

LESSON: Any = orjson.loads(make_tour.LESSON.read_bytes())
NOTHING = {"en": "", "ja": ""}


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_what_the_steps_claim_is_so(name: str) -> None:
    told, _ = make_tour.play(EXPERIMENTS[name])
    assert (told["state"], told["error"]) == ("done", NOTHING)
    claims = {claim for step in LESSON["steps"] if step["run"] == name for claim in step["claims"]}
    assert claims, "no step shows it"
    assert {claim: told["claims"][claim] for claim in claims if not told["claims"][claim]["held"]} == {}


def test_what_the_page_gets_is_what_the_virtual_cluster_says() -> None:
    made = make_tour.texts()
    assert [path.name for path, text in made.items() if path.read_text("utf-8") != text] == [], "make tour"
    compared = {step["run"] for step in LESSON["steps"] if step.get("versions")}
    assert compared == set(orjson.loads(made[make_tour.VERSIONS_FILE])["runs"])


def test_a_claim_that_is_not_so_is_told() -> None:
    """The claims of one experiment are not those of another: they can fail."""
    told, _ = make_tour.play(EXPERIMENTS["ignores"])
    assert told["claims"]["code0"] == {"held": False, "values": {"code": 137, "reason": "Error"}}
    assert told["claims"]["headStart"] == {"held": None, "values": {}}
    older, _ = make_tour.play(EXPERIMENTS["hookCounts"], "1.27")
    assert older["claims"]["hookCounts"]["held"] is False


def test_the_steps_have_the_chapters_claims_and_texts_of_the_catalogue() -> None:
    steps = LESSON["steps"]
    assert len(steps) <= 40
    assert len({step["id"] for step in steps}) == len(steps)
    assert {step["run"] for step in steps} == set(EXPERIMENTS)
    assert {claim for step in steps for claim in step["claims"]} == set(texts()["claims"]) == set(CLAIMS)
    assert [step["rule"] for step in steps if not explain(step["rule"])] == []
    assert [step["id"] for step in steps] == list(texts()["steps"])
    assert {step["chapter"] for step in steps} == set(texts()["chapters"])


def test_a_run_that_is_stopped_or_was_killed_leaves_nothing() -> None:
    told: list[dict[str, Any]] = []

    async def scenario(cluster: VirtualCluster) -> None:
        programs.append(ShellPrograms(cluster.world, cluster.volumes.messages))

        def ending_of(uid: str) -> Ending:
            records = [each for each in cluster.all_records if each.pod_uid in ("", uid)]
            return build_endings(records, [PodFacts(uid, "", "")], kubernetes_version="1.36")[0]

        def run(name: str) -> Run:
            return Run(EXPERIMENTS[name], cluster.client, cluster.world, ending_of, told.append)

        async def names() -> set[str]:
            return {name_of(each) for each in (await cluster.client.list(NAMESPACES)).items}

        before = await names()
        # One that was killed: its namespace, and in it a Pod that a finalizer holds.
        left = {"metadata": {"name": "lastcall-tour-left", "labels": MANAGED}}
        other = {"metadata": {"name": "lastcall-tour-other"}}
        for namespace in (left, other):
            await cluster.client.create(NAMESPACES, namespace)
        await cluster.sleep(1)
        pod = dict(EXPERIMENTS["held"].objects[0])
        await cluster.client.create(PODS, orjson.loads(orjson.dumps(pod)), "lastcall-tour-left")
        await cluster.sleep(700)

        task = Background(run("held").run(), name="tour")
        await cluster.wait_until(lambda: told and told[-1]["state"] == "ending", 60)
        await task.end()
        assert told[-1]["state"] == "stopped"
        await cluster.sleep(60)
        assert await names() == {*before, "lastcall-tour-other"}, "only what has the tour's label is taken away"

    programs: list[ShellPrograms] = []
    run_cluster(scenario, lambda config, sandbox: programs[0](config, sandbox))


def test_the_tour_without_a_cluster_has_every_run_with_its_story() -> None:
    data = make_tour.tour_data()
    assert set(data["runs"]) == set(EXPERIMENTS)
    for name, run in data["runs"].items():
        for told in (run["story"]["en"], run["story"]["ja"]):
            assert told["lanes"] and told["steps"] and not told["ongoing"], name
    evidence = {step["evidence"] for run in data["runs"].values() for step in run["story"]["en"]["steps"]}
    assert "predicted" in evidence, "nothing pretends to have been observed"
