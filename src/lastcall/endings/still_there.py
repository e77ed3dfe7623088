"""What an object that is being deleted waits for, and what ends that safely: for stories, errors and pages. Pure.

Seconds that are left count down to the moment at which Kubernetes goes on by itself. Sources:
kuberuntime_container.go:killContainer (hook, signal, SIGKILL), store.go:deletionFinalizersForGarbageCollection
(finalizers), namespaced_resources_deleter.go (conditions of a Namespace), pvc_protection_controller.go (claims).
"""

# check: pure

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from lastcall.endings.catalogue.lookup import fix, said
from lastcall.endings.facts.finalizers import removers
from lastcall.endings.story import ContainerEnding, Ending
from lastcall.kube.api import AnyObject, name_of, namespace_of, parse_rfc3339
from lastcall.records.said import joined
from lastcall.world.dataclass import dataclass

LATE_SECONDS = 5.0
"""A kubelet that lives has reported an end this long after its grace period."""
_RUNTIME_DOWN = "container runtime is down"
"""In a node's condition Ready (kubelet runtime.go:runtimeErrors)."""
_FOR_NAMESPACES = ("NamespaceDeletionDiscoveryFailure", "NamespaceFinalizersRemaining")
"""Conditions that waiting alone does not change."""
_MORE_OF_NAMESPACES = ("NamespaceDeletionContentFailure", "NamespaceContentRemaining")
_REMAINING = re.compile(r"([a-z0-9.-]+) has \d+ resource instances")
_CLAIM, _VOLUME = "kubernetes.io/pvc-protection", "kubernetes.io/pv-protection"


@dataclass(frozen=True, slots=True)
class Wait:
    """`what` is a sentence; `ends` says what ends it safely, "" where time alone does."""

    what: str
    ends: str = ""

    @property
    def lines(self) -> list[str]:
        """Return it as an error says it."""
        return [self.what, *([f"  fix: {self.ends}"] if self.ends else [])]


# -- a container of a story ------------------------------------------------------------------------------------------


def wait_of_run(c: ContainerEnding, ending: Ending) -> Wait | None:
    """Return what a container that is being stopped waits for at the last moment of its story; None for any other."""
    if ending.gone is not None or not ending.zero_kind or not c.started:
        return None
    if c.exit.at is not None or c.exit.code is not None or c.exit.elsewhere:
        return None
    now = ending.until
    if c.stop.kill_at is not None:
        facts = {"container": c.name, "since": _s(now - c.stop.kill_at)}
        return Wait(said("waitsFor", "killed", **facts), fix("waitsFor", "killed"))
    if c.stop.signal_at is not None:
        facts = {"container": c.name, "signal": c.stop.signal, "since": _s(now - c.stop.signal_at)}
        if c.stop.timeout is None:
            return Wait(said("waitsFor", "signal", **facts))
        left = _s(c.stop.signal_at + c.stop.timeout - now)
        return Wait(said("waitsFor", "signalUntil", **facts, left=left))
    hook = c.hook
    if hook is None or hook.started_at is None or hook.finished_at is not None:
        return None
    facts = {"container": c.name, "handler": hook.handler, "signal": c.stop.signal, "since": _s(now - hook.started_at)}
    if ending.grace_seconds is None:
        return Wait(said("waitsFor", "hook", **facts))
    return Wait(said("waitsFor", "hookUntil", **facts, left=_s(hook.started_at + ending.grace_seconds - now)))


# -- an object of the API --------------------------------------------------------------------------------------------


def wait_of(
    obj: AnyObject,
    kind: str = "",
    *,
    now: datetime | None = None,
    node: AnyObject | None = None,
    pods: Iterable[AnyObject] = (),
) -> Wait | None:
    """Return what an object with a deletionTimestamp waits for, None for one without.

    `node` is the one that a Pod is on, where it was asked for; `pods` are those of the claim's namespace.
    """
    metadata = obj.get("metadata") or {}
    if not metadata.get("deletionTimestamp"):
        return None
    kind = kind or str(obj.get("kind") or "Object")
    if kind == "Namespace" and (wait := _of_namespace(obj)):
        return wait
    if kind == "Pod" and (wait := _of_pod(obj, now, node)):
        return wait
    finalizers = [str(each) for each in metadata.get("finalizers") or ()]
    if kind == "PersistentVolumeClaim" and _CLAIM in finalizers and (users := _users(obj, pods)):
        names = ", ".join(users)
        return Wait(said("waitsFor", "claim", what=_named(kind, obj), pods=names), fix("waitsFor", "claim", pods=names))
    if kind == "PersistentVolume" and _VOLUME in finalizers and (claim := (obj.get("spec") or {}).get("claimRef")):
        name = f"{claim.get('namespace')}/{claim.get('name')}"
        return Wait(said("waitsFor", "bound", what=_named(kind, obj), claim=name), fix("waitsFor", "bound", claim=name))
    if not finalizers:
        return None
    return _finalizers(kind, obj, finalizers)


def is_held(namespace: AnyObject) -> bool:
    """Return True if finalizers hold a Namespace, or an API that does not answer: waiting alone changes neither."""
    return any(each in _messages(namespace) for each in _FOR_NAMESPACES)


def kinds_left(namespace: AnyObject) -> list[str]:
    """Return the kinds whose objects remain in a Namespace, as kubectl takes them: `lamps.example.com`."""
    remaining = _messages(namespace).get("NamespaceContentRemaining", "")
    return [each.rstrip(".") for each in _REMAINING.findall(remaining)]


def _of_namespace(namespace: AnyObject) -> Wait | None:
    messages = _messages(namespace)
    found = [messages[each] for each in (*_FOR_NAMESPACES, *_MORE_OF_NAMESPACES) if each in messages]
    if not found:
        return None
    why = next((each for each in (*_FOR_NAMESPACES, *_MORE_OF_NAMESPACES) if each in messages), "")
    text = said("waitsFor", "namespace", what=_named("Namespace", namespace), messages=" ".join(found))
    return Wait(text, fix("waitsFor", why) if why in _FOR_NAMESPACES else "")


def _messages(namespace: AnyObject) -> dict[str, str]:
    conditions = (namespace.get("status") or {}).get("conditions") or ()
    return {str(each.get("type")): str(each.get("message")) for each in conditions if each.get("status") == "True"}


def _of_pod(pod: AnyObject, now: datetime | None, node: AnyObject | None) -> Wait | None:
    """Return what keeps a Pod whose containers have not ended, or whose node has not let go of it."""
    metadata, spec = pod["metadata"], pod.get("spec") or {}
    grace, on, what = metadata.get("deletionGracePeriodSeconds"), spec.get("nodeName"), _named("Pod", pod)
    if grace == 0 or (not on and metadata.get("finalizers")):
        return None  # nothing but finalizers is left
    if node is not None and not _is_ready(node):
        variant = "runtime" if _RUNTIME_DOWN in _why_not_ready(node) else "node"
        return Wait(said("waitsFor", variant, what=what, node=on), fix("waitsFor", variant, node=on))
    running = _running(pod)
    if not running and (pod.get("status") or {}).get("containerStatuses"):
        names = ", ".join(str(each.get("name")) for each in spec.get("volumes") or ()) or "none"
        return Wait(said("waitsFor", "cleanup", what=what, node=on, volumes=names))
    running = running or [str(each.get("name")) for each in spec.get("containers") or ()]
    facts = {
        "what": what,
        "containers": ", ".join(running) or said("waitsFor", "all"),
        "hooks": _hooks(spec, running),
        "grace": grace,
    }
    deadline = metadata["deletionTimestamp"]
    if now is None:
        return Wait(said("waitsFor", "pod", **facts, deadline=deadline))
    left = (parse_rfc3339(deadline) - now).total_seconds()
    if left < -LATE_SECONDS:
        return Wait(said("waitsFor", "late", **facts, node=on, over=_s(-left)), fix("waitsFor", "late", node=on))
    return Wait(said("waitsFor", "podUntil", **facts, left=_s(max(left, 0.0))))


def _running(pod: AnyObject) -> list[str]:
    status = pod.get("status") or {}
    found = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    return [str(each.get("name")) for each in found if (each.get("state") or {}).get("running") is not None]


def _hooks(spec: AnyObject, running: Sequence[str]) -> str:
    """Return the preStop hooks of containers that run, to go on from their names."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    hooks = {each.get("name"): (each.get("lifecycle") or {}).get("preStop") or {} for each in containers}
    found = [f"{name}: {next(iter(hook))}" for name in running if (hook := hooks.get(name))]
    return said("waitsFor", "hooks", hooks=", ".join(found)) if found else ""


def _finalizers(kind: str, obj: AnyObject, finalizers: Sequence[str]) -> Wait:
    where = f" -n {namespace_of(obj)}" if namespace_of(obj) else ""
    text = said("waitsFor", "finalizers", what=_named(kind, obj), names=", ".join(finalizers), by=removers(finalizers))
    return Wait(text, fix("waitsFor", "finalizers", kind=kind.lower(), name=name_of(obj), where=where))


def _users(claim: AnyObject, pods: Iterable[AnyObject]) -> list[str]:
    """Return the Pods that have a node and use a claim: those that its controller waits for, ended or not."""

    def uses(pod: AnyObject) -> bool:
        spec = pod.get("spec") or {}
        for volume in spec.get("volumes") or ():
            own = f"{name_of(pod)}-{volume.get('name')}" if volume.get("ephemeral") else ""
            if name_of(claim) in ((volume.get("persistentVolumeClaim") or {}).get("claimName"), own):
                return bool(spec.get("nodeName"))
        return False

    return [name_of(pod) for pod in pods if namespace_of(pod) == namespace_of(claim) and uses(pod)]


def _is_ready(node: AnyObject) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any((each.get("type"), each.get("status")) == ("Ready", "True") for each in conditions)


def _why_not_ready(node: AnyObject) -> str:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return next((str(each.get("message")) for each in conditions if each.get("type") == "Ready"), "")


def _named(kind: str, obj: AnyObject) -> str:
    return joined([kind, "/".join(filter(None, (namespace_of(obj), name_of(obj))))])


def _s(seconds: float) -> str:
    return f"{max(seconds, 0.0):.1f} s"
