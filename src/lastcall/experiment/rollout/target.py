"""What `lastcall rollout` disrupts and where its requests go: one workload, its Service, a port of that."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.endings import ProgramChange, fix, fix_of, said
from lastcall.errors import UserError, WorldError
from lastcall.experiment.rollout.workload import WORKLOADS, find_workload, is_same, kubectl_name, labels_of, selects
from lastcall.kube.api import SERVICES, Object, name_of, namespace_of, strategic_merge_patch
from lastcall.manifests import Manifest
from lastcall.records.said import joined, tell
from lastcall.traffic import (
    ASKS,
    ENOUGH,
    Advice,
    Judgement,
    Load,
    Outcome,
    client_errors,
    serving_containers,
    unanswered,
)
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.experiment.rollout.options import RolloutOptions

USUAL_PORT = "http"
"""The name of the port that is meant where a Service has several, by all that speaks HTTP."""


@dataclass(frozen=True, slots=True)
class Target:
    """What is disrupted, and the port of the Service that requests go to."""

    workload: Manifest
    service: Manifest
    port: Object

    @property
    def container_port(self) -> int | str:
        port: int | str = self.port.get("targetPort") or self.port["port"]
        return port


def find_target(manifests: Sequence[Manifest], options: "RolloutOptions") -> Target:
    """Return the workload and its Service. Raises UserError."""
    return target_of(find_workload(manifests, options.workload, options.service), manifests, options)


def target_of(workload: Manifest, manifests: Sequence[Manifest], options: "RolloutOptions") -> Target:
    """Return the Service of a workload, of those in the manifests, and its port. Raises UserError."""
    selecting = [each for each in manifests if each.resource == SERVICES and not _why_not(each.obj, workload.obj)]
    services = [each for each in selecting if options.service in ("", name_of(each.obj))]
    if len(services) > 1:
        # The other one names the Pods of a StatefulSet to one another.
        services = [each for each in services if not is_headless(each.obj)] or services
    if len(services) != 1:
        found = ", ".join(name_of(each.obj) for each in selecting)
        if options.service and selecting:
            raise UserError(f"--service {options.service}: the Services that select its Pods are {found}")
        if selecting:
            raise UserError(
                f"one Service must select the Pods of {name_of(workload.obj)}: {found} do: choose one with --service"
            )
        raise UserError(_none_selects(manifests, workload))
    if is_headless(services[0].obj) and options.source != "balancer":
        raise UserError(
            f"Service {name_of(services[0].obj)} is headless (clusterIP: None): it has no address to send requests to\n"
            "fix: --from balancer sends to its Pods themselves; or add a Service that has an address"
        )
    return Target(workload, services[0], _port(services[0].obj, options))


def is_headless(service: Object) -> bool:
    """Return whether it only names its Pods, and has no address of its own."""
    return bool(service["spec"].get("clusterIP") == "None")


def check_target_port(target: Target, service: str) -> None:
    """Raise WorldError for a named port that no container has: no rule will ever lead to the Pods."""
    port = target.container_port
    spec = target.workload.obj["spec"]["template"]["spec"]
    ports = [own for each in _containers(spec) for own in each.get("ports") or ()]
    if isinstance(port, int) or port in (own.get("name") for own in ports):
        return
    names = ", ".join(str(own["name"]) for own in ports if own.get("name")) or "none"
    facts = {"service": service, "port": port}
    why = said("targetPortUnresolved", names=names, **facts)
    raise WorldError(f"{why}\n  fix: {fix_of('targetPortUnresolved', **facts)}")


def serving_container(pod_spec: Object, port: int | str) -> Object:
    """Return the container that declares the port, else the first one."""
    _, names = serving_containers(pod_spec, port)
    found: Object = next((each for each in _containers(pod_spec) if each["name"] in names), pod_spec["containers"][0])
    return found


def never_heard(outcomes: Sequence[Outcome], seconds: float, target: Target, container: Object) -> Judgement | None:
    """Return why nothing is disrupted: kinds of requests without an answer; those that nobody listens for together."""
    ways = unanswered(outcomes)
    refused = {kind: lost for kind, lost in ways.items() if set(lost) == {"refused"}}
    advice: list[Advice] = []
    sentences = []
    for kinds in filter(None, ([*refused], *([kind] for kind in ways if kind not in refused))):
        count = sum(sum(ways[kind].values()) for kind in kinds)
        how = ", ".join(dict.fromkeys(way for kind in kinds for way in ways[kind]))
        facts = {"kind": joined(kinds, " and "), "count": count, "how": how, "seconds": f"{seconds:.3g}"}
        id_ = "neverAnswered"
        program: ProgramChange | None = None
        if kinds[0] in refused:
            why = said("neverAnswered", "refused", port=target.container_port, **facts)
            words = _listen(target, container)
        elif all(set(ways[kind]) == {"5xx"} for kind in kinds):  # it speaks that kind, and answers with errors
            id_, program = "serverError", "fixServer"
            why, words = said("serverError", "always", **facts), fix("serverError")
        else:
            why, words = said("neverAnswered", **facts), fix("neverAnswered", ask=ASKS[kinds[0]])
        sentences.append(joined([why, words], ": "))
        advice.append(Advice(id_, words, count, program=program))
    return Judgement("inconclusive", joined(sentences, "; "), tuple(advice)) if advice else None


def not_served(outcomes: Sequence[Outcome], load: Load) -> Judgement | None:
    """Return why nothing was tested: kinds of requests that the application answered with 4xx alone."""
    those = {kind: errors for kind, (errors, total) in client_errors(outcomes).items() if errors.total() == total}
    sentences, advice = [], []
    for path, option in dict.fromkeys(map(load.asked, those)):
        kinds = [kind for kind in those if load.asked(kind) == (path, option)]
        errors = sum((those[kind] for kind in kinds), Counter[int]())
        facts = {
            "statuses": ", ".join(map(str, sorted(errors))),
            "count": errors.total(),
            "kind": joined(kinds, " and "),
        }
        words = fix("pathNotServed", option=option)
        sentences.append(joined([said("pathNotServed", path=path, **facts), words], ": "))
        advice.append(Advice("pathNotServed", words, errors.total()))
    return Judgement("inconclusive", joined(sentences, "; "), tuple(advice)) if advice else None


def sent_to_strangers(
    outcomes: Sequence[Outcome], target: Target, strangers: Mapping[str, Sequence[Manifest]]
) -> Judgement | None:
    """Return why nothing is disrupted: requests are lost, and the Service selects Pods of other workloads.

    None of these Pods has answered. `strangers`: their addresses, with the workload they are of where that is known.
    """
    lost = [each for each in outcomes if each.lost]
    answered = {each.served_by for each in outcomes if not each.lost}
    if not strangers or len(lost) < ENOUGH or any(each in answered for each in strangers):
        return None
    workloads = {kubectl_name(each): each for those in strangers.values() for each in those}
    labels, service = labels_of(target.workload), target.service.obj
    selector = service["spec"].get("selector") or {}
    own = {k: v for k, v in labels.items() if all(labels_of(each).get(k) != v for each in workloads.values())}
    wanted = {**selector, **own} if own and workloads else {}
    facts = {"service": name_of(service), "workload": kubectl_name(target.workload)}
    text = said(
        "serviceSelectsStranger",
        share=round(100 * len(lost) / len(outcomes)),
        how=", ".join(dict.fromkeys(str(each.lost) for each in lost)),
        others=joined([tell("the Pods of $workload", workload=each) for each in workloads], " and ")
        or (tell("another Pod") if len(strangers) == 1 else tell("$count other Pods", count=len(strangers))),
        **facts,
    )
    written = ", ".join(f"{key}: {value}" for key, value in wanted.items())
    words = fix("serviceSelectsStranger", "selector" if wanted else "", selector=written, **facts)
    return Judgement("inconclusive", joined([text, words], ". "), (Advice("serviceSelectsStranger", words, len(lost)),))


def _listen(target: Target, container: Object) -> str:
    port, service = target.container_port, name_of(target.service.obj)
    declared = [own["containerPort"] for own in container.get("ports") or ()]
    number, _ = serving_containers({"containers": [container]}, port)
    if declared and number not in declared:
        return fix("neverAnswered", "declared", service=service, port=port, declared=", ".join(map(str, declared)))
    return fix("neverAnswered", "refused", service=service, port=port)


def _containers(pod_spec: Object) -> list[Object]:
    return [*(pod_spec.get("initContainers") or ()), *pod_spec["containers"]]


def with_advice(manifests: Sequence[Manifest], owner: Object, patch: Object) -> list[Manifest]:
    """Return the manifests with the patch in the workload."""
    changed = []
    for each in manifests:
        if each.resource in WORKLOADS and is_same(each, owner):
            each = replace(each, obj=strategic_merge_patch(each.resource, each.obj, patch))
        changed.append(each)
    return changed


def _port(service: Object, options: "RolloutOptions") -> Object:
    offered = [port for port in service["spec"].get("ports") or [] if port.get("protocol", "TCP") == "TCP"]
    ports = [port for port in offered if options.port in ("", port.get("name"), str(port.get("port")))]
    if not options.port and len(ports) > 1 and "tcp" not in options.load.rates:
        ports = [port for port in ports if port.get("name") == USUAL_PORT] or ports
    if len(ports) == 1:
        found: Object = ports[0]
        return found
    names = ", ".join(f"{port.get('port')} {port.get('name', '')}".strip() for port in offered) or "none"
    asked = f"--port {options.port}: " if options.port else ""
    choose = "" if options.port or not offered else ": choose with --port"
    raise UserError(f"{asked}the TCP ports of Service {name_of(service)} are {names}{choose}")


def _why_not(service: Object, workload: Object) -> str:
    """Why a Service does not select the workload's Pods, "" when it does."""
    selector = service["spec"].get("selector") or {}
    if namespace_of(service) != namespace_of(workload):
        return f"Service {namespace_of(service)}/{name_of(service)} is in another namespace"
    if not selector:
        return f"Service {name_of(service)} selects nothing (it has no spec.selector)"
    if selects(service, workload):
        return ""
    return f"Service {name_of(service)} selects {_selector_text(selector)}"


def _none_selects(manifests: Sequence[Manifest], workload: Manifest) -> str:
    what = f"{workload.resource.kind} {name_of(workload.obj)}"
    labels = labels_of(workload)
    services = [each.obj for each in manifests if each.resource == SERVICES]
    if not services:
        wanted = ", ".join(f"{key}: {value}" for key, value in labels.items())
        return (
            f"no Service selects the Pods of {what}: the manifests have none\n"
            f"fix: add a Service with spec.selector {{{wanted}}}"
        )
    why = "; ".join(_why_not(each, workload.obj) for each in services)
    return (
        f"no Service selects the Pods of {what}: {why}, and its Pods have {_selector_text(labels)}\n"
        f"fix: correct spec.selector of the Service, or the labels in spec.template.metadata of {what}"
    )


def _selector_text(labels: dict[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items()) or "no labels"
