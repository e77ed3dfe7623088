"""The causes of Pods that do not become Ready, as data: in errors, and in the JSON of commands."""

import json
from typing import Any

import pytest
from published_schema import PUBLISHED, problems

from lastcall.cli.rollout import rounds
from lastcall.cli.run.story import show
from lastcall.endings import Finding, fix_of
from lastcall.endings.story import Change
from lastcall.errors import Crashed, NotReady, UnreadyCause
from lastcall.experiment.reasons.named import causes_in
from lastcall.experiment.reasons.why_not_ready import programs_of, why_not_ready
from lastcall.experiment.rollout import RolloutOptions
from lastcall.experiment.run import RunOptions
from lastcall.traffic import Load

PATCH = {"containers": [{"name": "app", "startupProbe": {"failureThreshold": 30}}]}
CAUSE = UnreadyCause("default/web", "startupProbeKilled", "problem", "app", "t", "a", {"patch": PATCH, "program": None})


def event(message: str, at: str, field: str = "spec.containers{app}") -> dict[str, Any]:
    about = {"fieldPath": field}
    return {"type": "Warning", "reason": "Unhealthy", "message": message, "lastTimestamp": at, "involvedObject": about}


RUNNING = {"containerStatuses": [{"name": "app", "ready": False, "state": {"running": {}}}], "phase": "Running"}
POD = {
    "metadata": {"name": "web", "namespace": "default", "uid": "u"},
    "spec": {"containers": [{"name": "app", "readinessProbe": {}}]},
    "status": RUNNING,
}
STATUS = event("Readiness probe failed: HTTP probe failed with statuscode: 404", "2026-01-01T00:00:09Z")
REFUSED = event("Readiness probe failed: dial tcp 10.0.0.2:80: connect: connection refused", "2026-01-01T00:00:01Z")


def test_a_finding_of_the_lines_gives_its_container_and_its_change() -> None:
    finding = Finding("startupProbeKilled", "problem", "It took too long.", "app", "More time.", change=Change(PATCH))
    lines = ["  It took too long.", "  fix: More time. [startupProbeKilled]", "    | fix: nothing [crashed]"]
    (cause,) = causes_in("default/web", lines, [finding])
    assert (cause.pod, cause.id, cause.container, cause.text) == ("default/web", finding.id, "app", finding.text)
    assert cause.change == {"patch": PATCH, "program": None}


def test_what_the_cluster_says_is_the_text_of_a_cause_that_no_finding_names() -> None:
    fix = fix_of("imageNotPulled", importing="`lastcall image import FILE`")
    lines = ["  container app: ErrImagePull: no web:2", f"  fix: {fix}", "    | printed"]
    (cause,) = causes_in("default/web", lines)
    assert (cause.id, cause.text, cause.change) == ("imageNotPulled", "container app: ErrImagePull: no web:2", None)


def test_only_what_a_probe_said_last_is_advised_about() -> None:
    for events in ([REFUSED, STATUS], [STATUS, REFUSED]):
        fixes = [line for line in why_not_ready(POD, events) if line.startswith("  fix: ")]
        assert len(fixes) == 1
        assert "404" in fixes[0]
        assert programs_of(POD, events) == {"probeFailed": "fixProbe"}
    neighbour = {**REFUSED, "involvedObject": {"fieldPath": "spec.containers{other}"}}
    assert sum(line.startswith("  fix: ") for line in why_not_ready(POD, [neighbour, STATUS])) == 2


def test_a_refused_connection_alone_does_not_say_what_to_correct() -> None:
    assert programs_of(POD, [REFUSED]) == {}


@pytest.mark.parametrize(("error", "status"), [(NotReady("not Ready", [CAUSE]), 1), (Crashed("it", [CAUSE]), 3)])
def test_run_writes_a_document_with_the_causes(error: NotReady, status: int, capsys: Any) -> None:
    show(None, RunOptions(output="json"), [], status, error)  # type: ignore[arg-type]
    made = json.loads(capsys.readouterr().out)
    assert list(problems(made, PUBLISHED)) == []
    assert (made["error"], made["exitStatus"], made["pods"]) == (str(error), status, [])
    assert made["notReady"][0]["change"]["patch"] == PATCH


def test_run_writes_no_document_of_an_error_without_causes(capsys: Any) -> None:
    show(None, RunOptions(output="json"), [], 1, NotReady("not Ready"))  # type: ignore[arg-type]
    assert capsys.readouterr().out == ""


def test_rollout_writes_a_document_with_the_causes(capsys: Any) -> None:
    def experiment(*_: Any, **__: Any) -> Any:
        raise NotReady("not Ready", [CAUSE])

    with pytest.raises(NotReady):
        rounds.run_rollout([], RolloutOptions(load=Load(rates={"fresh": 1.0}), output="json"), experiment)
    made = json.loads(capsys.readouterr().out)
    assert (made["experiments"], made["error"]) == ([], "not Ready")
    assert made["notReady"][0]["id"] == "startupProbeKilled"
