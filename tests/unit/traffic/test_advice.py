"""Advice keeps what the manifest has, changes no more than it must, and is checked before anybody sees it."""

from typing import Any

import pytest
from rollout_lives import pod_life

from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.kube.api.resources import DEPLOYMENTS
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.account import account
from lastcall.traffic.advice_check import why_not
from lastcall.traffic.hooks import own_sleep, waiting_hook
from lastcall.traffic.lives import PodLife
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.verdict import Judgement, judge

POD = {"name": "web-1", "ip": "10.244.0.2"}


def deployment(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    app = {"name": "app", "image": "app:1", "ports": [{"name": "http", "containerPort": 8080}], **(container or {})}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [app, {"name": "log", "image": "log:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def lost(number: int, at: float, how: str = "refused", served_by: str = "10.244.0.2") -> Outcome:
    return Outcome(number, "fresh", at, at, at, 0, 0.0, 0, served_by, how)  # type: ignore[arg-type]


def good(number: int, at: float) -> Outcome:
    return Outcome(number, "fresh", at, at, at + 0.01, 1, 0.0, 200, "10.244.0.2", "")


def not_listening(owner: dict[str, Any]) -> Judgement:
    """A Pod that is Ready at 20 and answers from 21 on."""
    new = pod_life("n", **POD, ready=20.0, routed=20.1)
    found = account([good(1, 5.0), lost(2, 20.5), good(3, 21.0)], [new], [], 10.0)
    assert [each.cause for each in found.lost] == ["not listening yet"]
    return judge(found, [new], owner, 8080)


def too_late(owner: dict[str, Any], hook: float | None = None) -> Judgement:
    """A Pod that is deleted at 10, gets its signal at 11, exits at once, and is routed to until 12."""
    ending = pod_life("e", **POD, ready=0.5, routed=1.0, deleted=10.0, hook=hook, term=11.0, exited=11.1, unrouted=12.0)
    return judge(account([good(1, 9.0), lost(2, 11.5)], [ending], [], 5.0), [ending], owner, 8080)


def patched(owner: dict[str, Any], judgement: Judgement) -> dict[str, Any]:
    assert why_not(owner, judgement.patch) == ""
    return strategic_merge_patch(DEPLOYMENTS, owner, judgement.patch)["spec"]["template"]["spec"]


def test_a_container_without_a_readiness_probe_gets_one() -> None:
    owner = deployment()
    app, log = patched(owner, not_listening(owner))["containers"]
    assert app["readinessProbe"] == {"tcpSocket": {"port": 8080}, "periodSeconds": 1} and "readinessProbe" not in log


PROBES = [
    ("of the same port", {"httpGet": {"path": "/", "port": 8080}}, "and the port then refused requests", None),
    ("of the same port by its name", {"httpGet": {"path": "/", "port": "http"}}, "then refused requests", None),
    ("that asks a program", {"exec": {"command": ["true"]}}, "succeeded before port 8080 listened", None),
    ("of another port", {"httpGet": {"path": "/up", "port": 9000}, "periodSeconds": 7}, "asks port 9000",
     {"httpGet": {"path": "/up", "port": 8080}, "periodSeconds": 7}),
    ("of another port by TCP", {"tcpSocket": {"port": 9000}}, "asks port 9000", {"tcpSocket": {"port": 8080}}),
]  # fmt: skip


@pytest.mark.parametrize(("probe", "words", "after"), [row[1:] for row in PROBES], ids=[row[0] for row in PROBES])
def test_a_probe_that_is_there_never_gets_a_second_handler(
    probe: dict[str, Any], words: str, after: dict[str, Any] | None
) -> None:
    owner = deployment({"readinessProbe": probe})
    judgement = not_listening(owner)
    assert words in judgement.sentence
    if after is None:
        assert judgement.patch == {}
    else:
        assert patched(owner, judgement)["containers"][0]["readinessProbe"] == after


SH = ["/bin/sh", "-c"]
HOOKS = [
    ("none", None, 0, {"sleep": {"seconds": 4}}),
    ("a short sleep", {"sleep": {"seconds": 1}}, 1, {"sleep": {"seconds": 4}}),
    ("the image's sleep", {"exec": {"command": ["sleep", "1"]}}, 1, {"sleep": {"seconds": 4}}),
    ("the shell's sleep", {"exec": {"command": [*SH, "exec sleep 1"]}}, 1, {"sleep": {"seconds": 4}}),
    ("a script", {"exec": {"command": [*SH, "nginx -s quit"]}}, None,
     {"exec": {"command": [*SH, "sleep 4; nginx -s quit"]}}),
    ("a script that sleeps first", {"exec": {"command": [*SH, "sleep 1 && nginx -s quit", "x"]}}, None,
     {"exec": {"command": [*SH, "sleep 4; nginx -s quit", "x"]}}),
    ("a program", {"exec": {"command": ["nginx", "-s", "quit"]}}, None, None),
    ("a request", {"httpGet": {"path": "/drain", "port": 8080}}, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("hook", "sleeps", "after"), [row[1:] for row in HOOKS], ids=[row[0] for row in HOOKS])
def test_a_hook_that_waits_does_what_it_did_before(
    hook: dict[str, Any] | None, sleeps: int | None, after: dict[str, Any] | None
) -> None:
    owner = deployment({"lifecycle": {"preStop": hook}} if hook else None)
    container = owner["spec"]["template"]["spec"]["containers"][0]
    assert own_sleep(container) == sleeps
    judgement = too_late(owner)
    if after is None:
        assert judgement.patch == {} and "has a preStop hook already" in judgement.sentence
        assert "would have saved" not in judgement.sentence
        return
    # 2 s from the DELETE until the rules had changed, 1 s to spare: 3 s
    text = str(after).replace("4", "3")
    assert str(patched(owner, judgement)["containers"][0]["lifecycle"]["preStop"]) == text


def hook_record(kind: str, **facts: Any) -> Record:
    return Record("kubelet-b-1", 10_000_000_000, 0, "kubelet", kind, "e", "app", "", facts, "", "observed")


REFUSED = 'Get "http://10.244.0.2:8081/drain": dial tcp 10.244.0.2:8081: connect: connection refused'


@pytest.mark.parametrize(
    ("outcome", "facts", "because"),
    [
        ("failed", {"message": REFUSED}, REFUSED),
        ("failed", {"exitCode": 3, "message": "exited with 3"}, "exit code 3"),
        ("succeeded", {}, ""),
    ],
)
def test_a_hook_that_failed_is_to_be_corrected_before_it_is_to_wait(
    outcome: str, facts: dict[str, Any], because: str
) -> None:
    owner = deployment({"lifecycle": {"preStop": {"httpGet": {"path": "/drain", "port": 8081}}}})
    moments = {"ready": 0.5, "routed": 1.0, "deleted": 10.0, "hook": 10.0, "term": 11.0, "exited": 11.1}
    ending = pod_life("e", **POD, **moments, unrouted=12.0)
    ending.records = [hook_record(kinds.PRE_STOP_FINISHED, handler="httpGet", outcome=outcome, **facts)]
    judgement = judge(account([good(1, 9.0), lost(2, 11.5)], [ending], [], 5.0), [ending], owner, 8080)
    assert judgement.patch == {}
    if not because:
        assert "let that one wait" in judgement.sentence
        return
    assert f"The preStop hook of app failed ({because}), so it kept nothing waiting: correct it" in judgement.sentence
    assert "at least 3 s" in judgement.sentence and "let that one wait" not in judgement.sentence


def test_what_is_cut_off_after_a_failed_hook_asks_for_the_hook_first() -> None:
    owner = deployment({"lifecycle": {"preStop": {"httpGet": {"path": "/drain", "port": 8081}}}})
    moments = {"ready": 0.5, "routed": 1.0, "deleted": 10.0, "hook": 10.0, "term": 11.0, "exited": 11.5}
    ending = pod_life("e", **POD, **moments, unrouted=10.5)
    ending.records = [hook_record(kinds.PRE_STOP_FINISHED, handler="httpGet", outcome="failed", message=REFUSED)]
    cut = Outcome(2, "fresh", 10.4, 10.4, 11.5, 1, 0.0, 0, "10.244.0.2", "reset before bytes")
    judgement = judge(account([good(1, 9.0), cut], [ending], [], 5.0), [ending], owner, 8080)
    assert judgement.advice[0].program == "fixHook"
    assert f"The preStop hook of app failed ({REFUSED})" in judgement.sentence
    assert "Correct the hook first" in judgement.sentence


def test_a_patch_drops_other_handlers_only_where_there_are_some() -> None:
    sleeping = {"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}
    running = {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}}}
    for container, needed in (({}, False), (sleeping, False), (running, True)):
        patch = too_late(deployment(container)).patch["spec"]["template"]["spec"]["containers"][0]
        assert ("$retainKeys" in patch["lifecycle"]["preStop"]) is needed


QUIT = {"exec": {"command": [*SH, "wget -qO- localhost:8080/quit; sleep 1"]}}


def quits(hook: dict[str, Any]) -> Judgement:
    """A Pod that is deleted at 10, whose hook makes it stop listening at 10.1, and that is routed to until 12."""
    ending = pod_life(
        "e", **POD, ready=0.5, routed=1.0, deleted=10.0, hook=10.0, listener_closed=10.1, term=11.0, exited=11.1,
        unrouted=12.0,
    )  # fmt: skip
    found = account([good(1, 9.0), lost(2, 10.5), lost(3, 11.5)], [ending], [], 5.0)
    assert [each.cause for each in found.lost] == ["closed by its hook"] * 2
    return judge(found, [ending], deployment({"lifecycle": {"preStop": hook}}), 8080)


def test_a_hook_that_tells_the_program_to_quit_waits_before_it_does() -> None:
    judgement = quits(QUIT)
    (advice,) = judgement.advice
    assert (advice.id, advice.saves, judgement.pause) == ("hookClosesListener", 2, 3)
    hook = patched(deployment({"lifecycle": {"preStop": QUIT}}), judgement)["containers"][0]["lifecycle"]["preStop"]
    assert hook == {"exec": {"command": [*SH, "sleep 3; wget -qO- localhost:8080/quit; sleep 1"]}}


@pytest.mark.parametrize("hook", [{"httpGet": {"path": "/quit", "port": 8080}}, {"exec": {"command": ["quit"]}}])
def test_where_a_hook_cannot_wait_by_itself_its_author_lets_it(hook: dict[str, Any]) -> None:
    judgement = quits(hook)
    assert judgement.patch == {} and judgement.advice[0].program == "fixHook"
    assert "Let it wait 3 s first" in judgement.sentence and judgement.pause == 3


def test_a_container_that_waits_longer_already_keeps_its_hook() -> None:
    """As metrics beside the server do, where somebody wrote the hook at the wrong container."""
    owner = deployment()
    metrics = {"name": "metrics", "image": "m:1", "ports": [{"containerPort": 9100}], "lifecycle": SLOW["lifecycle"]}
    owner["spec"]["template"]["spec"]["containers"].append(metrics)
    app, _, kept = patched(owner, too_late(owner))["containers"]
    assert app["lifecycle"]["preStop"] == {"sleep": {"seconds": 3}} and kept == metrics


def test_a_hook_that_is_kept_has_its_own_time_in_the_grace_period() -> None:
    owner = deployment({"lifecycle": {"preStop": {"exec": {"command": [*SH, "drain"]}}}})
    owner["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 5
    # 3 s of sleep, 1 s of the hook as it was, 0.1 s until the exit, 1 s to spare
    assert patched(owner, too_late(owner, hook=10.0))["terminationGracePeriodSeconds"] == 6
    assert "terminationGracePeriodSeconds: 6" in too_late(owner, hook=10.0).sentence


def test_a_grace_period_that_is_long_enough_is_left_alone() -> None:
    owner = deployment()
    assert "terminationGracePeriodSeconds" not in too_late(owner).patch["spec"]["template"]["spec"]


def nobody(owner: dict[str, Any], disrupt: str) -> Judgement:
    found = account([good(1, 5.0), lost(2, 11.0, served_by="")], [], [], 10.0)
    return judge(found, [], owner, 8080, disrupt=disrupt)


def test_an_update_keeps_its_surge_and_a_deletion_asks_for_replicas() -> None:
    rolling = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}}
    update = nobody(deployment(**rolling), "rollout").patch["spec"]["strategy"]["rollingUpdate"]
    assert update == {"maxUnavailable": 0, "maxSurge": 2}
    assert nobody(deployment(), "rollout").patch["spec"]["strategy"]["rollingUpdate"]["maxSurge"] == 1
    assert nobody(deployment(replicas=1), "drain").patch == {"spec": {"replicas": 2}}


@pytest.mark.parametrize(
    ("strategy", "field", "what"),
    [
        ({"type": "Recreate"}, {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]},
         "PersistentVolumeClaim data"),
        ({"type": "Recreate"}, {"hostPort": 80}, "hostPort 80"),
        ({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, {"hostPort": 80},
         "hostPort 80"),
    ],
)  # fmt: skip
def test_an_update_that_may_not_run_two_pods_at_a_time_gets_no_patch_that_wants_two(
    strategy: dict[str, Any], field: dict[str, Any], what: str
) -> None:
    owner = deployment(strategy=strategy)
    spec = owner["spec"]["template"]["spec"]
    if "hostPort" in field:
        spec["containers"][0]["ports"][0].update(field)
    else:
        spec.update(field)
    judgement = nobody(owner, "rollout")
    assert judgement.patch == {} and f"if two Pods may have {what} at the same time" in judgement.sentence
    assert nobody(deployment(strategy={"type": "Recreate"}), "rollout").patch


def test_a_pod_that_no_other_stands_in_for_is_not_told_to_wait_for_rules_that_go_on_naming_it() -> None:
    ending = pod_life("e", **POD, ready=0.5, routed=1.0, deleted=10.0, term=11.0, exited=11.1, unrouted=15.0)
    later = pod_life("l", name="web-2", ip="10.244.0.3", ready=14.0, routed=15.0)
    other = pod_life("o", name="web-3", ip="10.244.0.4", ready=2.0, routed=2.1)
    cut = Outcome(2, "fresh", 10.99, 10.99, 11.05, 0, 0.0, 0, "10.244.0.2", "reset before bytes")
    for lives, id_ in (([ending, later], "cutOff"), ([ending, later, other], "lateEndpoint")):
        found = account([good(1, 9.0), cut], lives, [], 5.0)
        assert [each.id for each in judge(found, lives, deployment(), 8080).advice] == [id_]


def test_a_hook_on_a_container_that_does_not_serve_is_told_as_such() -> None:
    owner = deployment()
    owner["spec"]["template"]["spec"]["containers"][1]["lifecycle"] = {"preStop": {"sleep": {"seconds": 10}}}
    judgement = too_late(owner)
    assert (
        "The preStop hook of log does not keep app waiting, which serves port 8080 and has none" in judgement.sentence
    )
    assert "A preStop hook `sleep: {seconds: 3}` on app would have saved it" in judgement.sentence
    after = patched(owner, judgement)["containers"]
    assert [each["lifecycle"]["preStop"]["sleep"]["seconds"] for each in after] == [3, 10]


def test_a_hook_of_each_container_is_no_hook_on_the_wrong_one() -> None:
    owner = deployment({"lifecycle": {"preStop": {"sleep": {"seconds": 1}}}})
    owner["spec"]["template"]["spec"]["containers"][1]["lifecycle"] = {"preStop": {"sleep": {"seconds": 10}}}
    assert "does not keep" not in too_late(owner).sentence


def test_what_would_change_nothing_is_no_patch() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    judgement = nobody(deployment(strategy=rolling), "rollout")
    assert judgement.patch == {} and judgement.advice[0].refused == "it changes nothing"
    assert "It cannot be tried here: it changes nothing." in judgement.sentence


def in_app(**fields: Any) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", **fields}]}}}}


PROBED = {"readinessProbe": {"httpGet": {"path": "/", "port": 8080}}}
SLOW = {"lifecycle": {"preStop": {"sleep": {"seconds": 9}}}}
REFUSED = [
    ("a second handler", PROBED, in_app(readinessProbe={"tcpSocket": {"port": 8080}}), "may not specify more than 1"),
    ("another handler", PROBED,
     in_app(readinessProbe={"$retainKeys": ["tcpSocket"], "tcpSocket": {"port": 8080}}), "handler of app's readiness"),
    ("less grace", {}, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 2}}}}, "shortens the grace"),
    ("fewer replicas", {}, {"spec": {"replicas": 1}}, "it takes replicas away"),
    ("a shorter sleep", SLOW, in_app(lifecycle={"preStop": {"sleep": {"seconds": 2}}}), "app's preStop hook does"),
    ("no hook", SLOW, in_app(lifecycle={"preStop": None}), "app's preStop hook does"),
    ("a port that is none", {}, in_app(readinessProbe={"tcpSocket": {"port": 0}}), "must be between 1 and 65535"),
    ("a container less", {}, {"spec": {"template": {"spec": {"containers": [{"name": "log", "$patch": "delete"}]}}}},
     "it takes container log away"),
    ("nothing", {}, {"spec": {"replicas": 3}}, "it changes nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("container", "patch", "why"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_patch_that_takes_away_or_is_invalid_is_none(
    container: dict[str, Any], patch: dict[str, Any], why: str
) -> None:
    assert why in why_not(deployment(container), patch)


def test_what_was_wrong_before_is_not_the_patchs() -> None:
    owner = deployment({"image": ""})
    assert why_not(owner, {"spec": {"replicas": 4}}) == ""


def test_where_hooks_cannot_sleep_the_images_sleep_is_written() -> None:
    hook = waiting_hook({"name": "app"}, 4, sleep_hooks=False)
    assert hook.patch == {"exec": {"command": ["sleep", "4"]}}


def started_slowly(after: float) -> tuple[list[Outcome], list[PodLife]]:
    """Ready at 1, answers from 3 on; disrupted at 10."""
    outcomes = [lost(1, 1.5, served_by=""), lost(2, 2.0, served_by=""), *(good(n, n) for n in range(3, 9))]
    new = pod_life("n", name="web-2", ip="10.244.0.3", ready=after, routed=after, probed=None)
    return outcomes, [pod_life("o", **POD, ready=1.0, routed=1.0), new]


def test_pods_that_are_ready_before_they_listen_are_the_cause_of_what_was_lost_at_the_start() -> None:
    outcomes, lives = started_slowly(11.0)
    late = Outcome(20, "fresh", 11.5, 11.5, 11.5, 0, 0.0, 0, "10.244.0.3", "refused")
    found = account([*outcomes, late], lives, [], 10.0)
    assert (found.control_lost, found.not_listening_yet) == (2, 2)
    owner = deployment()
    told = judge(found, lives, owner, 8080)
    assert told.verdict == "requests lost" and "2 more were before the disruption" in told.sentence
    assert "readinessProbe" in patched(owner, told)["containers"][0]


def test_without_a_loss_after_the_disruption_they_are_told_with_the_advice_and_leave_the_verdict_open() -> None:
    outcomes, lives = started_slowly(11.0)
    found = account(outcomes, lives, [], 10.0)
    told = judge(found, lives, deployment(), 8080)
    assert told.verdict == "inconclusive" and "all of them sent to a Pod" in told.sentence
    assert "A readinessProbe would keep requests away" in told.sentence and told.patch


def test_losses_of_another_kind_before_the_disruption_stay_a_reason_to_look_first() -> None:
    outcomes, lives = started_slowly(11.0)
    found = account([*outcomes, lost(30, 5.0, "truncated")], lives, [], 10.0)
    told = judge(found, lives, deployment(), 8080)
    assert told.verdict == "inconclusive" and "2 of them sent to a Pod" in told.sentence


def served_late(probe: dict[str, Any] | None, path: str = "/") -> tuple[Judgement, dict[str, Any]]:
    """A Pod that is Ready at 11, answers 503 at 12 and serves from 13 on; disrupted at 10."""
    owner = deployment({"readinessProbe": probe} if probe else None)
    new = pod_life("n", name="web-2", ip="10.244.0.3", ready=11.0, routed=11.0)
    outcomes = [
        good(1, 5.0),
        Outcome(2, "fresh", 12.0, 12.0, 12.0, 1, 0.0, 503, "10.244.0.3", "5xx"),
        Outcome(3, "fresh", 13.0, 13.0, 13.0, 1, 0.0, 200, "10.244.0.3", ""),
    ]
    lives = [pod_life("o", **POD, ready=1.0, routed=1.0), new]
    found = account(outcomes, lives, [], 10.0)
    assert [each.cause for each in found.lost] == ["not serving yet"]
    return judge(found, lives, owner, 8080, path=path), owner


def test_a_probe_that_only_connects_is_replaced_by_one_that_asks_what_was_answered_with_errors() -> None:
    told, owner = served_late({"tcpSocket": {"port": 8080}, "periodSeconds": 3}, "/api")
    assert "marked Ready before its application served" in told.sentence and "only opens a connection" in told.sentence
    probe = patched(owner, told)["containers"][0]["readinessProbe"]
    assert probe == {"httpGet": {"path": "/api", "port": 8080}, "periodSeconds": 3}


def test_a_probe_that_asks_another_page_is_named_and_left_to_its_user() -> None:
    told, _ = served_late({"httpGet": {"path": "/up", "port": 8080}}, "/api")
    assert "asks for /up, which succeeded while /api was answered with errors" in told.sentence and not told.patch
    told, _ = served_late({"exec": {"command": ["true"]}})
    assert "The readinessProbe of app (exec) succeeded while" in told.sentence and not told.patch


def test_errors_of_a_pod_that_never_served_or_that_was_ending_are_no_slow_start() -> None:
    error = Outcome(2, "fresh", 12.0, 12.0, 12.0, 1, 0.0, 503, "10.244.0.2", "5xx")
    deaf = pod_life("n", **POD, ready=11.0, routed=11.0)
    assert [each.cause for each in account([error], [deaf], [], 10.0).lost] == ["server error"]
    ending = pod_life("e", **POD, ready=1.0, routed=1.0, deleted=11.0, term=11.5, exited=14.0)
    assert [each.cause for each in account([error, good(3, 13.0)], [ending], [], 10.0).lost] == ["server error"]


ERRORS: list[tuple[str, list[PodLife], list[str], str]] = [
    ("ending", [pod_life("e", **POD, ready=1.0, routed=1.0, deleted=11.0, term=11.5, exited=14.0)], ["10.244.0.2"],
     "with errors while it ended: see the log of web-1."),
    ("serving", [pod_life("e", **POD, ready=1.0, routed=1.0)], ["10.244.0.2"],
     "with errors, in Pods that nothing had ended: see the log of web-1."),
    ("both", [pod_life("e", **POD, ready=1.0, routed=1.0, deleted=11.0, term=11.5, exited=14.0),
              pod_life("n", name="web-2", ip="10.244.0.3", ready=1.0, routed=1.0)], ["10.244.0.2", "10.244.0.3"],
     "The application answered with errors: see its log."),
    ("of no known Pod", [pod_life("e", **POD, ready=1.0, routed=1.0)], [""],
     "The application answered with errors: see its log."),
]  # fmt: skip


@pytest.mark.parametrize(("lives", "by", "text"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_are_told_with_whose_log_to_see_and_whether_it_was_ending(
    lives: list[PodLife], by: list[str], text: str
) -> None:
    served = [Outcome(2 + n, "fresh", 5.0, 5.0, 5.0, 1, 0.0, 200, address, "") for n, address in enumerate(by)]
    errors = [Outcome(9 + n, "fresh", 13.0, 13.0, 13.0, 1, 0.0, 500, address, "5xx") for n, address in enumerate(by)]
    told = judge(account([good(1, 5.0), *served, *errors], lives, [], 10.0), lives, deployment(), 8080)
    assert text in told.sentence


def test_errors_at_the_start_before_the_disruption_are_told_with_their_probe() -> None:
    errors = [Outcome(n, "fresh", n, n, n, 1, 0.0, 503, "10.244.0.2", "5xx") for n in (2, 3)]
    lives = [pod_life("o", **POD, ready=1.0, routed=1.0)]
    found = account([*errors, good(4, 5.0), good(5, 11.0)], lives, [], 10.0)
    assert (found.control_lost, found.not_serving_yet) == (2, 2)
    told = judge(found, lives, deployment({"readinessProbe": {"tcpSocket": {"port": 8080}}}), 8080)
    assert told.verdict == "inconclusive" and "all of them answered with an error by a Pod" in told.sentence
    assert told.patch


def test_a_program_that_pid_1_leaves_behind_is_named_when_its_requests_were_cut_off() -> None:
    def told(when: str, **process: Any) -> str:
        facts = {"when": when, "signal": "SIGTERM", "processes": [{"pid": 9, "name": "python3", **process}]}
        record = Record("r", int(10.2e9), 0, "runtime", kinds.PROCESSES_LEFT, "e", "app", facts=facts)
        ending = pod_life("e", **POD, ready=0.5, routed=1.0, deleted=8.0, term=10.0, exited=10.2, unrouted=9.0)
        ending.records.append(record)
        cut = Outcome(2, "fresh", 9.5, 9.5, 10.2, 1, 0.0, 0, "10.244.0.2", "closed before bytes")
        return judge(account([good(1, 7.0), cut], [ending], [], 8.0), [ending], deployment(), 8080).sentence

    assert "PID 1 of app exited on its stop signal while python3 still ran" in told("exit", state="S")
    assert "without finishing what it has begun" in told("SIGKILL", state="S")
    assert "without finishing what it has begun" in told("exit", state="S", afterSignal=True)


def test_a_program_behind_a_shell_with_a_trap_is_not_said_to_leave_its_requests() -> None:
    def told(exe: str, disposition: str) -> str:
        facts = {"pid": 9, "exe": exe, "signal": "SIGTERM", "disposition": disposition}
        record = Record("r", int(10.0e9), 0, "runtime", kinds.PROCESS_SIGNAL_STATE, "e", "app", facts=facts)
        ending = pod_life("e", **POD, ready=0.5, routed=1.0, deleted=8.0, term=10.0, exited=10.2, unrouted=9.0)
        ending.records.append(record)
        cut = Outcome(2, "fresh", 9.5, 9.5, 10.2, 1, 0.0, 0, "10.244.0.2", "closed before bytes")
        return judge(account([good(1, 7.0), cut], [ending], [], 8.0), [ending], deployment(), 8080).sentence

    assert "PID 1 of app is a shell with a trap" in told("/usr/bin/dash", "handled")
    assert "without finishing what it has begun" in told("/usr/bin/dash", "default")
    assert "without finishing what it has begun" in told("/usr/bin/python3", "handled")


@pytest.mark.parametrize(
    ("at", "unrouted", "paused"), [(12.0, 12.5, True), (13.5, 12.5, False), (12.0, None, False), (10.2, 12.5, False)]
)
def test_errors_from_the_stop_signal_on_are_saved_by_a_pause_only_while_new_requests_come(
    at: float, unrouted: float | None, paused: bool
) -> None:
    error = Outcome(2, "fresh", at, at, at, 1, 0.0, 503, "10.244.0.2", "5xx")
    ending = pod_life("e", **POD, ready=0.5, routed=1.0, deleted=10.0, term=11.0, exited=14.0, unrouted=unrouted)
    told = judge(account([good(1, 7.0), error], [ending], [], 8.0), [ending], deployment(), 8080)
    assert ("answers 503 from its stop signal on" in told.sentence) is paused
    assert bool(told.patch) is paused


def test_no_pause_is_advised_where_the_service_publishes_pods_that_are_not_ready() -> None:
    new = pod_life("n", name="web-2", ip="10.244.0.3", ready=20.0, routed=10.0)
    ending = pod_life("e", **POD, ready=0.5, routed=1.0, deleted=10.0, term=11.0, exited=11.1, unrouted=12.0)
    other = pod_life("x", name="web-3", ip="10.244.0.4", ready=0.5, routed=1.0)
    outcomes = [good(1, 9.0), lost(2, 11.5), lost(3, 15.0, served_by="10.244.0.3")]
    found = account(outcomes, [ending, new, other], [], 5.0)
    assert {each.cause for each in found.lost} == {"late endpoint", "not ready yet"}
    told = judge(found, [ending, new, other], deployment(), 8080)
    assert [each.id for each in told.advice] == ["unreadyPodsPublished"]
    assert not told.patch
