"""What a status or a reference leaves out is nothing that ends a controller's turn."""

from datetime import UTC, datetime

from lastcall.kube.api.disruption import set_status_condition
from lastcall.kube.api.resources import JOBS
from lastcall.kube.api.validation import validate_update
from lastcall.kube.apiserver.strategies.custom import set_condition as set_definition_condition
from lastcall.kube.controllers.deployment.status import condition, is_timed_out, set_condition
from lastcall.kube.controllers.job.pods import finish_time
from lastcall.kube.controllers.statefulset.decide import claims_of, new_pod
from lastcall.kube.controllers.volumes.decide import claim_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_condition_without_times_takes_new_ones() -> None:
    status = {"conditions": [{"type": "Progressing", "status": "True"}, {}]}
    set_condition(status, condition("Progressing", "True", "r", "m", NOW))
    assert status["conditions"][-1]["reason"] == "r"
    deployment = {"spec": {"progressDeadlineSeconds": 600}}
    assert is_timed_out(deployment, {"conditions": [{"type": "Progressing"}]}, NOW), "no time is the first one"
    definition = {"status": {"conditions": [{"type": "NamesAccepted", "status": "True"}, {}]}}
    set_definition_condition(definition, "NamesAccepted", "True", "r", "m", "2026-01-01T00:00:00Z")
    budget = {"conditions": [{"status": "True"}]}
    set_status_condition(budget, {"type": "A", "status": "True", "reason": "r", "message": "m"}, "2026-01-01T00:00:00Z")
    assert len(budget["conditions"]) == 2


def test_a_pod_whose_time_of_readiness_is_extreme_has_finished_at_some_time() -> None:
    for text in ("0000-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00", "10000-01-01T04:59:59Z"):
        ready = {"type": "Ready", "status": "False", "lastTransitionTime": text}
        ended = {"state": {"terminated": {"finishedAt": text}}}
        for status in ({"conditions": [ready]}, {"containerStatuses": [ended]}):
            finish_time({"metadata": {"creationTimestamp": text}, "status": status})


def test_a_claim_template_without_a_name_gives_a_pod_that_the_api_refuses() -> None:
    spec = {"template": {"spec": {}}, "selector": {}, "volumeClaimTemplates": [{"spec": {}}]}
    owner = {"metadata": {"name": "web", "namespace": "n", "uid": "u"}, "spec": spec}
    assert new_pod(owner, 0, "r")["spec"]["volumes"][0]["name"] == ""
    assert [claim["metadata"]["name"] for claim in claims_of(owner, 0)] == ["-web-0"]


def test_a_volume_may_name_half_a_claim() -> None:
    assert claim_key({"spec": {"claimRef": {"name": "c"}}}) == ("", "c")
    assert claim_key({"spec": {"claimRef": {}}}) is None


def test_a_job_with_fewer_than_no_active_pods_is_refused() -> None:
    job = {"metadata": {"name": "j", "namespace": "n", "resourceVersion": "1"}, "spec": {"template": {"spec": {}}}}
    errors = validate_update(JOBS, {**job, "status": {"active": -7}}, job, "status")
    assert "status.active" in [each.field for each in errors]
