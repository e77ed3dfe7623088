"""The APIs that other servers serve: which of them cannot be discovered. Pure.

Source: kube-aggregator pkg/apiserver/handler_discovery.go; the words are client-go's (discovery_client.go).
"""

# check: pure
# check: plain objects because the OpenAPI schema that types are made from has no APIService

from collections.abc import Iterable

from lastcall.kube.api.meta import Object


def undiscovered(services: Iterable[Object]) -> dict[str, str]:
    """Return group/version → why, for each APIService of another server that is not available."""
    versions = (
        f"{each['spec'].get('group')}/{each['spec'].get('version')}"
        for each in services
        if each["spec"].get("service") and not _is_available(each)
    )
    return {each: f"stale GroupVersion discovery: {each}" for each in versions}


def _is_available(service: Object) -> bool:
    conditions = (service.get("status") or {}).get("conditions") or ()
    return any((each.get("type"), each.get("status")) == ("Available", "True") for each in conditions)
