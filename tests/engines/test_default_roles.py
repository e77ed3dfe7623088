"""The roles and bindings that every cluster has are those of a real API server."""

import json

import pytest
from engines.api_server import RealAPIServer, needs

from lastcall.kube.apiserver.auth.bootstrap_policy import METRICS, default_policy

pytestmark = [pytest.mark.proof, pytest.mark.real_kernel, needs("kube-apiserver", "etcd", "kubectl")]
OWN = ("rules", "roleRef", "subjects", "aggregationRule")


def test_each_default_role_and_binding_is_the_real_one_s(real: RealAPIServer) -> None:
    ours = {
        (resource.plural, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]): obj
        for resource, obj in default_policy()
    }
    compared = 0
    for plural in sorted({name for name, _, _ in ours}):
        selected = ("-l", "kubernetes.io/bootstrapping=rbac-defaults", "--all-namespaces", "-o", "json")
        for theirs in json.loads(real.kubectl("get", plural, *selected))["items"]:
            meta = theirs["metadata"]
            obj = ours[plural, meta.get("namespace", ""), meta["name"]]
            for part in ("labels", "annotations"):
                assert obj["metadata"].get(part) == meta.get(part), meta["name"]
            mine = {key: obj[key] for key in OWN if key in obj}
            if "aggregationRule" in obj:  # the controller fills these, and none runs there
                assert METRICS in mine.pop("rules")
                theirs["rules"] = None
            assert mine == {key: theirs[key] for key in OWN if theirs.get(key)}, meta["name"]
            compared += 1
    assert compared > 130
