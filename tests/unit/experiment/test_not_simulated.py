"""What was not simulated is said: objects that nobody acts on, substitutes, missing secrets, a late generator."""

from pathlib import Path

import pytest

from lastcall.experiment.load_notes import of_answers, of_load
from lastcall.experiment.not_simulated import of_dropped, of_images, of_manifests
from lastcall.kube.api import FeatureGates
from lastcall.manifests.read import load_manifests
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.traffic.load import Load
from lastcall.traffic.outcome import Outcome

MANIFESTS = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      imagePullSecrets: [{name: regcred}, {name: there}]
      containers: [{name: app, image: app}]
---
apiVersion: v1
kind: Secret
metadata: {name: there}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed}
spec: {podSelector: {}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: lamps, kind: Lamp}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
---
apiVersion: example.com/v1
kind: Lamp
metadata: {name: red}
"""


def test_what_nobody_acts_on_is_named_object_by_object(tmp_path: Path) -> None:
    (tmp_path / "all.yaml").write_text(MANIFESTS)
    found = list(of_manifests(load_manifests([str(tmp_path / "all.yaml")])))
    assert {(each.id, each.what) for each in found} == {
        ("ingressIgnored", "Ingress shop"),
        ("customResourceIgnored", "Lamp red"),
        ("pullSecretMissing", "regcred"),
    }
    assert all(each.what in each.text for each in found)


def test_a_substituted_image_is_told_once() -> None:
    facts = {"image": "nginx:1.29", "substitute": "busybox:1.36"}
    records = [Record(str(n), n, 0, "kubelet", kinds.IMAGE_SUBSTITUTED, f"u{n}", facts=facts) for n in range(3)]
    (note,) = of_images(records)
    assert "nginx:1.29 is not available: busybox:1.36 ran in its place" in note.text and note.what == "nginx:1.29"


def sent(late: float) -> Outcome:
    return Outcome(1, "fresh", 5.0, 5.0 + late, 6.0, 1, 0.0, 200, "10.1", "")


def test_a_generator_that_was_late_says_so_and_one_that_was_not_does_not() -> None:
    (note,) = of_load([sent(0.001)] * 95 + [sent(0.29)] * 5)
    assert "5 % of the requests were sent 50 ms or more too late, the latest 290 ms" in note.text
    assert not list(of_load([sent(0.001)] * 999 + [sent(0.29)])) and not list(of_load([]))


def answered(kind: str, status: int, took: float) -> Outcome:
    return Outcome(1, kind, 5.0, 5.0, 5.0 + took, 1, 0.0, status, "10.1", "")  # type: ignore[arg-type]


def test_client_errors_among_other_answers_are_listed() -> None:
    outcomes = [answered("fresh", 200, 0.01), answered("fresh", 404, 0.01), answered("fresh", 403, 0.01)]
    (note,) = of_answers(outcomes, Load(path="/a"))
    assert note.text == "/a answered 403, 404 to 2 of 3 fresh requests, which counts as an answer"
    assert not list(of_answers(outcomes[:1], Load()))


def test_slow_requests_that_are_answered_at_once_test_no_long_request() -> None:
    quick = [answered("slow", 200, 0.008)] * 3
    (note,) = of_answers([*quick, answered("slow", 200, 3.0)], Load(slow_path="/report"))
    assert note.text.startswith("the answers of /report took 8 ms: this tested no long request")
    assert not list(of_answers([*quick, *[answered("slow", 200, 3.0)] * 4], Load()))
    assert not list(of_answers([answered("fresh", 200, 0.008)], Load()))


STOPS = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers: [{name: app, image: app, lifecycle: {stopSignal: SIGQUIT}}]
"""


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        (FeatureGates("1.36"), "--feature-gates ContainerStopSignals=true switches it on here"),
        (FeatureGates("1.27"), "use Kubernetes 1.33 or newer"),
        (FeatureGates("1.36", {"ContainerStopSignals": True}), ""),
    ],
)
def test_a_field_that_the_api_server_leaves_out_is_said_with_the_way_out(
    tmp_path: Path, gates: FeatureGates, said: str
) -> None:
    (tmp_path / "m.yaml").write_text(STOPS)
    notes = list(of_dropped(load_manifests((str(tmp_path / "m.yaml"),)), gates))
    if not said:
        assert notes == []
        return
    (note,) = notes
    assert (note.id, note.what) == ("fieldDropped", "Pod web")
    assert "drops spec.containers[0].lifecycle.stopSignal of Pod web" in note.text and said in note.text
