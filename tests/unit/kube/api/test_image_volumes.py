"""Volumes that are images, as a real 1.36.2 defaults and refuses them (`data/image_volumes.json`)."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.resources import DEPLOYMENTS, PODS
from lastcall.kube.api.validators.pod_spec import validate_pod_spec

RECORDED = json.loads((Path(__file__).parent / "data" / "image_volumes.json").read_text())


@pytest.mark.parametrize("case", RECORDED, ids=lambda each: each["name"])
def test_a_volume_that_is_an_image_is_defaulted_and_checked_as_kubernetes_does(case: dict[str, Any]) -> None:
    mount = {"name": "v", "mountPath": "/v"}
    spec = {
        "containers": [{"name": "c", "image": "x:1", "volumeMounts": [mount]}],
        "volumes": [{"name": "v", "image": deepcopy(case["volume"])}],
    }
    is_pod = case["kind"] == "Pod"
    obj = {"metadata": {}, "spec": spec if is_pod else {"template": {"metadata": {}, "spec": spec}}}
    set_defaults(PODS if is_pod else DEPLOYMENTS, obj)
    errors = [str(each) for each in validate_pod_spec(spec, is_pod=is_pod)]
    found = errors or spec["volumes"][0]["image"]
    assert found == case["answer"]
