"""What Kubernetes 1.36.2 said of new objects and changes (`recorded_validation.json`: POST and PATCH with dryRun).

Left out are answers that print Go's internal structs.
"""

import json
from pathlib import Path

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.field import causes_of
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.patch.apply import merge_patch
from lastcall.kube.api.resources import SERVED
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.api.validation import validate_create, validate_update
from lastcall.kube.apiserver.strategies.cluster_kinds import cluster_strategies
from lastcall.world.world import World

CASES = json.loads(Path(__file__).with_name("recorded_validation.json").read_text())
STRATEGIES = {each.resource: each for each in cluster_strategies(World().clock)}


def resource_of(case):
    return next(each for each in SERVED if (each.group, each.plural) == (case["group"], case["plural"]))


def named(case) -> str:
    return f"{case['plural']}-{json.dumps(case.get('object') or case.get('patch'))[:60]}"


def told(errors):
    return [[each["field"], each["reason"], each["message"]] for each in causes_of(errors)]


@pytest.mark.parametrize("case", [each for each in CASES if "object" in each], ids=named)
def test_a_new_object_is_refused_for_what_kubernetes_refuses_it_for(case) -> None:
    resource, obj = resource_of(case), case["object"]
    if resource.namespaced:
        obj["metadata"]["namespace"] = "default"
    prune(resource, obj)
    set_defaults(resource, obj)
    STRATEGIES[resource].prepare_for_create(obj)
    assert told(validate_create(resource, obj)) == case["causes"]


@pytest.mark.parametrize("case", [each for each in CASES if "patch" in each], ids=named)
def test_a_change_is_refused_for_what_kubernetes_refuses_it_for(case) -> None:
    resource, old = resource_of(case), case["old"]
    new = merge_patch(copy_object(old), case["patch"])
    prune(resource, new)
    set_defaults(resource, new)
    STRATEGIES[resource].prepare_for_update(new, old, case["subresource"])
    assert told(validate_update(resource, new, old, case["subresource"])) == case["causes"]
