"""Every request in one row: who lost it, in which phase of its end, why, and what would have saved it."""

from dataclasses import replace
from typing import Any

import pytest
from rollout_lives import pod_life

from lastcall.experiment.rollout.report import tell_left
from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.kube.api.pods.recorded import container_facts
from lastcall.kube.api.resources import DEPLOYMENTS
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.account import account
from lastcall.traffic.bounds import upper_bound
from lastcall.traffic.causes import Loss, decide_cause
from lastcall.traffic.lives import PodLife
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.patches import merged
from lastcall.traffic.reduce import pod_lives
from lastcall.traffic.verdict import judge

AT = Moment.at


def life(**times: Any) -> PodLife:
    """A Pod that is deleted at 10, gets SIGTERM at 12, exits at 15 and is in the rules from 1 to 11."""
    usual = {"ready": 0.5, "routed": 1.0, "deleted": 10.0, "hook": 10.0, "term": 12.0, "exited": 15.0, "unrouted": 11.0}
    return pod_life("u", name="web-1", ip="10.244.0.2", **{**usual, **times})


def request(sent: float, finished: float | None = None, lost: str = "", kind: str = "fresh", **more: Any) -> Outcome:
    values = {"id": 1, "connection": 1, "age": 0.0, "status": 200, "served_by": "10.244.0.2", **more}
    at = sent if finished is None else finished
    return Outcome(kind=kind, planned=sent, sent=sent, finished=at, lost=lost, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("at", "phase"),
    [(0.2, "before it was ready"), (5, "ready"), (10.5, "preStop hook"), (13, "draining"), (15, "after its exit")],
)
def test_a_moment_falls_into_one_phase_of_a_pods_end(at: float, phase: str) -> None:
    assert life().phase(at) == phase


def test_the_drain_begins_with_the_request_to_stop_for_the_signal_is_recorded_when_it_was_sent() -> None:
    assert [life(stop=11.9).phase(at) for at in (11.8, 11.95)] == ["preStop hook", "draining"]


def test_without_a_hook_the_drain_begins_with_the_delete() -> None:
    assert life(hook=None).phase(10.5) == "draining"


CAUSES = [
    ("answered with an error", request(5, 6, "5xx", status=503), life(), "server error"),
    ("refused while its end was under way", request(12.5, lost="refused"), life(unrouted=14.0), "late endpoint"),
    ("a SYN that nobody answered", request(16, 19, "connect timeout"), life(unrouted=17.0), "late endpoint"),
    ("refused before the application listened", request(0.7, lost="refused"), life(ready=None), "not listening yet"),
    ("refused by a Pod that the rules named before it was Ready", request(0.7, lost="refused"),
     life(ready=1.0, routed=0.6), "not ready yet"),
    ("refused after it was Ready", request(1.2, lost="refused"), life(ready=1.0, routed=1.1), "not listening yet"),
    ("refused with nobody behind the Service", request(5, lost="refused", served_by=""), None, "no endpoint"),
    ("under way at an exit on SIGTERM", request(14, 15, "reset after bytes"), life(), "cut off"),
    ("under way at a kill", request(14, 15, "reset before bytes"), life(killed=True), "killed"),
    ("on a kept connection while it drains", request(14, 15, "closed before bytes", "keep-alive", age=5.0), life(),
     "stale connection"),
    ("on a kept connection after the exit", request(15.1, 15.2, "reset before bytes", "keep-alive", age=5.0), life(),
     "stale connection"),
    ("begun on a kept one before SIGTERM", request(11, 15, "truncated", "keep-alive", age=5.0), life(), "cut off"),
    ("answered on the signal, before the record of it", request(11, 11.9, "truncated"), life(stop=11.85), "cut off"),
    ("broken by a Pod that nothing ended", request(5, 6, "truncated"), life(), "unexplained"),
]  # fmt: skip


@pytest.mark.parametrize(("outcome", "pod", "cause"), [row[1:] for row in CAUSES], ids=[row[0] for row in CAUSES])
def test_each_lost_request_has_a_cause(outcome: Outcome, pod: PodLife | None, cause: str) -> None:
    assert decide_cause(Loss(outcome, pod)).cause == cause


def test_a_refusal_before_the_first_probe_is_laid_to_the_pod_that_is_published_unready() -> None:
    new = pod_life("v", name="web-2", ip="10.244.0.3", ready=8.0, routed=6.0, probed=7.9)
    old = pod_life("w", name="web-3", ip="10.244.0.4", ready=2.0, routed=2.1, probed=2.0)
    (lost,) = account([request(6.5, lost="refused", served_by="")], [old, new], [], 5.0).lost
    assert (lost.pod, lost.cause) == ("web-2", "not ready yet")


def test_what_the_only_pod_refuses_while_it_ends_is_for_want_of_another_one() -> None:
    ending = life(unrouted=None)
    later = pod_life("v", name="web-2", ip="10.244.0.3", ready=17.0, routed=17.1)
    outcome = request(15.5, lost="refused", served_by="")
    assert [each.cause for each in account([outcome], [ending, later], [], 5.0).lost] == ["no endpoint"]
    other = pod_life("w", name="web-3", ip="10.244.0.4", ready=2.0, routed=2.1)
    assert [each.cause for each in account([outcome], [ending, later, other], [], 5.0).lost] == ["late endpoint"]


def test_where_all_pods_end_for_good_what_comes_when_none_is_left_does_not_count() -> None:
    ending, other = life(unrouted=14.0), replace(life(unrouted=14.0), uid="o", ip="10.0.0.9")
    outcomes = [
        request(10.5, 12.9, "reset before bytes", kind="slow"),
        request(11.9, lost="refused", served_by=""),
        request(13.5, lost="refused", served_by=""),
        request(13.6, 13.7, kind="keep-alive", age=3.0),
        request(13.8, 19.0, "timeout", held_up=9.0),
    ]
    found = account(outcomes, [ending, other], [], 10.0, nobody_left=12.0)
    assert (found.total, found.unmeasured, len(found.lost)) == (3, (), 2)
    # Of Pods that all end none is there to take over, so it is the lag that is to blame.
    assert [each.cause for each in found.lost] == ["late endpoint", "cut off"]
    assert found.when_nobody_left == 2
    everything = account(outcomes, [ending, other], [], 10.0)
    assert (everything.total, everything.when_nobody_left) == (5, 0)


def test_what_is_sent_to_the_only_pod_after_its_stop_signal_is_for_want_of_another_one_too() -> None:
    ending = life(unrouted=None)  # its signal at 12
    later = pod_life("v", name="web-2", ip="10.244.0.3", ready=17.0, routed=17.1)
    for sent, cause in ((12.5, "no endpoint"), (11.5, "cut off")):
        outcome = request(sent, 15, "reset before bytes", age=0.0)
        assert [each.cause for each in account([outcome], [ending, later], [], 5.0).lost] == [cause]


def test_a_refused_connection_is_laid_to_the_pod_that_the_rules_named_and_that_did_not_listen() -> None:
    ending, healthy = life(unrouted=14.0), pod_life("v", name="web-2", ip="10.244.0.3", ready=0.5, routed=1.0)
    outcome = request(12.5, lost="refused", served_by="")
    (lost,) = account([outcome], [healthy, ending], [], 5.0).lost
    assert (lost.pod, lost.phase, lost.cause, lost.at) == ("web-1", "draining", "late endpoint", 7.5)
    answered, later = request(2, 3, served_by="10.244.0.3"), request(14.5, lost="refused", served_by="")
    assert account([answered, later], [healthy, ending], [], 5.0).lost[0].cause == "unexplained"
    paused = replace(healthy, pauses=[(AT(14.4), AT(14.8))])
    assert account([answered, later], [paused, ending], [], 5.0).lost[0].cause == "no endpoint"


def test_a_connect_that_nobody_answered_is_told_by_when_it_was_sent() -> None:
    ended = life(hook=None, term=10.0, exited=10.1, unrouted=12.0)
    (lost,) = account([request(11, 14, "connect timeout")], [ended], [], 10.0).lost
    assert (lost.at, lost.phase, lost.cause) == (1.0, "after its exit", "late endpoint")


def test_a_refused_connection_is_laid_to_the_newest_pod_of_the_rules_that_has_not_answered_yet() -> None:
    old = pod_life("v", name="web-1", ip="10.244.0.3", ready=0.5, routed=1.0)
    new = pod_life("w", name="web-2", ip="10.244.0.4", ready=20.0, routed=20.1)
    outcomes = [request(2, 3, served_by=old.ip), request(20.5, lost="refused", served_by=""),
                request(21, 22, served_by=new.ip), request(23, lost="refused", served_by="")]  # fmt: skip
    first, second = account(outcomes, [old, new], [], 5.0).lost
    assert (first.pod, first.cause) == ("web-2", "not listening yet")
    assert (second.pod, second.cause) == ("", "unexplained"), "both Pods had answered, and the rules named them"


def test_a_request_that_was_under_way_when_the_disruption_began_counts_as_disrupted() -> None:
    outcomes = [request(9, 15, "truncated"), request(9, 9.5, "truncated"), request(9, 12, "connect timeout")]
    found = account(outcomes, [life()], [], 10.0)
    assert (found.control_total, found.control_lost, found.total) == (2, 2, 1)
    assert [each.cause for each in found.lost] == ["cut off"]


def test_a_refusal_that_came_only_after_the_stop_signal_is_that_pods_however_early_it_was_asked() -> None:
    outcome = request(11.95, 12.0, "refused", served_by="")
    (lost,) = account([outcome], [life(unrouted=14.0)], [], 5.0).lost
    assert (lost.pod, lost.cause) == ("web-1", "late endpoint")


def test_an_address_that_was_handed_on_belongs_to_the_last_pod_that_had_it() -> None:
    def records(uid: str, at: int) -> list[Record]:
        facts = ({"namespace": "d", "name": uid}, {"ip": "10.244.0.2"})
        made = (kinds.POD_CREATED, kinds.NETWORK_ATTACHED)
        return [Record(f"{uid}{i}", at * 10**9, 0, "a", kind, uid, facts=facts[i]) for i, kind in enumerate(made)]

    lives = pod_lives([*records("old", 1), *records("new", 20)])
    found = account([request(2, 3, "truncated"), request(21, 22, "truncated")], lives, [], 0.0)
    assert [each.pod for each in found.lost] == ["old", "new"]


def test_requests_are_reconciled_with_what_the_applications_printed() -> None:
    outcomes = [request(11, 15, "truncated", id=1), request(11, 15, "truncated", id=2), request(11, 12, id=3),
                request(11, 15, "truncated", id=4)]  # fmt: skip
    printed = ["lc-1 begun", "GET / lc-3 begun", "lc-3 answered", "lc-4 begun", "lc-4 answered", "lc-99 begun"]
    found = account(outcomes, [life()], printed, 10.0)
    assert [(each.outcome.id, each.seen) for each in found.lost] == [(1, "begun"), (2, "never"), (4, "answered")]
    assert found.unaccounted == (99,)
    assert {each.seen for each in account(outcomes, [life()], [], 10.0).lost} == {"unknown"}


def test_every_planned_request_is_counted_once() -> None:
    outcomes = [request(at, at + 0.1, lost, id=at) for at, lost in ((1, ""), (2, "refused"), (11, ""), (12, "timeout"))]
    found = account(outcomes, [life()], [], 10.0)
    assert (found.control_total, found.control_lost, found.total, len(found.lost)) == (2, 1, 2, 1)


@pytest.mark.parametrize(
    ("lost", "total", "bound"),
    [(0, 300, 0.00994), (0, 3000, 0.000998), (1, 100, 0.0466), (5, 100, 0.1023), (50, 100, 0.5868), (3, 3, 1.0),
     (0, 0, 1.0)],
)  # fmt: skip
def test_the_upper_bound_is_that_of_clopper_and_pearson(lost: int, total: int, bound: float) -> None:
    assert upper_bound(lost, total) == pytest.approx(bound, rel=0.01)


# -- kinds that last --------------------------------------------------------------------------------------------------


def test_a_goodbye_is_told_and_is_no_loss() -> None:
    outcomes = [request(11, 14, kind="websocket", moved="going away", id=1),
                request(11, 14, kind="websocket", moved="going away", id=2),
                request(11, 14, kind="http2", moved="retried", id=3)]  # fmt: skip
    found = account(outcomes, [life()], [], 10.0)
    assert found.lost == () and found.moves == [(("websocket", "going away"), 2), (("http2", "retried"), 1)]


STREAM_ENDS = [
    ("the last chunk while its Pod ends", "ended early", 14, ("ended early", None)),
    ("the last chunk of a Pod that serves", "ended early", 9, (None, None)),
    ("a FIN that may be an end, of a Pod that serves", "closed early", 9, (None, None)),
    ("a FIN that may be an end, while its Pod ends", "closed early", 14, (None, "truncated")),
]


@pytest.mark.parametrize(("moved", "at", "expected"), [row[1:] for row in STREAM_ENDS],
                         ids=[row[0] for row in STREAM_ENDS])  # fmt: skip
def test_a_stream_that_ends_is_what_the_end_of_its_pod_makes_of_it(moved: str, at: float, expected: Any) -> None:
    found = account([request(8, at, kind="stream", moved=moved)], [life()], [], 5.0)
    assert (
        found.moved[0].moved if found.moved else None,
        found.lost[0].outcome.lost if found.lost else None,
    ) == expected


MORE_CAUSES = [
    ("a WebSocket at the exit", request(8, 15, "no close frame", "websocket"), life(), "cut off"),
    ("a stream at a kill", request(8, 15, "reset after bytes", "stream"), life(killed=True), "killed"),
    ("HTTP/2 after SIGTERM", request(13, 15, "closed before bytes", "http2", age=9.0), life(), "stale connection"),
    ("HTTP/2 before SIGTERM", request(11, 15, "closed before bytes", "http2", age=9.0), life(), "cut off"),
    ("refused behind a published port", request(12.5, lost="reset before bytes", behind="refused", served_by=""),
     life(unrouted=14.0), "late endpoint"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "pod", "cause"), [row[1:] for row in MORE_CAUSES], ids=[row[0] for row in MORE_CAUSES]
)
def test_each_kind_is_lost_for_a_cause(outcome: Outcome, pod: PodLife, cause: str) -> None:
    (lost,) = account([outcome], [pod], [], 5.0).lost
    assert (lost.cause, lost.pod) == (cause, "web-1")


def test_what_the_kernel_accepted_and_nobody_read_is_told_from_what_was_cut_off() -> None:
    outcomes = [request(14, 15, "reset before bytes", id=1), request(14, 15, "reset before bytes", id=2),
                request(14, 15, "reset before bytes", "tcp", id=3), request(8, 9, id=4),
                request(14, 15, "closed before bytes", id=5)]  # fmt: skip
    printed = ["lc-2 begun", "lc-4 begun", "lc-4 answered"]
    found = account(outcomes, [life()], printed, 10.0)
    assert [each.cause for each in found.lost] == ["never read", "cut off", "cut off", "cut off"]
    # Of raw TCP this application prints nothing, so that nothing is known of what it saw.
    assert [each.seen for each in found.lost] == ["never", "begun", "unknown", "never"]
    cut = account(outcomes, [life()], printed, 10.0, whole_output=False)
    assert {each.cause for each in cut.lost} == {"cut off"}


def test_messages_of_a_websocket_are_reconciled_apart_from_the_websocket() -> None:
    lost = request(8, 15, "no close frame", "websocket", id=7, messages=3, unanswered="lc-7.3")
    other = request(8, 15, "no close frame", "websocket", id=8, messages=3, unanswered="lc-8.3")
    printed = ["lc-7 begun", "lc-7.0", "lc-7.1", "lc-7.2", "lc-7.3", "lc-8 begun", "lc-8.2"]
    found = account([lost, other], [life()], printed, 10.0)
    assert [(each.seen, each.message) for each in found.lost] == [("begun", "begun"), ("begun", "never")]
    assert found.seen == 2 and found.unaccounted == ()


def test_requests_of_each_pod_have_a_bound_of_their_own_and_all_are_in_one() -> None:
    other = pod_life("v", name="web-2", ip="10.244.0.3", ready=0.5, routed=1.0)
    outcomes = [request(11, 15, "truncated", id=1), *(request(11, 12, id=n) for n in (2, 3, 4)),
                *(request(11, 12, id=n, served_by=other.ip) for n in range(5, 15)),
                request(16, lost="refused", served_by="", id=15)]  # fmt: skip
    found = account(outcomes, [life(), other], [], 10.0)
    assert [(each.pod, each.total, each.lost) for each in found.pods] == [
        ("no Pod", 1, 1),
        ("web-1", 4, 1),
        ("web-2", 10, 0),
    ]
    assert found.pods[2].upper_bound == pytest.approx(0.2589, rel=0.01)
    assert sum(each.total for each in found.pods) == found.total and sum(each.lost for each in found.pods) == 2


def test_connections_that_are_kept_pin_their_requests_to_a_pod() -> None:
    other = pod_life("v", name="web-2", ip="10.244.0.3", ready=0.5, routed=1.0)
    outcomes = [*(request(5, 5.1, id=n, kind="http2", connection=1 + n % 2) for n in range(30)),
                *(request(5, 5.1, id=30 + n, served_by=f"10.244.0.{2 + n % 2}") for n in range(10))]  # fmt: skip
    http2, fresh = account(outcomes, [life(), other], [], 10.0).balance
    assert (http2.kind, http2.connections, http2.requests, http2.skew) == ("http2", 2, {"web-1": 30, "web-2": 0}, 2.0)
    assert (fresh.requests, fresh.skew) == ({"web-1": 5, "web-2": 5}, 1.0)


def test_what_the_kernel_held_for_a_container_that_exited_is_known_of_its_pod() -> None:
    def looked(at: int, container: str, **facts: int) -> Record:
        return Record(f"r{at}", at * 10**9, 0, "shim", kinds.SOCKETS_AT_EXIT, "u", container, facts=facts)

    (found,) = pod_lives([looked(1, "app", backlog=2, unread=1), looked(2, "log", backlog=1)])
    assert (found.never_accepted, found.unread) == (3, 1)
    assert tell_left(found) == " (exited with 3 never accepted, 1 with unread data)"
    (other,) = pod_lives([Record("r", 10**9, 0, "kubelet", kinds.POD_CREATED, "u", facts={"name": "web-1"})])
    assert (other.never_accepted, other.unread, tell_left(other)) == (None, None, "")


def test_a_connection_that_its_tcp_probe_opened_and_closed_waited_for_nothing() -> None:
    probe = {"address": "10.244.0.1", "port": 41000, "accepted": False, "unreadBytes": 1, "ownPort": 8080}
    client = {**probe, "address": "10.244.0.9", "port": 51000, "unreadBytes": 120}
    end = {"backlog": 2, "unread": 2, "unreadBytes": 121, "connections": 2, "resets": 2, "peers": [probe, client]}
    pod = {"spec": {"containers": [{"name": "app", "readinessProbe": {"tcpSocket": {"port": 8080}}}]}}
    made = Record("r1", 10**9, 0, "apiserver", kinds.POD_CREATED, "u", facts={"containers": container_facts(pod)})
    exited = Record("r2", 2 * 10**9, 0, "shim", kinds.SOCKETS_AT_EXIT, "u", "app", facts=end)
    (found,) = pod_lives([made, exited])
    assert (found.never_accepted, found.unread, found.unread_ports) == (1, 1, {51000})
    (without,) = pod_lives([exited])
    assert (without.never_accepted, without.unread) == (2, 2), "what probes it has is not known"


# -- advice ------------------------------------------------------------------------------------------------------------


def deployment(**pod: Any) -> dict[str, Any]:
    containers = [{"name": "log"}, {"name": "app", "ports": [{"containerPort": 8080}]}]
    spec = {"replicas": 3, "template": {"spec": {"containers": containers, **pod}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def judged(*outcomes: Outcome, owner: dict[str, Any] | None = None, pod: PodLife | None = None) -> Any:
    pod = pod or life()
    return judge(account(outcomes, [pod], [], 5.0), [pod], owner or deployment(), 8080)


def test_a_sleep_as_long_as_the_lag_is_advised_for_requests_that_came_too_late() -> None:
    pod = life(hook=None, term=10.0, exited=10.1, unrouted=12.3)
    found = judged(request(10.5, lost="refused"), request(6), pod=pod)
    assert found.verdict == "requests lost" and found.sentence.startswith("1 of 2 requests was lost (at most ")
    assert "sleep: {seconds: 4}" in found.sentence and "up to 2.30 s after the DELETE" in found.sentence
    patched = strategic_merge_patch(DEPLOYMENTS, deployment(), found.advice[0].patch)
    log, app = patched["spec"]["template"]["spec"]["containers"]
    assert "lifecycle" not in log and app["lifecycle"] == {"preStop": {"sleep": {"seconds": 4}}}


def test_a_lag_that_may_be_longer_than_the_one_that_was_seen_decides() -> None:
    pod, outcome = life(hook=None, term=10.0, unrouted=10.4), request(10.2, lost="refused")
    told = judge(account([outcome], [pod], [], 5.0), [pod], deployment(), 8080, longest_lag=3.3)
    assert "`sleep: {seconds: 5}`" in told.sentence and "(it may be 3.3 s)" in told.sentence


def test_where_hooks_cannot_sleep_the_image_does() -> None:
    pod = life(hook=None, term=10.0, exited=10.1, unrouted=12.3)
    outcomes = [request(10.5, lost="refused")]
    found = judge(account(outcomes, [pod], [], 5.0), [pod], deployment(), 8080, sleep_hooks=False)
    assert 'exec: {command: [sleep, "4"]}' in found.sentence
    patched = strategic_merge_patch(DEPLOYMENTS, deployment(), found.advice[0].patch)
    _, app = patched["spec"]["template"]["spec"]["containers"]
    assert app["lifecycle"] == {"preStop": {"exec": {"command": ["sleep", "4"]}}}


def test_the_advised_sleep_takes_the_place_of_another_hook_and_fits_into_the_grace_period() -> None:
    owner = deployment(terminationGracePeriodSeconds=3)
    app = owner["spec"]["template"]["spec"]["containers"][1]
    app["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "1"]}}}
    pod = life(term=11.0, exited=11.5, unrouted=12.3)
    found = judged(request(12, lost="refused"), owner=owner, pod=pod)
    spec = strategic_merge_patch(DEPLOYMENTS, owner, found.advice[0].patch)["spec"]["template"]["spec"]
    assert spec["containers"][1]["lifecycle"] == {"preStop": {"sleep": {"seconds": 4}}}
    assert spec["terminationGracePeriodSeconds"] == 6


@pytest.mark.parametrize(
    ("outcome", "pod", "words", "path"),
    [
        (request(14, 15, "truncated"), life(killed=True), "GracePeriodSeconds: 60", "terminationGracePeriodSeconds"),
        (request(0.7, 6, "refused"), life(ready=None, deleted=None), "readinessProbe", "containers"),
    ],
)  # fmt: skip
def test_the_advice_follows_the_cause(outcome: Outcome, pod: PodLife, words: str, path: str) -> None:
    late = replace(outcome, planned=max(6.0, outcome.planned))
    found = judged(late, pod=pod)
    assert words in found.advice[0].sentence and path in found.advice[0].patch["spec"]["template"]["spec"]


def test_a_grace_period_as_long_as_answers_take_is_advised_for_those_that_were_killed() -> None:
    good, cut = request(5, 46, kind="slow", id=2), request(14, 15, "truncated", "slow")
    (advice,) = judged(good, cut, pod=life(killed=True)).advice
    # 2 s of the hook, 41 s of the answer, 1 s to spare
    assert advice.patch["spec"]["template"]["spec"] == {"terminationGracePeriodSeconds": 44}


def test_the_patch_is_that_of_the_first_advice_that_has_one() -> None:
    lost = [request(14, 15, "no close frame", "websocket", id=n) for n in (1, 2)]
    found = judged(*lost, request(12.5, lost="refused", id=3), pod=life(unrouted=14.0))
    assert found.advice[0].patch == {} and found.patch == found.advice[1].patch != {}


def test_what_no_manifest_can_save_has_no_patch() -> None:
    found = judged(request(14, 15, "closed before bytes", "keep-alive", age=5.0))
    assert found.advice[0].patch == {} and "Connection: close" in found.sentence


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (request(8, 15, "no close frame", "websocket"), "close frame (1001, going away)"),
        (request(8, 15, "truncated", "stream"), "its last chunk on SIGTERM"),
        (request(13, 15, "closed before bytes", "http2", age=9.0), "GOAWAY"),
    ],
)
def test_what_lasts_needs_a_goodbye_and_no_hook(outcome: Outcome, words: str) -> None:
    pod = life(unrouted=14.0)  # which alone would call for a hook
    (advice,) = judged(outcome, pod=pod).advice
    assert words in advice.sentence and advice.patch == {} and advice.saves == 1


def test_losses_without_a_disruption_make_the_verdict_inconclusive() -> None:
    found = judged(request(2, 3, "refused"), request(11, 12, "refused"))
    assert found.verdict == "inconclusive" and found.advice == () and "(1 fresh: refused)" in found.sentence


def test_nothing_lost_says_how_sure_that_is() -> None:
    found = judged(*(request(6 + index / 1000, id=index) for index in range(3000)))
    assert (found.verdict, found.sentence) == (
        "nothing lost", "none of 3000 requests was lost (at most 0.1 % with 95 % confidence)",
    )  # fmt: skip


def test_a_timeout_of_a_client_that_was_held_up_is_nobodys_and_leaves_the_verdict_open() -> None:
    stalled = request(5.5, 9.0, "connect timeout", held_up=2.5)
    late = Outcome(2, "fresh", 5.0, 7.0, 9.5, 2, 0.0, 0, "10.244.0.2", "timeout")
    good = request(13, 13.1, id=3)
    found = account([stalled, late, good], [life(unrouted=14.0)], [], 5.0)
    assert (found.total, found.lost, [each.id for each in found.unmeasured]) == (1, (), [1, 2])
    told = judge(found, [life()], deployment(), 8080)
    assert told.verdict == "inconclusive" and "2 requests were not measured" in told.sentence
    assert "held up for 2.5 s" in told.sentence and told.advice == ()


@pytest.mark.parametrize(("unread", "id_"), [(2, "neverRead"), (1, "lateEndpoint")])
def test_a_pause_before_the_stop_is_named_after_what_it_saves_most_of(unread: int, id_: str) -> None:
    pod = life(unrouted=14.0, unread_ports=frozenset(range(1, 1 + unread)))
    cut = [request(12.5, 15, "reset before bytes", id=n, port=n, connection=n) for n in range(1, 3)]
    (advice, *_) = judged(*cut, request(15.5, 15.6, "refused", id=9), pod=pod).advice
    assert (advice.id, advice.saves, bool(advice.patch)) == (id_, 3, True)


@pytest.mark.parametrize(("port", "cause"), [(41000, "never read"), (41002, "cut off")])
def test_what_its_node_saw_unread_at_the_exit_was_never_read(port: int, cause: str) -> None:
    pod = life(unrouted=14.0, unread_ports=frozenset({41000}))
    (found,) = account([request(11.9, 15, "reset before bytes", port=port)], [pod], [], 5.0).lost
    assert (found.cause, found.seen) == (cause, "never" if port == 41000 else "unknown")


@pytest.mark.parametrize(
    ("lost", "held_up", "cause"),
    [
        ("timeout", 0.1, "killed"),
        ("refused", 3.0, "late endpoint"),
        ("reset after bytes", 3.0, "killed"),
        ("connect timeout", 3.0, "late endpoint"),
    ],
)
def test_what_the_end_of_a_pod_explains_counts_however_late_its_client_was(
    lost: str, held_up: float, cause: str
) -> None:
    ended = life(unrouted=17.0, killed=True)
    (found,) = account([request(12.5, 16.0, lost, held_up=held_up)], [ended], [], 5.0).lost
    assert (found.outcome.lost, found.cause) == (lost, cause)


def test_a_connect_that_timed_out_is_not_laid_to_a_pod_that_listened_all_the_time() -> None:
    sleeping = life(unrouted=11.0, term=15.0, exited=16.0)
    (lost,) = account([request(10.5, 13.5, "connect timeout")], [sleeping], [], 5.0).lost
    assert lost.cause == "unexplained"


def test_a_connect_that_a_listening_pod_did_not_answer_is_not_laid_to_its_end_however_long_it_was_waited_for() -> None:
    sleeping = life(unrouted=11.0, term=12.0, listener_closed=12.1, exited=12.3)
    (lost,) = account([request(10.5, 13.5, "connect timeout")], [sleeping], [], 5.0).lost
    assert lost.cause == "unexplained"
    found = account([request(10.5, 13.5, "connect timeout", held_up=2.5)], [sleeping], [], 5.0)
    assert (found.lost, len(found.unmeasured)) == ((), 1)


@pytest.mark.parametrize(("late", "verdict"), [(3, "inconclusive"), (2, "requests lost")])
def test_losses_of_a_client_that_could_not_send_most_of_its_requests_show_nothing(late: int, verdict: str) -> None:
    lost = request(12.5, lost="refused")
    others = [replace(request(13, 13.1, id=2 + n), planned=12.4 if n < late else 13.0) for n in range(4)]
    pods = [life(unrouted=14.0)]
    told = judge(account([lost, *others], pods, [], 5.0), pods, deployment(), 8080)
    assert told.verdict == verdict
    assert ("3 of 5 requests could not be sent when they were due" in told.sentence) is (verdict == "inconclusive")


def test_a_verdict_names_every_cause() -> None:
    outcomes = [request(12.5, lost="refused"), request(12.6, lost="refused", id=2), request(14, 15, "truncated", id=3)]
    pods = [life(unrouted=14.0)]
    told = judge(account(outcomes, pods, [], 5.0), pods, deployment(), 8080)
    assert "2 of them sent to a Pod that no longer listened" in told.sentence
    assert ", 1 of them in flight when the container exited" in told.sentence


def test_real_losses_stay_losses_beside_what_was_not_measured() -> None:
    lost, stalled = request(12.5, lost="refused"), request(6, 9.0, "timeout", id=2, held_up=4.0)
    pods = [life(unrouted=14.0)]
    told = judge(account([lost, stalled], pods, [], 5.0), pods, deployment(), 8080)
    assert told.verdict == "requests lost" and "1 request was not measured" in told.sentence and told.advice


def test_books_that_do_not_agree_are_told_from_both_sides() -> None:
    outcomes = [request(12, 12.1, id=1), request(12, 12.1, id=2), request(12, 12.1, id=4)]
    outcomes.append(request(12, 12.1, id=5, kind="tcp"))  # of a kind that the application does not print
    printed = ["lc-1 begun", "lc-1 answered", "lc-4 begun", "lc-9 begun"]
    found = account(outcomes, [life()], printed, 10.0, begun=5)
    assert (found.without_outcome, found.unaccounted, found.answered_unseen) == ((3,), (9,), (2,))
    assert account(outcomes, [life()], printed, 10.0, begun=5, whole_output=False).answered_unseen == ()
    told = judge(found, [life()], deployment(), 8080)
    assert told.verdict == "inconclusive" and "1 request has no outcome" in told.sentence


def test_of_output_with_gaps_nobody_says_that_a_request_was_never_seen() -> None:
    outcomes = [request(12, 12.1, id=1), request(12, 12.1, "truncated", id=2)]
    (lost,) = account(outcomes, [life()], ["lc-1 begun"], 10.0, whole_output=False).lost
    assert lost.seen == "unknown"


def rules(at: float, node: str, receives: bool) -> Record:
    facts = {"node": node, "receives": receives, "received": not receives}
    return Record(f"proxy-{node}-{at}", int(at * 1e9), 0, "kube-proxy", kinds.ENDPOINT_RULES_WRITTEN, "u", facts=facts)


def test_a_pod_that_was_not_ready_for_a_while_was_not_named_meanwhile() -> None:
    (seen,) = pod_lives([rules(1, "a", True), rules(5, "a", False), rules(7, "a", True), rules(9, "a", False)])
    assert [seen.is_named(at) for at in (0.5, 2, 6, 8, 9.5)] == [False, True, False, True, False]
    assert (seen.routed, seen.unrouted, seen.pauses) == (AT(1), AT(9), [(AT(5), AT(7))]) and seen.unready


def test_a_pod_is_named_until_the_last_node_has_changed_its_rules() -> None:
    (seen,) = pod_lives([rules(1, "a", True), rules(2, "b", True), rules(5, "a", False), rules(6, "b", False)])
    assert (seen.is_named(5.5), seen.is_named(6.5), seen.unrouted, seen.pauses) == (True, False, AT(6), [])


def test_what_unready_pods_lost_is_not_laid_to_the_rollout() -> None:
    busy = pod_life("u", name="web-1", ip="10.244.0.2", ready=0.5, probed=0.4, routed=1.0, pauses=[(5.0, 7.0)])
    refused = [request(6.0, lost="refused", served_by="", id=1), request(6.9, lost="refused", served_by="", id=2)]
    found = account(refused, [busy], [], 4.0)
    assert [each.cause for each in found.lost] == ["no endpoint", "no endpoint"]
    told = judge(found, [busy], deployment(), 8080)
    assert "were not ready meanwhile" in told.sentence and told.advice[0].patch == {}
    later = account([request(7.5, lost="refused", served_by="")], [busy], [], 4.0)
    assert later.lost[0].cause == "unexplained", "the rules named it again"


@pytest.mark.parametrize(("port", "proves"), [(8080, True), (9000, False), (None, False)])
def test_only_a_probe_of_the_port_proves_that_a_pod_listens_on_it(port: int | None, proves: bool) -> None:
    facts = {"probe": "readiness", "result": "success", "port": port}
    (found,) = pod_lives([Record("r", 3_000_000_000, 0, "node-1", kinds.PROBE_CHANGED, "u", facts=facts)], 8080)
    assert found.probed == (AT(3) if proves else None)


def test_the_application_that_ends_before_the_proxy_of_its_pod_is_given_the_hook() -> None:
    ending = life(hook=None, term=10.1, unrouted=11.0, behind={"log": AT(10.4)})
    errors = [request(6), *(request(10.5, 10.6, "5xx", status=502, id=number) for number in (2, 3))]
    (advice,) = judged(*errors, pod=ending).advice
    patched = strategic_merge_patch(DEPLOYMENTS, deployment(), advice.patch)["spec"]["template"]["spec"]
    hooks = {each["name"]: each.get("lifecycle") for each in patched["containers"]}
    assert hooks == {"log": {"preStop": {"sleep": {"seconds": 2}}}, "app": None} and "on log keeps" in advice.sentence
    hooked = life(hook=10.1, term=13.0, exited=13.5, unrouted=11.0, behind={"log": AT(10.4)})
    (of_hook,) = judged(*errors, pod=hooked).advice
    assert "on log keeps" in of_hook.sentence and [
        each["name"] for each in of_hook.patch["spec"]["template"]["spec"]["containers"]
    ] == ["log"]
    for pod, outcomes in (
        (life(hook=None, term=10.1, unrouted=11.0), errors),  # nobody behind
        (replace(ending, behind={"log": AT(10.7)}), errors),  # it still listened
        (ending, [request(6), replace(errors[1], status=500)]),  # not a gateway's word
    ):
        (advice,) = judged(*outcomes, pod=pod).advice
        patched = strategic_merge_patch(DEPLOYMENTS, deployment(), advice.patch)["spec"]["template"]["spec"]
        hooks = {each["name"]: each.get("lifecycle") for each in patched["containers"]}
        assert hooks == {"log": None, "app": {"preStop": {"sleep": {"seconds": 2}}}}
        assert "from its stop signal on" in advice.sentence
    of_its_own = life(deleted=None, hook=None, term=None, exited=None, unrouted=None, behind={"log": AT(10.4)})
    (advice,) = judged(*errors, pod=of_its_own).advice
    assert advice.patch == {} and "see the log of" in advice.sentence


def test_a_new_connection_that_a_stalled_client_left_silent_until_the_pods_end_is_nobodys_loss() -> None:
    """Opened while the Pod served, written to when it had gone: only the client's stall lies between."""
    ended = life(hook=None, term=13.0, exited=13.1, unrouted=11.0)
    stalled = request(10.9, 13.5, "closed before bytes", held_up=2.5)
    assert account([stalled], [ended], [], 5.0).unmeasured == (stalled,)
    assert account([stalled], [ended], ["lc-1 begun"], 5.0).unmeasured == (), "the application has seen it"
    on_time = request(12.9, 13.1, "closed before bytes", held_up=0.1)
    assert account([on_time], [ended], [], 5.0).unmeasured == ()


def test_several_advices_are_one_patch() -> None:
    hook = {"preStop": {"sleep": {"seconds": 3}}}
    one = {"spec": {"template": {"spec": {"containers": [{"name": "app", "lifecycle": hook}],
                                          "terminationGracePeriodSeconds": 5}}}}  # fmt: skip
    other = {"spec": {"strategy": {"type": "RollingUpdate"}, "template": {"spec": {
        "containers": [{"name": "app", "readinessProbe": {}}, {"name": "proxy", "lifecycle": hook}],
        "terminationGracePeriodSeconds": 9}}}}  # fmt: skip
    assert merged([one, other]) == {"spec": {"strategy": {"type": "RollingUpdate"}, "template": {"spec": {
        "containers": [{"name": "app", "lifecycle": hook, "readinessProbe": {}}, {"name": "proxy", "lifecycle": hook}],
        "terminationGracePeriodSeconds": 9}}}}  # fmt: skip
    assert merged([]) == {} and merged([one]) == merged([one, one]) == one


def test_a_kind_that_nobody_answers_is_no_loss_of_the_rollout() -> None:
    owner = {"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"template": {"spec": {"containers": []}}}}
    silent = [request(5 + n, 15 + n, "timeout", "tcp", id=n + 1) for n in range(3)]
    good = [request(5.0, id=10), request(10.5, id=11)]
    whole = life(deleted=None, hook=None, term=None, exited=None, unrouted=None)
    told = judge(account([*good, *silent], [whole], [], 10.0), [whole], owner, 80)
    assert told.verdict == "inconclusive" and told.advice == ()
    assert told.sentence.startswith("none of 3 tcp ones was answered (timeout), not even by Pods that nothing ended")
    # Where one was answered, or all were lost to a Pod's end, they are lost.
    one = [*good, *silent, request(6.0, kind="tcp", id=20)]
    assert judge(account(one, [whole], [], 10.0), [whole], owner, 80).verdict == "requests lost"
    ended = [request(14, 15, "reset after bytes", "tcp", id=30)]
    containers = {**owner, "spec": {"template": {"spec": {"containers": [{"name": "app"}]}}}}
    assert judge(account([*good, *ended], [life()], [], 10.0), [life()], containers, 80).verdict == "requests lost"
