"""Pods, Events and EndpointSlices as the short lines that recordings and scenarios compare."""

from collections.abc import Callable

from lastcall.kube.api.meta import Object


def pod_facts(pod: Object) -> dict[str, str]:
    """The facts of a Pod that the recordings name, by a key that stays when the fact changes."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    facts = {"phase": f"phase={status.get('phase')}"}
    if status.get("reason"):
        facts["reason"] = f"reason={status['reason']}"
    if meta.get("generation") is not None:
        facts["generation"] = f"generation={meta['generation']}"
    if status.get("observedGeneration") is not None:
        facts["observedGeneration"] = f"observedGeneration={status['observedGeneration']}"
    if spec.get("nodeName"):
        facts["node"] = "node=assigned"
    if status.get("nominatedNodeName"):
        facts["nominated"] = "nominated=set"
    if status.get("podIP"):
        facts["podIP"] = "podIP=set"
    if "deletionTimestamp" in meta:
        facts["deletion"] = f"deletion=grace {meta.get('deletionGracePeriodSeconds')}"
    if meta.get("finalizers"):
        facts["finalizers"] = "finalizers=" + ",".join(meta["finalizers"])
    for condition in status.get("conditions") or []:
        facts[f"cond {condition['type']}"] = f"cond {condition['type']}={_condition(condition, '(', ')')}"
    for prefix, key in (("init ", "initContainerStatuses"), ("", "containerStatuses")):
        for each in status.get(key) or []:
            name = prefix + each["name"]
            facts[f"{name} state"] = f"{name} state={_state(each.get('state') or {})}"
            facts[f"{name} ready"] = f"{name} ready={_bool(each.get('ready'))}"
            facts[f"{name} started"] = f"{name} started={_bool(each.get('started'))}"
            facts[f"{name} restarts"] = f"{name} restarts={each.get('restartCount')}"
            if each.get("lastState"):
                facts[f"{name} last"] = f"{name} last={_state(each['lastState'])}"
    return facts


def final_facts(pod: Object, gone: bool) -> Object:
    """The last version of a Pod as the recordings keep it."""
    meta, status = pod["metadata"], pod.get("status") or {}
    final: Object = {
        "objectGone": gone,
        "phase": status.get("phase"),
        "conditions": {c["type"]: _final_condition(c) for c in status.get("conditions") or []},
        "generation": meta.get("generation"),
        "qosClass": status.get("qosClass"),
        "deletionGracePeriodSeconds": meta.get("deletionGracePeriodSeconds"),
        "podIPkept": bool(status.get("podIP")),
    }
    for key in ("reason", "message"):
        if status.get(key):
            final[key] = status[key]
    for key in ("initContainerStatuses", "containerStatuses"):
        if status.get(key):
            final[key] = [_final_container(each) for each in status[key]]
    return final


def _final_condition(condition: Object) -> str:
    message = condition.get("message")
    return _condition(condition, " ", "") + (f": {message}" if message else "")


def _final_container(status: Object) -> Object:
    found: Object = {
        "name": status["name"],
        "state": _state(status.get("state") or {}),
        "restartCount": status.get("restartCount"),
        "ready": status.get("ready"),
        "started": status.get("started"),
    }
    if status.get("lastState"):
        found["lastState"] = _state(status["lastState"])
        if last := (status["lastState"].get("terminated") or {}).get("message"):
            found["lastMessage"] = last
    message = ((status.get("state") or {}).get("terminated") or {}).get("message")
    if message:
        found["message"] = message
    return found


def _state(state: Object) -> str:
    if "waiting" in state:
        return f"waiting({state['waiting'].get('reason', '')})"
    if "terminated" in state:
        terminated = state["terminated"]
        return f"terminated({terminated.get('reason', '')},{terminated.get('exitCode')})"
    return "running" if "running" in state else "none"


def _condition(condition: Object, before: str, after: str) -> str:
    reason = condition.get("reason")
    return str(condition["status"]) + (f"{before}{reason}{after}" if reason else "")


def _bool(value: object) -> str:
    return "none" if value is None else str(bool(value)).lower()


def event_line(event: Object) -> str:
    path = event["involvedObject"].get("fieldPath", "").removeprefix("spec.")
    where = f" [{path}]" if path else ""
    count = event.get("count") or 1
    times = f" (x{count})" if count > 1 else ""
    return f"{event['type']} {event['reason']}{where}: {event['message']}{times}"


def endpoint_states(endpoint_slice: Object, alias: Callable[[str], str]) -> list[str]:
    lines = []
    for endpoint in endpoint_slice.get("endpoints") or []:
        conditions = endpoint.get("conditions") or {}
        name = alias((endpoint.get("targetRef") or {}).get("uid", ""))
        shown = " ".join(f"{key}={_bool(conditions.get(key))}" for key in ("ready", "serving", "terminating"))
        lines.append(f"{name} {shown}")
    return sorted(lines)
