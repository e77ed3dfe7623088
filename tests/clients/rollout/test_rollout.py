"""`lastcall rollout` on the real kernel: real servers, a real service proxy, and every request accounted for."""

import json
from pathlib import Path

import ordinary_user
import pytest
from staying import Place

pytestmark = pytest.mark.real_kernel

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "rollout"
LOAD = ("--propagation", "1s", "--load", "fresh=60,keep-alive=20", "--control", "1s", "--settle", "1s", "-o", "json")


def experiments(place: Place, name: str, *options: str) -> tuple[int, list[dict]]:
    result = place.run("rollout", str(EXAMPLES / f"{name}.yaml"), *LOAD, *options, timeout=240)
    assert result.out, result.err
    document = json.loads(result.out)
    assert document["schema"] == "lastcall/rollout/v1"
    for each in document["experiments"]:  # the generator's books and those of the applications agree
        assert not (each["withoutOutcome"] or each["unaccounted"] or each["answeredUnseen"])
        assert each["applicationOutput"]["whole"] and each["applicationOutput"]["requests"] > 0
    return result.status, document["experiments"]


@pytest.fixture(params=ordinary_user.USERS)
def place(request: pytest.FixtureRequest):
    with Place(request.param) as made:
        yield made


@pytest.mark.core
def test_a_server_that_drains_behind_a_sleeping_hook_loses_nothing(place: Place) -> None:
    status, (found,) = experiments(place, "polite")
    assert (status, found["verdict"], found["lost"], found["lostRequests"]) == (0, "nothing lost", 0, [])
    assert found["total"] > 200 and 0 < found["upperBound"] < 0.015 and found["control"]["lost"] == 0
    ended = [pod for pod in found["pods"] if pod["deleted"] is not None]
    assert len(ended) == 3 and not any(pod["killed"] for pod in ended)
    for pod in ended:
        # The lag is there, and the hook outlasts it.
        assert pod["unrouted"] - pod["deleted"] >= 0.95 and pod["term"] > pod["unrouted"]


@pytest.mark.core
def test_a_server_that_leaves_at_once_loses_requests_and_the_advice_saves_them() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        only_fresh = ("--load", "fresh=80", "--apply-advice")
        status, (before, after) = experiments(place, "naive", *only_fresh)
    assert before["verdict"] == "requests lost" and before["lost"] == len(before["lostRequests"]) > 0
    # A third of 80 requests a second for the second that each of three Pods is still named in vain: none is saved by
    # the SYN that TCP repeats.
    assert before["byCause"].get("late endpoint", 0) >= 40
    assert sum(before["byCause"].values()) == before["lost"]
    names = {pod["name"] for pod in before["pods"]}
    assert all(lost["pod"] in names for lost in before["lostRequests"] if lost["cause"] == "late endpoint")
    (container,) = before["advice"][0]["patch"]["spec"]["template"]["spec"]["containers"]
    assert container["lifecycle"]["preStop"]["sleep"]["seconds"] >= 2
    assert after["lost"] < before["lost"] and after["byCause"].get("late endpoint", 0) == 0
    assert status == (3 if after["lost"] else 0)


def test_requests_from_a_pod_lead_to_the_pods_that_the_nodes_rules_name(place: Place) -> None:
    _, (found,) = experiments(place, "naive", "--from", "pod", "--load", "fresh=60")
    assert found["from"] == "pod" and found["control"]["lost"] == 0
    assert found["byCause"].get("no endpoint", 0) == 0 and found["lost"] > 0
    assert "lastcall-client" in {pod["name"] for pod in found["pods"]}


def test_requests_over_a_published_port_are_laid_to_the_pods_that_the_node_led_them_to() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        status, (found,) = experiments(place, "naive", "--from", "published", "--load", "fresh=60")
    assert (status, found["verdict"], found["from"], found["control"]["lost"]) == (3, "requests lost", "published", 0)
    assert found["unaccounted"] == []
    # Such a port takes every connection: what is refused behind it is a reset to the client, and what nobody answers,
    # for the Pod is gone, is silence.
    behind = [lost for lost in found["lostRequests"] if lost["behindPublishedPort"]]
    assert {(lost["behindPublishedPort"], lost["class"]) for lost in behind} <= {
        ("refused", "reset before bytes"),
        ("connect timeout", "timeout"),
        ("connect timeout", "reset before bytes"),
    }
    assert "late endpoint" in {lost["cause"] for lost in behind} and any(lost["pod"] for lost in behind)
    shares = {each["pod"]: each["total"] for each in found["requestsByPod"]}
    assert {pod["name"] for pod in found["pods"] if pod["deleted"] is not None} & set(shares)


def test_a_hook_that_sleeps_two_seconds_is_safe_up_to_about_two_seconds_of_lag() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        manifest = place.home / "polite.yaml"
        text = (EXAMPLES / "polite.yaml").read_text()
        assert "seconds: 5" in text
        manifest.write_text(text.replace("seconds: 5", "seconds: 2"))
        search = ("--find-safe", "--confirm", "2", "--disrupt", "delete", "--load", "fresh=100")
        quick = ("--control", "500ms", "--settle", "500ms", "-o", "json")
        result = place.run("rollout", str(manifest), *search, *quick, timeout=240)
        manifest.unlink()
        assert result.status == 0 and "on the kernel" in result.err, result.err
        document = json.loads(result.out)
    found = document["findSafe"]
    assert found["lag"]["predicted"]["evidence"] == "predicted" and 1 <= found["lag"]["predicted"]["seconds"] <= 4
    assert found["predictedHow"] == "in virtual time"
    assert 0.5 <= found["lag"]["safe"] <= 4 and found["sentence"].startswith(f"safe up to {found['lag']['safe']:g} s")
    assert found["lag"]["unsafe"] is None or found["lag"]["safe"] < found["lag"]["unsafe"]
    assert 2 <= found["measuredEnd"]["toTerm"] < 30 and not found["measuredEnd"]["killed"]
    # Every run is there, with all that was lost in it.
    trials = [(each["seconds"], each["lost"]) for each in found["lag"]["trials"]]
    useful = [each for each in document["experiments"] if each["verdict"] != "inconclusive"]
    assert trials == [(float(each["propagation"].rstrip("s")), each["lost"]) for each in useful]


def changed(place: Place, old: str, new: str) -> str:
    """The naive server with something else in its manifest."""
    text = (EXAMPLES / "naive.yaml").read_text()
    assert old in text
    path = place.home / "changed.yaml"
    path.write_text(text.replace(old, new))
    return str(path)


def test_nothing_is_disrupted_when_nobody_listens_behind_the_service() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        manifest = changed(place, "targetPort: 8080", "targetPort: 9090")
        result = place.run("rollout", manifest, "--load", "fresh=60", "-o", "json", timeout=240)
        Path(manifest).unlink()
    assert result.status == 4, result.err
    (found,) = json.loads(result.out)["experiments"]
    assert (found["verdict"], found["disrupted"], found["total"]) == ("inconclusive", False, 0)
    assert [each["id"] for each in found["advice"]] == ["neverAnswered"] and "declare 8080" in found["sentence"]
    assert found["control"]["lost"] == found["control"]["total"] > 0
    assert not any(pod["deleted"] for pod in found["pods"])


def test_a_workload_that_crashes_again_and_again_is_given_up_with_status_3() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        manifest = changed(place, "asyncio.run(main())", "raise SystemExit('no configuration')")
        result = place.run("rollout", manifest, "--timeout", "600s", timeout=240)
        Path(manifest).unlink()
    assert result.status == 3, result.err
    assert "giving up waiting for Pods to become available: 0 of 3 Pods" in result.err
    assert "no configuration" in result.err and "fix: " in result.err


def test_a_load_balancer_outside_is_told_late_and_the_story_names_the_pods_it_still_sent_to() -> None:
    with Place(ordinary_user.USERS[-1]) as place:
        lag = ("--from", "balancer", "--propagation", "balancer=2s", "--load", "fresh=60")
        status, (found,) = experiments(place, "naive", *lag)
    assert (status, found["verdict"], found["from"]) == (3, "requests lost", "balancer")
    assert found["byCause"]["late endpoint"] > 20
    for pod in (pod for pod in found["pods"] if pod["deleted"] is not None):
        assert pod["unrouted"] - pod["deleted"] >= 1.95


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--load", "fast=3"), "kinds: fresh, keep-alive, slow, tcp"),
        (("--propagation", "soon"), "'soon' is not a time: write 1s, 250ms or 1.5"),
        (("--service", "other"), "--service other: the Services that select its Pods are naive"),
        (("--find-safe", "--apply-advice"), "--find-safe and --apply-advice do not work together"),
        (("--find-safe", "--confirm", "0"), "0 is too few: give a whole number of runs from 1 to 100"),
        (("--output-file", "/tmp/story.trace.json"), "the formats of rollout are .html, .json, .xml (JUnit) and .txt"),
        (("--find-safe", "--output", "html"), "--find-safe supports --output text and json, on stdout only"),
        (("--port", "9"), "--port 9: the TCP ports of Service naive are 80"),
    ],
)
def test_bad_input_is_named(place: Place, arguments: tuple[str, ...], why: str) -> None:
    result = place.run("rollout", str(EXAMPLES / "naive.yaml"), *arguments)
    assert result.status == 2 and why in " ".join(result.err.replace("│", " ").split())
