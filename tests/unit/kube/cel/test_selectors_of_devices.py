"""Selectors of devices: what a real 1.36.2 said of a DeviceClass with each of them."""

import pytest

from lastcall.kube.api.field import INVALID
from lastcall.kube.api.resources import DEVICECLASSES, RESOURCECLAIMS, RESOURCECLAIMTEMPLATES
from lastcall.kube.api.validation import validate_create
from lastcall.kube.apiserver.admission.machinery import LateExpressions

TAKEN = [
    'device.driver == "x"',
    'device.attributes["dra.example.com"].model == "a"',
    'device.attributes["dra.example.com"]["model"]',
    'device.capacity["x"].mem.isGreaterThan(quantity("1Gi"))',
    "device.allowMultipleAllocations == true",
    'device.attributes["x"].v.isGreaterThan(semver("1.0.0"))',
    '"a" in device.attributes',
    'device.attributes["x"].?y.orValue(true)',
    'has(device.attributes["x"].y)',
    'device.capacity["x"].y.compareTo(quantity("40Gi")) >= 0 && device.attributes["x"].z in ["a","b"]',
    'string(device.attributes["x"].y).startsWith("b")',
    'device.attributes.all(d, device.attributes[d].all(n, device.driver.matches("a.*")))',
    'cel.bind(dra, device.attributes["x"], dra.a && dra.b)',
    'ip("1.2.3.4").isLoopback()',
    "true",
]

REFUSED = {
    "device.driver": "must evaluate to bool or the unknown type, not string",
    "1 + 1": "must evaluate to bool or the unknown type, not int",
    "device": "must evaluate to bool or the unknown type, not kubernetes.DRADevice",
    "device.foo == 1": "compilation failed: ERROR: <input>:1:7: undefined field 'foo'\n | device.foo == 1\n | ......^",
    "noSuchVar": "compilation failed: ERROR: <input>:1:1: undeclared reference to 'noSuchVar' (in container '')\n"
    " | noSuchVar\n | ^",
    'device.capacity["x"].mem > quantity("1Gi")': "compilation failed: ERROR: <input>:1:26: found no matching overload "
    "for '_>_' applied to '(kubernetes.Quantity, kubernetes.Quantity)'\n"
    ' | device.capacity["x"].mem > quantity("1Gi")\n | .........................^',
    "device.driver == 1": "compilation failed: ERROR: <input>:1:15: found no matching overload for '_==_' applied to "
    "'(string, int)'\n | device.driver == 1\n | ..............^",
    'authorizer.path("/x").check("get").allowed()': "compilation failed: ERROR: <input>:1:1: undeclared reference to "
    "'authorizer' (in container '')\n | authorizer.path(\"/x\").check(\"get\").allowed()\n | ^",
    "(": "compilation failed: ERROR: <input>:1:2: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', "
    "'.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | (\n | .^",
}


def device_class(expression: str) -> dict:
    selectors = [{"cel": {"expression": expression}}]
    return {"metadata": {"name": "x"}, "spec": {"selectors": selectors}}


@pytest.mark.parametrize("expression", TAKEN)
def test_a_selector_that_kubernetes_takes_is_taken(expression: str) -> None:
    assert validate_create(DEVICECLASSES, device_class(expression), LateExpressions()) == []


@pytest.mark.parametrize("expression", REFUSED)
def test_a_selector_is_refused_in_the_words_of_kubernetes(expression: str) -> None:
    (error,) = validate_create(DEVICECLASSES, device_class(expression), LateExpressions())
    assert (error.type, error.field, error.bad_value) == (INVALID, "spec.selectors[0].cel.expression", expression)
    assert error.detail == REFUSED[expression]


def test_selectors_of_claims_and_templates_are_looked_at_where_they_stand() -> None:
    wrong = [{"cel": {"expression": "true"}}, {"cel": {"expression": "device.driver"}}]
    exactly = {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 1}}
    one = {**exactly, "exactly": {**exactly["exactly"], "selectors": wrong}}  # type: ignore[dict-item]
    alternative = {"name": "s", "deviceClassName": "c", "allocationMode": "ExactCount", "count": 1, "selectors": wrong}
    spec = {"devices": {"requests": [one, {"name": "b", "firstAvailable": [alternative]}]}}
    claim = {"metadata": {"name": "x", "namespace": "n"}, "spec": spec}
    template = {"metadata": {"name": "x", "namespace": "n"}, "spec": {"spec": spec}}
    places = [
        "devices.requests[0].exactly.selectors[1].cel.expression",
        "devices.requests[1].firstAvailable[0].selectors[1].cel.expression",
    ]
    found = validate_create(RESOURCECLAIMS, claim, LateExpressions())
    assert [each.field for each in found] == [f"spec.{place}" for place in places]
    found = validate_create(RESOURCECLAIMTEMPLATES, template, LateExpressions())
    assert [each.field for each in found] == [f"spec.spec.{place}" for place in places]
