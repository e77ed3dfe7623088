"""An application that is in order, and small changes of it."""

import copy
from typing import Any

from lastcall.kube.api.schema.checks import resource_for
from lastcall.lint.engine import Report, lint
from lastcall.lint.subject import Finding, Subject

NOTHING = object()


def deployment(name: str = "web", **spec: Any) -> dict[str, Any]:
    """Two replicas of a server that is probed, waits before its stop, and has time to end."""
    labels = {"app": name}
    made: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": dict(labels)}, "spec": {"containers": [container()]}},
        },
    }
    made["spec"].update(spec)
    return made


def container(name: str = "app", **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "name": name,
        "image": "registry.example/shop/api:1.4.2",
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}},
        "livenessProbe": {"httpGet": {"path": "/alive", "port": "http"}},
        "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
    }
    made.update(fields)
    return {key: value for key, value in made.items() if value is not NOTHING}


def service(name: str = "web", **spec: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    made.update(spec)
    return obj("Service", name, spec=made)


def budget(name: str = "web", **spec: Any) -> dict[str, Any]:
    return obj("PodDisruptionBudget", name, "policy/v1", spec={"selector": {"matchLabels": {"app": "web"}}, **spec})


def job(*containers: dict[str, Any], kind: str = "Job", **spec: Any) -> dict[str, Any]:
    inner = {"template": {"spec": {"restartPolicy": "Never", "containers": list(containers)}}, **spec}
    if kind == "CronJob":
        return obj("CronJob", "report", "batch/v1", spec={"schedule": "0 3 * * *", "jobTemplate": {"spec": inner}})
    return obj("Job", "report", "batch/v1", spec=inner)


def worker(name: str = "work", **fields: Any) -> dict[str, Any]:
    """A container that does its work and ends."""
    return {"name": name, "image": "registry.example/report:1", "command": ["/report"], **fields}


def obj(kind: str, name: str, api_version: str = "v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def changed(value: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    """A copy with another value at `spec.template.spec.containers.0.image`; NOTHING removes it."""
    made = copy.deepcopy(value)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    inner: Any = made
    for step in steps:
        if isinstance(inner, dict):
            inner = inner.setdefault(step, {})
        else:
            inner = inner[step]
    if new is NOTHING:
        del inner[last]
    else:
        inner[last] = new
    return made


def in_pod(value: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    return changed(value, f"spec.template.spec.{path}", new)


def in_container(value: dict[str, Any], path: str, new: Any) -> dict[str, Any]:
    return changed(value, f"spec.template.spec.containers.0.{path}", new)


def report(*objects: dict[str, Any], fresh: bool = False) -> Report:
    subjects = [Subject(each, resource_for(str(each.get("apiVersion")), str(each.get("kind")))) for each in objects]
    return lint(subjects, fresh=fresh)


def findings(*objects: dict[str, Any], fresh: bool = False) -> tuple[Finding, ...]:
    return report(*objects, fresh=fresh).findings


def rules(*objects: dict[str, Any], fresh: bool = False) -> list[str]:
    return sorted({each.rule for each in findings(*objects, fresh=fresh)})


def only(rule: str, *objects: dict[str, Any], fresh: bool = False) -> Finding:
    """The one finding of this rule."""
    found = [each for each in findings(*objects, fresh=fresh) if each.rule == rule]
    assert len(found) == 1, [(each.rule, each.message) for each in findings(*objects, fresh=fresh)]
    return found[0]
