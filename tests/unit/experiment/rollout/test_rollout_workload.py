"""`lastcall rollout` with several workloads: which is disrupted, and whose Pods the Service sends to besides."""

from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from lastcall.cli.requests import complete_workload
from lastcall.cli.rollout.command import rollout
from lastcall.errors import UserError
from lastcall.experiment.rollout.options import RolloutOptions
from lastcall.experiment.rollout.target import Target, find_target, not_served, sent_to_strangers, with_advice
from lastcall.experiment.rollout.workload import find_workload, kubectl_name, others_of, with_pods
from lastcall.manifests.read import Manifest, load_manifests
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Outcome

WEB = {"app": "shop", "part": "web"}
WORKER = {"app": "shop", "part": "worker"}


def workload(name: str, labels: dict[str, str], kind: str = "Deployment", port: int = 0) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox:1.36", **({"ports": [{"containerPort": port}]} if port else {})}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            **({"serviceName": name} if kind == "StatefulSet" else {}),
        },
    }


def service(name: str, selector: dict[str, str], port: int = 8080) -> dict[str, Any]:
    spec = {"selector": selector, "ports": [{"port": 80, "targetPort": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def loaded(tmp_path: Path, *objects: dict[str, Any]) -> list[Manifest]:
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    return load_manifests([str(tmp_path / "all.yaml")])


def two(tmp_path: Path, *more: dict[str, Any], port: int = 0) -> list[Manifest]:
    return loaded(tmp_path, workload("web", WEB, port=port), workload("worker", WORKER), *more)


@pytest.mark.parametrize(
    "asked", ["deployment/web", "Deployment/web", "deploy/web", "deployments/web", "deployment.apps/web", "web"]
)
def test_a_workload_is_named_as_kubectl_names_it(tmp_path: Path, asked: str) -> None:
    manifests = two(tmp_path)
    assert kubectl_name(find_workload(manifests, asked, "")) == "deployment/web"
    assert [kubectl_name(each) for each in others_of(manifests, find_workload(manifests, asked, ""))] == [
        "deployment/worker"
    ]


def test_of_several_workloads_the_one_behind_a_service_is_meant(tmp_path: Path) -> None:
    manifests = two(tmp_path, service("shop", WEB))
    assert find_target(manifests, RolloutOptions()).workload.obj["metadata"]["name"] == "web"


def test_of_several_behind_services_the_one_that_declares_the_port_is_meant(tmp_path: Path) -> None:
    manifests = two(tmp_path, service("shop", {"app": "shop"}), port=8080)
    assert find_target(manifests, RolloutOptions()).workload.obj["metadata"]["name"] == "web"


def test_a_service_that_is_chosen_chooses_its_workload(tmp_path: Path) -> None:
    manifests = two(tmp_path, service("shop", WEB), service("jobs", WORKER))
    assert find_target(manifests, RolloutOptions(service="jobs")).workload.obj["metadata"]["name"] == "worker"


@pytest.mark.parametrize(
    ("selectors", "asked", "words"),
    [
        ([], "", "holds? 2 workloads, and no Service selects the Pods of any: deployment/web, deployment/worker\n"
                 "fix: choose the one to update, as in --workload deployment/web"),
        ([{"app": "shop"}], "", "Services select the Pods of 2 of them"),
        ([], "deployment/wbe", r"not in the manifests \(did you mean deployment/web\?\), which hold deployment/web, "
                               "deployment/worker"),
        ([], "statefulset/web", r"--workload statefulset/web: not in the manifests, which hold deployment/web"),
        ([], "job/web", "job is not a Deployment, StatefulSet, DaemonSet or ReplicaSet; the manifests hold deployment"),
    ],
)  # fmt: skip
def test_what_does_not_say_which_is_refused_with_those_that_there_are(
    tmp_path: Path, selectors: list[dict[str, str]], asked: str, words: str
) -> None:
    manifests = two(tmp_path, *(service(f"s{number}", each) for number, each in enumerate(selectors)))
    with pytest.raises(UserError, match=words):
        find_target(manifests, RolloutOptions(workload=asked))


def test_manifests_without_any_say_so(tmp_path: Path) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "labels": WEB},
           "spec": {"containers": [{"name": "c", "image": "busybox:1.36"}]}}  # fmt: skip
    with pytest.raises(UserError, match="the manifests have no Deployment, StatefulSet, DaemonSet or ReplicaSet"):
        find_target(loaded(tmp_path, pod, service("shop", WEB)), RolloutOptions())


def test_two_of_one_name_are_told_apart_by_their_kind_and_only_one_gets_the_advice(tmp_path: Path) -> None:
    manifests = loaded(tmp_path, workload("web", WEB), workload("web", WORKER, "StatefulSet"), service("shop", WEB))
    with pytest.raises(
        UserError, match="--workload web is ambiguous: deployment/web in namespace default, statefulset/web"
    ):
        find_target(manifests, RolloutOptions(workload="web"))
    target = find_target(manifests, RolloutOptions(workload="deploy/web"))
    changed = with_advice(manifests, target.workload.obj, {"spec": {"replicas": 7}})
    found = {
        each.resource.kind: each.obj["spec"].get("replicas") for each in changed if each.resource.kind != "Service"
    }
    assert found == {"Deployment": 7, "StatefulSet": manifests[-1].obj["spec"].get("replicas")}


def test_a_shell_completes_the_workloads_of_the_manifests_before_the_option(tmp_path: Path) -> None:
    two(tmp_path)
    context = click.Context(rollout)
    (parameter,) = [each for each in rollout.params if each.name == "workload"]
    context.params["manifests"] = (str(tmp_path / "all.yaml"),)
    assert [each.value for each in complete_workload(context, parameter, "dep")] == [
        "deployment/web",
        "deployment/worker",
    ]
    context.params["manifests"] = (str(tmp_path / "none.yaml"),)
    assert complete_workload(context, parameter, "") == []


def outcome(number: int, served_by: str = "", lost: Any = "") -> Outcome:
    at = number / 100
    return Outcome(number, "fresh", at, at, at + 0.01, number, 0.0, 0 if lost else 200, served_by, lost)


def misled(tmp_path: Path, outcomes: list[Outcome], *, known: bool = True) -> Any:
    manifests = two(tmp_path, service("shop", {"app": "shop"}))
    target: Target = find_target(manifests, RolloutOptions(workload="web"))
    return sent_to_strangers(outcomes, target, {"10.0.0.9": others_of(manifests, target.workload) if known else []})


GOOD = [outcome(number, "10.0.0.2") for number in range(5)]
REFUSED = [outcome(number, lost="refused") for number in range(5, 10)]


def test_requests_that_go_to_the_pods_of_another_workload_and_are_refused_have_its_name_and_a_selector(
    tmp_path: Path,
) -> None:
    judgement = misled(tmp_path, [*GOOD, *REFUSED])
    assert judgement.verdict == "inconclusive"
    assert judgement.sentence == (
        "50 % of the requests were lost before anything was disrupted (refused): Service shop selects the Pods of "
        "deployment/worker, too, and none of those answered. spec.selector of Service shop: {app: shop, part: web}, "
        "which only the Pods of deployment/web have."
    )
    assert [each.id for each in judgement.advice] == ["serviceSelectsStranger"] and not judgement.patch
    assert "selects another Pod, too" in misled(tmp_path, [*GOOD, *REFUSED], known=False).sentence


def test_a_second_workload_that_answers_is_no_stranger(tmp_path: Path) -> None:
    """A canary beside the stable one, say."""
    assert misled(tmp_path, [*GOOD, outcome(20, "10.0.0.9"), *REFUSED]) is None
    assert misled(tmp_path, GOOD) is None


def test_a_run_takes_pods_for_workloads_and_those_with_the_same_labels_for_one(tmp_path: Path) -> None:
    def pod(name: str, labels: dict[str, str]) -> dict[str, Any]:
        container = {"name": "c", "image": "busybox:1.36"}
        meta = {"name": name, "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [container]}}

    file = tmp_path / "pods.yaml"
    file.write_text(yaml.safe_dump_all([pod("a", WEB), pod("b", WEB), pod("job", WORKER), service("web", WEB)]))
    manifests = load_manifests([str(file)])
    target = find_target(with_pods(manifests), RolloutOptions())
    assert (kubectl_name(target.workload), target.workload.obj["spec"]["template"]["metadata"]["labels"]) == (
        "pod/b",
        WEB,
    )
    assert [kubectl_name(each) for each in others_of(with_pods(manifests), target.workload)] == ["pod/job"]
    with pytest.raises(UserError, match="the manifests have no Deployment"):
        find_target(manifests, RolloutOptions())
    with pytest.raises(UserError, match="--workload pod/c: not in the manifests"):
        find_target(with_pods(manifests), RolloutOptions(workload="pod/c"))


def answered(kind: str, status: int) -> Outcome:
    return Outcome(1, kind, 5.0, 5.0, 5.1, 1, 0.0, status, "10.0.0.1", "")  # type: ignore[arg-type]


def test_a_path_that_the_application_does_not_have_tests_nothing() -> None:
    outcomes = [*[answered("fresh", 200)] * 5, *[answered("slow", 404)] * 20]
    judgement = not_served(outcomes, Load(slow_path="/report"))
    assert judgement is not None and judgement.verdict == "inconclusive"
    assert judgement.sentence == (
        "/report answered 404 to all 20 slow requests: name a path of your application with --slow-path"
    )
    both = not_served([*[answered("fresh", 404)] * 3, answered("keep-alive", 403)], Load(path="/a"))
    assert both is not None
    assert both.sentence.startswith("/a answered 403, 404 to all 4 fresh and keep-alive requests: name a path")
    assert not_served([*outcomes, answered("slow", 200)], Load()) is None
    assert not_served(outcomes[:5], Load()) is None
