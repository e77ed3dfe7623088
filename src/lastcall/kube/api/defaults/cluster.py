"""Defaults of storage drivers, devices, flow control and admission webhooks.

Sources: pkg/apis/storage/v1/defaults.go, pkg/apis/flowcontrol/v1/defaults.go, pkg/apis/resource/v1/defaults.go,
pkg/apis/admissionregistration/v1/defaults.go.
"""

from collections.abc import Iterator

from lastcall.kube.api.meta import Object


def csi_driver(driver: Object) -> None:
    spec = driver.setdefault("spec", {})
    for key, value in (
        ("attachRequired", True),
        ("podInfoOnMount", False),
        ("storageCapacity", False),
        ("fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("requiresRepublish", False),
        ("seLinuxMount", False),
    ):
        spec.setdefault(key, value)
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def flow_schema(schema: Object) -> None:
    spec = schema.setdefault("spec", {})
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def priority_level(level: Object) -> None:
    spec = level.setdefault("spec", {})
    for key, shares in (("exempt", 0), ("limited", 30)):
        part = spec.get(key)
        if part is not None:
            part.setdefault("nominalConcurrencyShares", shares)
            part.setdefault("lendablePercent", 0)
    queuing = ((spec.get("limited") or {}).get("limitResponse") or {}).get("queuing")
    if queuing is not None:
        for key, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
            queuing[key] = queuing.get(key) or value


def resource_claim(claim: Object) -> None:
    _claim_spec(claim.get("spec") or {})


def resource_claim_template(template: Object) -> None:
    _claim_spec((template.get("spec") or {}).get("spec") or {})


def _claim_spec(spec: Object) -> None:
    for request in _requests(spec):
        mode = request["allocationMode"] = request.get("allocationMode") or "ExactCount"
        if mode == "ExactCount" and not request.get("count"):
            request["count"] = 1
        for toleration in request.get("tolerations") or ():
            toleration["operator"] = toleration.get("operator") or "Equal"


def _requests(spec: Object) -> Iterator[Object]:
    for request in (spec.get("devices") or {}).get("requests") or ():
        if request.get("exactly") is not None:
            yield request["exactly"]
        yield from request.get("firstAvailable") or ()


def resource_slice(resource_slice: Object) -> None:
    for device in (resource_slice.get("spec") or {}).get("devices") or ():
        for mapping in (device.get("nodeAllocatableResourceMappings") or {}).values():
            mapping.setdefault("allocationMultiplier", "1")


def validating_webhooks(configuration: Object) -> None:
    for webhook in configuration.get("webhooks") or ():
        _webhook(webhook)


def mutating_webhooks(configuration: Object) -> None:
    for webhook in configuration.get("webhooks") or ():
        _webhook(webhook)
        webhook.setdefault("reinvocationPolicy", "Never")


def _webhook(webhook: Object) -> None:
    webhook.setdefault("failurePolicy", "Fail")
    webhook.setdefault("matchPolicy", "Equivalent")
    webhook.setdefault("timeoutSeconds", 10)
    for selector in ("namespaceSelector", "objectSelector"):
        if webhook.get(selector) is None:
            webhook[selector] = {}
    for rule in webhook.get("rules") or ():
        rule.setdefault("scope", "*")
    if (service := (webhook.get("clientConfig") or {}).get("service")) is not None:
        service.setdefault("port", 443)


def admission_policy(policy: Object) -> None:
    """Set the defaults of both kinds of policies (`SetDefaults_ValidatingAdmissionPolicySpec`,
    `SetDefaults_MatchResources`)."""
    spec = policy.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    _match_resources(spec.get("matchConstraints"))


def admission_policy_binding(binding: Object) -> None:
    _match_resources((binding.get("spec") or {}).get("matchResources"))


def _match_resources(wanted: Object | None) -> None:
    if wanted is None:
        return
    wanted.setdefault("matchPolicy", "Equivalent")
    for selector in ("namespaceSelector", "objectSelector"):
        if wanted.get(selector) is None:
            wanted[selector] = {}
    for rules in ("resourceRules", "excludeResourceRules"):
        for rule in wanted.get(rules) or ():
            rule.setdefault("scope", "*")
