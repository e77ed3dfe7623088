"""What a real Kubernetes 1.36.2 said of admission policies and their bindings, and what is said here."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.errors import invalid
from lastcall.kube.api.resources import SERVED, Resource
from lastcall.kube.api.validation import validate_create
from lastcall.kube.apiserver.admission.machinery import LateExpressions

RECORDED = json.loads((Path(__file__).parent / "policies.json").read_text())
KINDS: dict[str, Resource] = {each.kind: each for each in SERVED}


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["case"])
def test_policies_get_the_defaults_and_the_errors_of_a_real_server(recorded: dict[str, Any]) -> None:
    obj = copy.deepcopy(recorded["object"])
    resource = KINDS[obj["kind"]]
    if obj["metadata"].get("generateName"):
        obj["metadata"]["name"] = obj["metadata"]["generateName"] + "abcde"
    set_defaults(resource, obj)
    errors = validate_create(resource, obj, LateExpressions())
    if recorded["status"] < 400:
        assert errors == []
        assert (obj.get("spec") or obj.get("webhooks")) == recorded["spec"]
    else:
        assert invalid(resource, obj["metadata"].get("name", ""), errors).message == recorded["message"]
