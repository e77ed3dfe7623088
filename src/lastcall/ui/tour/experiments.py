"""The Pods of the tour, and what is done to each: small, and with grace periods of seconds. Pure.

Every container is a shell of busybox, which a cluster of lastcall has without a registry. `wait` lets a trap run at
once, where `sleep` in the foreground would delay it.
"""

# check: pure

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

from lastcall.kube.api import Object
from lastcall.ui.tour.goals import Condition, Question
from lastcall.world.dataclass import dataclass

IMAGE = "busybox:1.36"
FINALIZER = "lastcall.example/tour"
SERVICE_PORT = 8080

_FOREVER = "while true; do sleep 1 & wait $!; done"
_SERVES = (
    "( while :; do printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n'"
    f" | nc -l -p {SERVICE_PORT}; done ) &"
)
FORWARDS = 'sleep 1000 & child=$!; trap "echo passing SIGTERM on; kill -TERM $child" TERM; wait $child; wait $child'
"""A shell that hands the signal on to its child, and exits as the child did."""

Until = Literal["ready", "pending", "finished"]
What = Literal["delete", "evict", "patch", "allow"]


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is done to the Pod. `grace` is asked for in seconds, None for its own; 0 is by force.

    `patch` takes the finalizers away, `allow` the PodDisruptionBudget. It comes `after` seconds, and not before the Pod
    is `held` by its finalizers.
    """

    what: What = "delete"
    grace: int | None = None
    after: float = 0.0
    held: bool = False


@dataclass(frozen=True, slots=True)
class Experiment:
    """`objects` are made in a namespace of their own, in this order; the Pod is the one with the label `tour`.

    `until`: how far every Pod has to be before anything is done to that one. `goal` and `expect` are a level's,
    `manifest` is what the learner wrote, and `guess` the number of the choice that the learner made.
    """

    id: str
    objects: tuple[Object, ...]
    acts: tuple[Act, ...] = (Act(),)
    until: Until = "ready"
    goal: tuple[Condition, ...] = ()
    manifest: str = ""
    expect: Question | None = None
    guess: int | None = None


LABEL = "tour"
SERVES = "serves"


def _sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def _drains(seconds: int, code: int = 0) -> list[str]:
    return _sh(f"trap 'echo draining; sleep {seconds}; exit {code}' TERM; {_FOREVER}")


_IGNORES = _sh(_FOREVER)
"""No handler: the kernel does not deliver the signal to a PID 1 that has none."""


def _container(name: str, command: Sequence[str], hook: Mapping[str, Any] | None = None, **more: Any) -> Object:
    made: Object = {"name": name, "image": IMAGE, "command": list(command), **more}
    if hook is not None:
        made["lifecycle"] = {"preStop": dict(hook)}
    return made


@dataclass(slots=True)
class _Pod:
    """Of the experiment `id`."""

    id: str
    grace: int
    containers: Sequence[Object]
    spec: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)

    def template(self) -> Object:
        spec = {
            "terminationGracePeriodSeconds": self.grace,
            "automountServiceAccountToken": False,
            "containers": list(self.containers),
            **self.spec,
        }
        return {"metadata": {"labels": {LABEL: self.id}}, "spec": spec}

    def made(self) -> Object:
        template = self.template()
        meta = {"name": self.id.lower(), **template["metadata"], **self.meta}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}


def _one(
    name: str, grace: int, command: Sequence[str], hook: Mapping[str, Any] | None = None, *acts: Act, **more: Any
) -> Experiment:
    """A Pod of one container."""
    objects = (_Pod(name, grace, [_container("app", command, hook)], **more).made(),)
    return Experiment(name, objects, acts or (Act(),))


def _served(experiment: Experiment) -> Experiment:
    """With a Service that leads to the Pod, and to another one that stays.

    Alone it would still get new connections while it ends: a proxy without a ready endpoint takes one that serves.
    """
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": experiment.id.lower()},
        "spec": {"selector": {SERVES: experiment.id}, "ports": [{"port": 80, "targetPort": SERVICE_PORT}]},
    }
    other = _Pod(experiment.id, 8, [_container("app", _drains(0))]).made()
    other["metadata"] = {"name": "stays", "labels": {SERVES: experiment.id}}
    (pod,) = experiment.objects
    pod["metadata"]["labels"][SERVES] = experiment.id
    return Experiment(experiment.id, (service, other, pod), experiment.acts, experiment.until)


def _deployment(name: str) -> Object:
    template = _Pod(name, 8, [_container("app", _drains(2))]).template()
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name.lower()},
        "spec": {"replicas": 1, "selector": {"matchLabels": {LABEL: name}}, "template": template},
    }


def _budget(name: str) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name.lower()},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {LABEL: name}}},
    }


_EXEC = {"exec": {"command": ["sleep", "2"]}}
_NONE = {"nodeSelector": {"lastcall.example/none": "true"}}

_ALL = (
    _served(_one("graceful", 8, _drains(1))),
    _one("asked", 30, _IGNORES, None, Act(grace=2)),
    _one("shorter", 30, _IGNORES, None, Act(grace=5), Act(grace=2, after=0.5), Act(grace=25, after=0.3)),
    Experiment("unscheduled", (_Pod("unscheduled", 30, [_container("app", _IGNORES)], _NONE).made(),), until="pending"),
    Experiment(
        "finished",
        (_Pod("finished", 30, [_container("app", _sh("sleep 1; exit 0"))], {"restartPolicy": "Never"}).made(),),
        until="finished",
    ),
    _served(_one("atOnce", 8, _sh(f"trap 'exit 0' TERM; {_FOREVER}"))),
    _served(_one("headStart", 8, _sh(f"trap 'exit 0' TERM; {_FOREVER}"), {"sleep": {"seconds": 2}})),
    Experiment("owned", (_deployment("owned"),)),
    _one("hookExec", 8, _drains(1), _EXEC),
    _one(
        "hookHttp",
        8,
        _sh(f"{_SERVES} trap 'exit 0' TERM; {_FOREVER}"),
        {"httpGet": {"path": "/stop", "port": SERVICE_PORT}},
    ),
    _one("hookFails", 8, _drains(1), {"exec": {"command": ["false"]}}),
    _one("hookCounts", 5, _IGNORES, _EXEC),
    _one("hookLong", 3, _IGNORES, {"exec": {"command": ["sleep", "60"]}}),
    Experiment("two", (_Pod("two", 8, [_container("a", _drains(1)), _container("b", _drains(3))]).made(),)),
    Experiment(
        "sidecar",
        (
            _Pod(
                "sidecar",
                8,
                [_container("app", _drains(2))],
                {"initContainers": [_container("proxy", _drains(1), restartPolicy="Always")]},
            ).made(),
        ),
    ),
    _one("ignores", 3, _IGNORES),
    _one("forwards", 8, _sh(FORWARDS)),
    _one("fails", 8, _drains(1, 3)),
    _one(
        "held",
        8,
        _drains(1),
        None,
        Act(),
        Act("patch", after=1.0, held=True),
        meta={"finalizers": [FINALIZER]},
    ),
    _one("forced", 8, _drains(3), None, Act(grace=0)),
    Experiment(
        "evicted",
        (_budget("evicted"), _Pod("evicted", 8, [_container("app", _drains(1))]).made()),
        (Act("evict"), Act("allow", after=0.5), Act("evict", after=0.2)),
    ),
)

EXPERIMENTS: Mapping[str, Experiment] = {each.id: each for each in _ALL}
"""By id; the steps of the lesson name them."""
