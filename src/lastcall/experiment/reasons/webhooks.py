"""What to do about a write that an admission webhook refuses, or that fails because it cannot be asked. Pure."""

# check: pure

import re
from collections.abc import Iterable, Iterator, Sequence

from lastcall.endings import fix_of
from lastcall.kube.api import Object, labels_of, name_of, namespace_of, selector_of_labels
from lastcall.records.said import tell
from lastcall.world.dataclass import dataclass

_DENIED = re.compile(r'admission webhook "(?P<webhook>[^"]+)" denied the request')
_FAILED = re.compile(r'failed calling webhook "(?P<webhook>[^"]+)"')
_WHY_FAILED = (
    ("no endpoints available for service|connect: connection refused", "noEndpoints"),
    (r'service "[^"]+" not found|no such host', "noService"),
    (r"context deadline exceeded|i/o timeout|Client\.Timeout", "timeout"),
    ("x509: |tls: ", "certificate"),
)
"""By what the API server says of its call; the first that fits."""
_UNREACHABLE = ("noEndpoints", "noService", "timeout")
"""Failures of a webhook that nobody answers for: a Service without endpoints refuses connections, or drops them."""


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The cluster's webhook configurations, with the Services and Pods that may answer for them."""

    configurations: Sequence[Object] = ()
    services: Sequence[Object] = ()
    pods: Sequence[Object] = ()


def speaks_of_a_webhook(message: str) -> bool:
    """Return whether a write was refused by a webhook, or failed because one could not be asked."""
    return bool(_DENIED.search(message) or _FAILED.search(message))


def fixes_of_webhook(message: str, owner: Object, known: Webhooks) -> Iterator[str]:
    """Yield what to change about a refused Pod of an owner, with the cause's id; nothing if no webhook refused it."""
    denied, failed = _DENIED.search(message), _FAILED.search(message)
    match = denied or failed
    if match is None:
        return
    configuration, webhook = _find(known.configurations, match["webhook"])
    name = _named(match["webhook"], configuration)
    if denied:
        yield fix_of("webhookRefuses", "denied", webhook=name)
        return
    variant = next((variant for words, variant in _WHY_FAILED if re.search(words, message)), "")
    reference = ((webhook or {}).get("clientConfig") or {}).get("service") or {}
    service = _service(known.services, reference)
    policy = (webhook or {}).get("failurePolicy") or "Fail"
    shown = f"{reference.get('namespace')}/{reference.get('name')}" if reference else ""
    facts = {"webhook": name, "policy": policy, "service": shown}
    if variant in _UNREACHABLE and service is not None and _only_its_own(service, owner, known.pods):
        selector: dict[str, str] = service["spec"]["selector"]
        key, value = next(iter(selector.items()))
        yield fix_of("webhookRefuses", "itself", **facts, key=key, value=value, owner=name_of(owner))
    elif not reference and variant in ("noEndpoints", "noService"):
        yield fix_of("webhookRefuses", "", **facts)
    else:
        yield fix_of("webhookRefuses", variant, **facts)


def lines_of_refusal(message: str, known: Webhooks) -> list[str]:
    """Return why a DELETE is refused and what to change, as errors say it; [] if no webhook refuses it."""
    fixes = [f"  fix: {each}" for each in fixes_of_webhook(message, {}, known)]
    if not fixes:
        return []
    return [f"  {tell('the API server refuses its DELETE: $message', message=message)}", *fixes]


def _find(configurations: Iterable[Object], name: str) -> tuple[Object | None, Object | None]:
    for configuration in configurations:
        for webhook in configuration.get("webhooks") or ():
            if webhook.get("name") == name:
                return configuration, webhook
    return None, None


def _named(webhook: str, configuration: Object | None) -> str:
    if configuration is None:
        return tell("webhook $webhook", webhook=webhook)
    kind = configuration.get("kind") or "WebhookConfiguration"
    return tell("webhook $webhook of $kind $name", webhook=webhook, kind=kind, name=name_of(configuration))


def _service(services: Iterable[Object], reference: Object) -> Object | None:
    wanted = (reference.get("namespace"), reference.get("name"))
    return next((each for each in services if (namespace_of(each), name_of(each)) == wanted), None)


def _only_its_own(service: Object, owner: Object, pods: Iterable[Object]) -> bool:
    """Whether a Service selects the Pods of the owner, which the webhook has to admit, and no other Pod is there."""
    labels = (((owner.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels") or {}
    selector = (service.get("spec") or {}).get("selector")
    if not selector or not labels or namespace_of(service) != namespace_of(owner):
        return False
    wanted = selector_of_labels(selector)
    there = (each for each in pods if namespace_of(each) == namespace_of(service) and wanted.matches(labels_of(each)))
    return wanted.matches(labels) and not any(there)
