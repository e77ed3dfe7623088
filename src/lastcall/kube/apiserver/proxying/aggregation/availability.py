"""Whether the server of a group version can be asked, by what Service and endpoints tell. Pure.

Source: kube-aggregator pkg/controllers/status/remote/remote_available_controller.go:sync.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lastcall.kube.api.apiservices.local import AVAILABLE
from lastcall.kube.api.apiservices.routes import Remote, Service
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object


class Verdict(NamedTuple):
    """Of the condition `Available`."""

    available: bool
    reason: str
    message: str


PASSED = Verdict(True, "Passed", "all checks passed")


def look(service: Service, found: Object | None, slices: Sequence[Object]) -> Verdict:
    """Judge by the Service object `found` and its EndpointSlices. PASSED: the server itself has to be asked."""
    shown = f"service/{service.name} in {go_quote(service.namespace)}"
    if found is None:
        return Verdict(False, "ServiceNotFound", f"{shown} is not present")
    if (found.get("spec") or {}).get("type") != "ClusterIP":
        return PASSED
    name = port_name(found, service.port)
    if name is None:
        return Verdict(False, "ServicePortError", f"{shown} is not listening on port {service.port}")
    if not slices:
        return Verdict(False, "EndpointsNotFound", f"cannot find endpointslices for {shown}")
    if not any(_has_ready(each) and _port(each, name) is not None for each in slices):
        words = f"endpointslices for {shown} have no addresses with port name {go_quote(name)}"
        return Verdict(False, "MissingEndpoints", words)
    return PASSED


def failed_check(path: str, service: Service, why: str) -> Verdict:
    """Return the verdict on a server that did not answer for the group version as it should."""
    url = f"https://{service.host}:{service.port}{path}"
    return Verdict(False, "FailedDiscoveryCheck", f"failing or missing response from {url}: {why}")


def bad_status(path: str, service: Service, status: int) -> str:
    """Return the reason of `failed_check` for an answer that is neither 2xx nor 3xx."""
    return f"bad status from https://{service.host}:{service.port}{path}: {status}"


def discovery_path(remote: Remote) -> str:
    return f"/apis/{remote.group}/{remote.version}" if remote.group else f"/api/{remote.version}"


def with_verdict(api_service: Object, verdict: Verdict, moment: str) -> Object | None:
    """Return the status with this verdict; None where it has it already."""
    conditions = list((api_service.get("status") or {}).get("conditions") or ())
    old = next((each for each in conditions if each.get("type") == AVAILABLE), None)
    status = "True" if verdict.available else "False"
    since = moment if old is None or old.get("status") != status else old.get("lastTransitionTime", moment)
    new = {
        "type": AVAILABLE,
        "status": status,
        "lastTransitionTime": since,
        "reason": verdict.reason,
        "message": verdict.message,
    }
    if old == new:
        return None
    kept = [new if each is old else each for each in conditions] + [new] * (old is None)
    return {"conditions": kept}


def port_name(service: Object, number: int) -> str | None:
    """Return the name of the Service's port with this number, None when it has none."""
    for port in (service.get("spec") or {}).get("ports") or ():
        if port.get("port") == number:
            name: str = port.get("name") or ""
            return name
    return None


def endpoints_of(slices: Iterable[Object], name: str) -> list[tuple[str, int]]:
    """Return (address, port) of what is ready behind the port of this name."""
    found = []
    for each in slices:
        port = _port(each, name)
        if port is not None:
            for endpoint in each.get("endpoints") or ():
                if _is_ready(endpoint):
                    found += [(address, port) for address in (endpoint.get("addresses") or ())[:1]]
    return found


def _is_ready(endpoint: Object) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _has_ready(each: Object) -> bool:
    return any(_is_ready(endpoint) for endpoint in each.get("endpoints") or ())


def _port(each: Object, name: str) -> int | None:
    for port in each.get("ports") or ():
        if (port.get("name") or "") == name and port.get("port") is not None:
            number: int = port["port"]
            return number
    return None
