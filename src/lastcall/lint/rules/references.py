"""What Pods refer to: claims, ConfigMaps, Secrets, ServiceAccounts, and the keys in them."""

import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from lastcall.kube.api import Object
from lastcall.lint.application import Application, Workload
from lastcall.lint.subject import Finding, Op, Subject, found
from lastcall.manifests import Path, closest, value_at

RULE_OF = {
    "PersistentVolumeClaim": "claimMissing",
    "ConfigMap": "configMissing",
    "Secret": "secretMissing",
    "ServiceAccount": "accountMissing",
}
_ALWAYS_THERE = frozenset((("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")))
_NAMES_A_SECRET = (("spec", "target", "name"), ("spec", "secretName"), ("spec", "output", "secret", "name"))
"""Where custom resources say what object they make (external-secrets, cert-manager)."""


class Reference(NamedTuple):
    """`path` is where the name is. `keys`: which of its keys are needed, and where each is said."""

    kind: str
    name: str
    path: Path
    optional: bool
    keys: tuple[tuple[str, Path], ...] = ()


def findings(app: Application) -> Iterator[Finding]:
    made = {(each.namespace, name) for each in app.subjects if each.resource is None for name in _made_by(each)}
    for workload in app.workloads:
        seen: set[tuple[str, str]] = set()
        for reference in references(workload):
            target = app.get(reference.kind, workload.subject.namespace, reference.name)
            if target is not None:
                yield from _keys(workload, reference, target)
            elif (reference.kind, reference.name) in _ALWAYS_THERE or reference.optional:
                continue
            elif (reference.kind, reference.name) not in seen:
                seen.add((reference.kind, reference.name))
                if app.fresh or (workload.subject.namespace, reference.name) not in made:
                    yield from _missing(app, workload, reference)
    yield from _line_ends(app)


def _line_ends(app: Application) -> Iterator[Finding]:
    """Values of Secrets that are one line with its end, and that a variable gets as they are."""
    users: dict[tuple[Subject, str], Workload] = {}
    for workload in app.workloads:
        for secret, key in _keys_in_variables(app, workload):
            users.setdefault((secret, key), workload)
    for (secret, key), workload in users.items():
        for field, value in _values_of(secret, key):
            if not value.endswith("\n") or "\n" in value.rstrip("\r\n"):
                continue
            text = (
                f"The value of {key!r} in {secret} ends with a line end, and a variable of {workload} gets that, too: "
                "as a header, a password or a part of a URL it is another value."
            )
            yield found("secretLineEnd", secret, (field, key), text)  # no patch: it would show the value


def _keys_in_variables(app: Application, workload: Workload) -> Iterator[tuple[Subject, str]]:
    for container in workload.all_containers:
        for each in container.spec.get("env") or ():
            source = (each.get("valueFrom") or {}).get("secretKeyRef") or {}
            if secret := app.get("Secret", workload.subject.namespace, str(source.get("name"))):
                yield secret, str(source.get("key"))
        for each in container.spec.get("envFrom") or ():
            source = each.get("secretRef") or {}
            if secret := app.get("Secret", workload.subject.namespace, str(source.get("name"))):
                for field in ("data", "stringData"):
                    yield from ((secret, str(key)) for key in secret.raw.get(field) or ())


def _values_of(secret: Subject, key: str) -> Iterator[tuple[str, str]]:
    """Yield the field and the text of a key; stringData overrides data. Nothing for what is no text."""
    given = (secret.raw.get("stringData") or {}).get(key)
    if isinstance(given, str):
        yield "stringData", given
        return
    with suppress(ValueError, UnicodeDecodeError):
        encoded = (secret.raw.get("data") or {}).get(key)
        if isinstance(encoded, str):
            yield "data", base64.b64decode(encoded).decode()


def _made_by(custom: Subject) -> Iterator[str]:
    yield custom.name
    for path in _NAMES_A_SECRET:
        name = value_at(custom.raw, path)
        if isinstance(name, str):
            yield name


def _missing(app: Application, workload: Workload, reference: Reference) -> Iterator[Finding]:
    namespace, rule = workload.subject.namespace, RULE_OF[reference.kind]
    same_kind = [each for each in app.sound if each.kind == reference.kind]
    elsewhere = next((each for each in same_kind if each.name == reference.name), None)
    best = closest(reference.name, [each.name for each in same_kind if each.namespace == namespace])
    what = f"{workload} needs {reference.kind} {reference.name}"
    sure: dict[str, Any] = {"certainty": "certain"} if app.fresh else {"severity": "warning"}
    if best is not None:
        text = f"{what}, which is not in these files; {best} is."
        patch = [Op("replace", reference.path, best)]
        yield found(rule, workload.subject, reference.path, text, fix=f"{best}, if you mean that.", patch=patch, **sure)
    elif elsewhere is not None:
        text = f"{what} in namespace {namespace}, and these files have it in namespace {elsewhere.namespace} only."
        yield found(rule, workload.subject, reference.path, text, **sure)
    elif app.fresh:
        text = f"{what}, which is not in the manifests."
        yield found(rule, workload.subject, reference.path, text, **sure)
    else:
        app.note_absent(reference.kind, namespace, reference.name, workload.subject, reference.path)


def _keys(workload: Workload, reference: Reference, target: Subject) -> Iterator[Finding]:
    if reference.optional or reference.kind not in ("ConfigMap", "Secret"):
        return
    fields = ("data", "binaryData") if reference.kind == "ConfigMap" else ("data", "stringData")
    there = [str(key) for field in fields for key in target.raw.get(field) or ()]
    if not there and reference.kind == "Secret":
        return  # filled in by another component
    for key, path in reference.keys:
        if key not in there:
            best = closest(key, there)
            text = (
                f"{workload} needs key {key!r} of {target}, which has {', '.join(there[:6]) or 'none'}"
                f"{', …' if len(there) > 6 else ''}."
            )
            patch = [Op("replace", path, best)] if best else []
            yield found("configKeyMissing", workload.subject, path, text, patch=patch)


# -- where a Pod's spec refers to something --------------------------------------------------------------------------


def references(workload: Workload) -> Iterator[Reference]:
    """Yield everything in its namespace without which its Pods do not start."""
    spec, path = workload.pod_spec, workload.spec_path
    if account := spec.get("serviceAccountName"):
        field = "serviceAccountName" if workload.subject.has((*path, "serviceAccountName")) else "serviceAccount"
        yield Reference("ServiceAccount", str(account), (*path, field), False)
    for index, each in enumerate(spec.get("volumes") or ()):
        yield from _volume(each, (*path, "volumes", index), workload)
    for container in workload.all_containers:
        for index, each in enumerate(container.spec.get("envFrom") or ()):
            for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
                if source := each.get(field):
                    at = (*container.path, "envFrom", index, field, "name")
                    yield Reference(kind, str(source.get("name")), at, bool(source.get("optional")))
        for index, each in enumerate(container.spec.get("env") or ()):
            for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
                if source := (each.get("valueFrom") or {}).get(field):
                    base = (*container.path, "env", index, "valueFrom", field)
                    keys = ((str(source.get("key")), (*base, "key")),)
                    optional = bool(source.get("optional"))
                    yield Reference(kind, str(source.get("name")), (*base, "name"), optional, keys)


def _volume(volume: Object, path: Path, workload: Workload) -> Iterator[Reference]:
    if claim := volume.get("persistentVolumeClaim"):
        templates = (
            workload.subject.spec.get("volumeClaimTemplates") if workload.subject.kind == "StatefulSet" else None
        )
        made = [((each.get("metadata") or {}).get("name")) for each in templates or ()]
        if volume.get("name") not in made:
            at = (*path, "persistentVolumeClaim", "claimName")
            yield Reference("PersistentVolumeClaim", str(claim.get("claimName")), at, False)
    yield from _files(volume, path, "secretName")
    for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
        yield from _files(source, (*path, "projected", "sources", index), "name")


def _files(volume: Object, path: Path, secret_name: str) -> Iterator[Reference]:
    for field, kind, name in (("configMap", "ConfigMap", "name"), ("secret", "Secret", secret_name)):
        source = volume.get(field)
        if not source:
            continue
        items = enumerate(source.get("items") or ())
        keys = tuple((str(each.get("key")), (*path, field, "items", index, "key")) for index, each in items)
        yield Reference(kind, str(source.get(name)), (*path, field, name), bool(source.get("optional")), keys)
