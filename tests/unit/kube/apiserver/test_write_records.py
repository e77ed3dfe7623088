"""Which requests become records of a Pod's story."""

from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import PODS, SERVICES, Resource
from lastcall.kube.apiserver.records import WriteRecords
from lastcall.records import kinds

DENIED = 'admission webhook "guard.example.com" denied the request: keep it'


class Written:
    def __init__(self) -> None:
        self.records: list[tuple[str, dict[str, Any]]] = []

    def record(self, kind: str, *, pod_uid: str, rule: str, facts: dict[str, Any]) -> None:
        self.records.append((kind, {"uid": pod_uid, **facts}))


@pytest.mark.parametrize(
    ("resource", "dry_run", "written"), [(PODS, False, True), (PODS, True, False), (SERVICES, False, False)]
)
def test_the_refused_delete_of_a_pod_is_written_and_still_refused(
    resource: Resource, dry_run: bool, written: bool
) -> None:
    recorder = Written()
    context = SimpleNamespace(user=SimpleNamespace(name="admin"), user_agent="kubectl/v1", dry_run=dry_run)
    pod = {"metadata": {"name": "p", "uid": "u", "resourceVersion": "7"}}
    refusals = WriteRecords(recorder).refusals(context, resource, pod)  # type: ignore[arg-type]
    with pytest.raises(StatusError), refusals:
        raise StatusError({"code": 403, "message": DENIED})
    facts = {"uid": "u", "user": "admin", "userAgent": "kubectl/v1", "message": DENIED, "resourceVersion": "7"}
    assert recorder.records == ([(kinds.DELETE_REFUSED, facts)] if written else [])


def test_a_delete_that_passes_writes_no_refusal() -> None:
    recorder = Written()
    with WriteRecords(recorder).refusals(SimpleNamespace(), PODS, {}):  # type: ignore[arg-type]
        pass
    assert recorder.records == []
