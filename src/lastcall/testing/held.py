"""What holds a namespace that is being deleted, by its conditions. Pure."""

# check: pure

import re

from lastcall.kube.api import Object

_HOLDING = ("NamespaceFinalizersRemaining", "NamespaceDeletionDiscoveryFailure")
_REMAINING = re.compile(r"([a-z0-9.-]+) has \d+ resource instances")


def is_held(namespace: Object) -> bool:
    """Return True if finalizers hold it, or an API that does not answer: waiting alone changes neither."""
    return any(each in _messages(namespace) for each in _HOLDING)


def kinds_left(namespace: Object) -> list[str]:
    """Return the kinds whose objects remain, as kubectl takes them: `lamps.example.com`."""
    said = _messages(namespace).get("NamespaceContentRemaining", "")
    return [each.rstrip(".") for each in _REMAINING.findall(said)]


def held_by(namespace: Object) -> list[str]:
    """Return what the namespace itself says of what holds it."""
    messages = _messages(namespace)
    order = (*_HOLDING[::-1], "NamespaceDeletionContentFailure", "NamespaceContentRemaining")
    return [messages[each] for each in order if each in messages]


def _messages(namespace: Object) -> dict[str, str]:
    conditions = (namespace.get("status") or {}).get("conditions") or ()
    return {str(each.get("type")): str(each.get("message")) for each in conditions if each.get("status") == "True"}
