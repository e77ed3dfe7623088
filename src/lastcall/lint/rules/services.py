"""Services and Ingresses: whether they lead to Pods, and to which of their ports."""

import re
from collections.abc import Iterator
from typing import Any

from lastcall.kube.api import DEPLOYMENTS, INGRESSES, SERVICES, Object
from lastcall.lint.application import Application, Workload
from lastcall.lint.subject import Finding, Op, Subject, found
from lastcall.lint.texts import texts_of
from lastcall.manifests import Path, closest, labels_text, similar_labels


def findings(app: Application) -> Iterator[Finding]:
    for service in app.of(SERVICES):
        if service.spec.get("selector") and service.spec.get("type") != "ExternalName":
            yield from _selects(app, service)
            yield from _ports(app, service)
            yield from _addresses(app, service)
            yield from _links(app, service)
        if service.spec.get("publishNotReadyAddresses") and service.spec.get("clusterIP") != "None":
            path: Path = ("spec", "publishNotReadyAddresses")
            text = f"Service {service.name} sends to Pods that are not ready, and to those that are ending."
            yield found("unreadyPodsPublished", service, path, text, patch=[Op("remove", path)])
    for ingress in app.of(INGRESSES):
        for backend, path in _backends(ingress):
            yield from _backend(app, ingress, backend, path)


_READS = r"(?:environ|[gG]etenv|ENV|env|\$)(?:\.get|\.fetch)?[\s(\['\"{.]*"
"""How programs, and shells, read a variable of the environment."""


def _links(app: Application, service: Subject) -> Iterator[Finding]:
    """A variable of the kubelet's for a Service (envvars.go:makeEnvVariableName) that a program reads as its own."""
    if service.spec.get("clusterIP") == "None":
        return
    name = service.name.upper().replace("-", "_")
    read = re.compile(rf"{_READS}{re.escape(name)}_PORT(?![A-Z0-9_])")
    of_links = re.compile(rf"tcp://|(?<![A-Z0-9_]){re.escape(name)}_(?:SERVICE_HOST|PORT_\d|PORT=)")
    for workload in app.in_namespace(service.namespace):
        if workload.pod_spec.get("enableServiceLinks") is False:
            continue
        for container in workload.all_containers:
            own = [each.get("name") for each in container.spec.get("env") or ()]
            texts = list(texts_of(workload, container))
            if f"{name}_PORT" in own or container.spec.get("envFrom") or any(map(of_links.search, texts)):
                continue
            if any(map(read.search, texts)):
                text = (
                    f"{container.name} reads {name}_PORT, which the kubelet sets to tcp://ADDRESS:PORT because of "
                    f"Service {service.name}."
                )
                links = (*workload.spec_path, "enableServiceLinks")
                patch = [Op("replace" if workload.subject.has(links) else "add", links, False)]
                yield found("serviceLinkRead", workload.subject, container.path, text, patch=patch)


def _addresses(app: Application, service: Subject) -> Iterator[Finding]:
    """Addresses that clients may go on to use when nobody answers there any more."""
    headless = service.spec.get("clusterIP") == "None" and service.spec.get("ports")
    for workload in app.selected(service) if headless else ():
        if workload.resource == DEPLOYMENTS and not workload.serving:
            text = (
                f"Service {service.name} is headless, and the only Service of the Pods of {workload}: each update of "
                "them changes the addresses that clients may have cached."
            )
            yield found("namesRemembered", service, ("spec", "clusterIP"), text)
            break
    if service.spec.get("type") == "NodePort":
        text = f"Clients of Service {service.name} go to a node's address: when that node is lost, they get no answer."
        yield found("nodePortLost", service, ("spec", "type"), text)


# -- selectors -------------------------------------------------------------------------------------------------------


def _selects(app: Application, service: Subject) -> Iterator[Finding]:
    selected = app.selected(service)
    jobs = [each for each in selected if each.is_job]
    if jobs and len(jobs) < len(selected):
        others = next(each for each in selected if not each.is_job)
        text = f"Service {service.name} selects the Pods of {jobs[0]} as well as those of {others}."
        yield found("serviceSelectsJob", service, ("spec", "selector"), text)
    numbered = any(isinstance(each.get("targetPort") or 0, int) for each in service.spec.get("ports") or ())
    strangers = [each for each in app.strangers(service) if not each.is_job]
    if strangers and numbered and service.spec.get("clusterIP") != "None":
        others = next(each for each in selected if each not in app.strangers(service))
        text = (
            f"Service {service.name} selects the Pods of {others} and those of {strangers[0]}, which declare none of "
            f"its ports: connections go to either."
        )
        yield found("serviceSelectsStranger", service, ("spec", "selector"), text)
    if selected:
        return
    selector: dict[str, str] = service.spec["selector"]
    near = _meant(app, service, selector)
    wanted = labels_text(selector)
    elsewhere = next((each for each in app.workloads if selector.items() <= each.labels.items()), None)
    if near is not None:
        text = f"Service {service.name} selects {wanted}; the Pods of {near} have {labels_text(near.labels)}."
        new = {key: near.labels[key] for key in selector if key in near.labels}
        if len(new) < len(selector):
            new = ((near.subject.spec.get("selector") or {}).get("matchLabels")) or near.labels
        patch = [Op("replace", ("spec", "selector"), dict(new))]
        yield found(
            "serviceSelectsNothing",
            service,
            ("spec", "selector"),
            text,
            fix=f"selector: {{{', '.join(f'{key}: {value}' for key, value in new.items())}}}",
            patch=patch,
            automatic=similar_labels(selector, near.labels),
            **_sure(app),
        )
    elif elsewhere is not None:
        text = (
            f"Service {service.name} selects {wanted} in namespace {service.namespace}; {elsewhere}, which has these "
            f"labels, is in namespace {elsewhere.subject.namespace}: a Service selects in its own namespace only."
        )
        yield found("serviceSelectsNothing", service, ("metadata",), text, **_sure(app))
    elif app.fresh and any(True for _ in app.in_namespace(service.namespace)):
        text = f"Service {service.name} selects {wanted}, and no Pod in these manifests has these labels."
        # The rest of the application works without it.
        yield found(
            "serviceSelectsNothing", service, ("spec", "selector"), text, severity="warning", certainty="certain"
        )
    else:
        app.note_absent("Pod", service.namespace, wanted, service, ("spec", "selector"))


def _sure(app: Application) -> dict[str, Any]:
    """Other manifests may have the Pods, unless there are none."""
    return {"certainty": "certain"} if app.fresh else {"severity": "warning"}


def _meant(app: Application, service: Subject, selector: dict[str, str]) -> Workload | None:
    """The workload that is probably meant: its labels are nearly these, or nobody else sends to it."""
    alone = [each for each in app.in_namespace(service.namespace) if not each.services and not each.is_job]
    alike = [each for each in alone if similar_labels(selector, each.labels)]
    if alike:
        return alike[0]
    if app.has_other_kinds and not app.fresh:
        return None  # their controllers may make the Pods
    named = [each for each in alone if each.subject.name == service.name]
    with_ports = [each for each in alone if any(container.ports for container in each.containers)]
    if named:
        return named[0]
    related = [each for each in with_ports if _related(each.subject.name, service.name)]
    return related[0] if len(related) == 1 else None


def _related(one: str, other: str) -> bool:
    """`api` and `api-svc`, `shop-web` and `web`."""
    return bool(set(one.split("-")) & set(other.split("-"))) or closest(one, [other]) is not None


# -- ports -----------------------------------------------------------------------------------------------------------


def _ports(app: Application, service: Subject) -> Iterator[Finding]:
    strangers = app.strangers(service)
    selected = [each for each in app.selected(service) if not each.is_job and each not in strangers]
    selected = selected or app.selected(service)
    for index, port in enumerate(service.spec.get("ports") or ()):
        target = port.get("targetPort") or port.get("port")
        if target is None:
            continue  # reported as an invalid value
        protocol = port.get("protocol") or "TCP"
        path: Path = ("spec", "ports", index)
        said: Path = (*path, "targetPort") if service.has((*path, "targetPort")) else path
        for workload in selected:
            declared = [
                each
                for container in workload.containers
                for each in container.ports
                if (each.get("protocol") or "TCP") == protocol
            ]
            if isinstance(target, str) and not target.isdigit():
                if not any(each.declares(port) for each in selected):
                    yield _unresolved(service, workload, target, declared, said)
            elif (
                declared
                and service.spec.get("clusterIP") != "None"
                and int(target) not in [each.get("containerPort") for each in declared]
            ):
                yield _undeclared(service, workload, port, declared, path)


def _unresolved(service: Subject, workload: Workload, target: str, declared: list[Object], path: Path) -> Finding:
    names = [str(each["name"]) for each in declared if each.get("name")]
    shown = ", ".join(names) or (", ".join(str(each.get("containerPort")) for each in declared) or "none")
    text = (
        f"Service {service.name} sends to the port named {target!r}, and no container of {workload} declares one of "
        f"that name (declared: {shown}): its Pods are not endpoints."
    )
    best: str | int | None = closest(target, names) or (names[0] if len(names) == 1 and len(declared) == 1 else None)
    if best is None and len(declared) == 1 and not names:
        best = declared[0].get("containerPort")
    patch = [Op("replace", path, best)] if best is not None else []
    fix = f"targetPort: {best}" if best is not None else ""
    return found("targetPortUnresolved", service, path, text, fix=fix, patch=patch, automatic=True)


def _undeclared(service: Subject, workload: Workload, port: Object, declared: list[Object], path: Path) -> Finding:
    target = port.get("targetPort") or port.get("port")
    shown = ", ".join(f"{each.get('containerPort')} {each.get('name') or ''}".strip() for each in declared)
    says = service.has((*path, "targetPort"))
    text = (
        f"Service {service.name} sends to port {target} of {workload}{'' if says else ' (targetPort defaults to port)'}"
        f", whose containers declare {shown}."
    )
    patch = []
    if len(declared) == 1:
        value = declared[0].get("name") or declared[0].get("containerPort")
        patch = [Op("replace" if says else "add", (*path, "targetPort"), value)]
    where = (*path, "targetPort") if says else path
    fix = f"targetPort: {patch[0].value}, if that is where it listens." if patch else ""
    return found("targetPortUndeclared", service, where, text, fix=fix, patch=patch)


# -- Ingresses -------------------------------------------------------------------------------------------------------


def _backends(ingress: Subject) -> Iterator[tuple[Object, Path]]:
    default = (ingress.spec.get("defaultBackend") or {}).get("service")
    if default:
        yield default, ("spec", "defaultBackend", "service")
    for at, rule in enumerate(ingress.spec.get("rules") or ()):
        for index, each in enumerate((rule.get("http") or {}).get("paths") or ()):
            service = (each.get("backend") or {}).get("service")
            if service:
                yield service, ("spec", "rules", at, "http", "paths", index, "backend", "service")


def _backend(app: Application, ingress: Subject, backend: Object, path: Path) -> Iterator[Finding]:
    name, port = str(backend.get("name")), backend.get("port") or {}
    if port.get("name") == "use-annotation":
        return  # the controller's own
    service = app.get("Service", ingress.namespace, name)
    if service is None:
        names = [each.name for each in app.of(SERVICES) if each.namespace == ingress.namespace]
        best = closest(name, names)
        if best is None:
            app.note_absent("Service", ingress.namespace, name, ingress, (*path, "name"))
            return
        text = f"Ingress {ingress.name} sends to Service {name}, which is not in these files; {best} is."
        patch = [Op("replace", (*path, "name"), best)]
        yield found("ingressServiceMissing", ingress, (*path, "name"), text, fix=f"name: {best}", patch=patch)
        return
    key = "name" if port.get("name") else "number"
    ports = service.spec.get("ports") or []
    wanted = "name" if key == "name" else "port"
    if port.get(key) is None or port[key] in [each.get(wanted) for each in ports]:
        return
    shown = ", ".join(f"{each.get('port')} {each.get('name') or ''}".strip() for each in ports)
    text = f"Ingress {ingress.name} sends to port {port[key]} of Service {name}, which has {shown}."
    best_port = ports[0].get(wanted) if len(ports) == 1 else None
    patch = [Op("replace", (*path, "port", key), best_port)] if best_port is not None else []
    yield found("ingressPortUnknown", ingress, (*path, "port"), text, patch=patch, automatic=True)
