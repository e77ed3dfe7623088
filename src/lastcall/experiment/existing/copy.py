"""Copy a workload from an existing cluster: read it there with all that its Pods need, and make manifests of it.

Only reads, and only in the workload's namespace. What may not be read and the Pods need ends the command with the right
that is missing; what is only worth knowing is reported as unknown.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import field

from lastcall.errors import UserError
from lastcall.experiment.existing import differences as differing
from lastcall.experiment.existing.clean_objects import cleaned
from lastcall.experiment.existing.kinds import KINDS, not_a_workload, split_workload
from lastcall.experiment.existing.permissions import Missing, describe_missing
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.rollout.workload import resource_of
from lastcall.kube.api import (
    CONFIGMAPS,
    HORIZONTALPODAUTOSCALERS,
    INGRESSES,
    NETWORKPOLICIES,
    PERSISTENTVOLUMECLAIMS,
    PODDISRUPTIONBUDGETS,
    PODS,
    SECRETS,
    SERVICEACCOUNTS,
    SERVICES,
    Object,
    Resource,
    StatusError,
    claims_of,
    configmaps_of,
    is_not_found,
    name_of,
    secrets_of,
    selector_of_expressions,
    selector_of_labels,
)
from lastcall.kube.client import Client
from lastcall.manifests import Manifest, closest, manifests_of
from lastcall.world.dataclass import dataclass

DEFAULT_ACCOUNT = "default"
"""The ServiceAccount that every namespace has."""
_OF_AN_ACCOUNT = "kubernetes.io/service-account-token"


@dataclass(frozen=True, slots=True)
class Taken:
    """`manifests` are in the order to create them; `notes` say what differs here."""

    manifests: list[Manifest]
    notes: tuple[Note, ...]


def parsed_workload(asked: str) -> tuple[Resource, str]:
    """Parse `deployment/web`. Raises UserError, also for a kind whose controller is not in a cluster of ours."""
    kind, name = split_workload(asked)
    resource = resource_of(kind)
    if resource is None and "." not in kind:
        raise not_a_workload(asked, KINDS)
    if resource is None:
        raise UserError(
            f"{asked!r} cannot be copied to a cluster of lastcall, which has no controller for a {kind}\n"
            f"fix: name one of {KINDS}; or disrupt it there, with --context and without --from-cluster"
        )
    return resource, name


@dataclass(slots=True)
class Taking:
    """`run` once. `where` names the cluster to the user: `context 'prod'`. With `stays` the copy is for the same
    cluster: nodes, storage and schedulers are those of the original, and nothing scales it."""

    client: Client
    where: str
    namespace: str
    stays: bool = False
    missing: list[Missing] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    taken: list[tuple[Resource, Object]] = field(default_factory=list)

    async def run(self, asked: str) -> Taken:
        """Copy the workload. Raises UserError; StatusError and ConnectionLost for trouble that is not this
        workload's."""
        resource, name = parsed_workload(asked)
        there = await self._workload(resource, name)
        workload = cleaned(resource, there)
        if not self.stays:
            workload, left_out = differing.fitted(resource, workload)
            self.notes += left_out
        template = workload["spec"]["template"]
        await self._services(template)
        await self._account(template["spec"])
        await self._needed(template)
        await self._around(resource, name, there, template)
        if self.missing:
            raise UserError(describe_missing(self.where, self.namespace, self.missing))
        self.taken.append((resource, workload))
        return Taken(manifests_of(list(self._texts())), tuple(self.notes))

    async def _workload(self, resource: Resource, name: str) -> Object:
        try:
            return await self.client.get(resource, name, self.namespace)
        except StatusError as error:
            if error.code == 403:
                why = [Missing(("get",), resource, f"{resource.kind} {name} is the workload", (name,))]
                raise UserError(describe_missing(self.where, self.namespace, why)) from error
            if not is_not_found(error):
                raise
        try:
            names = [name_of(each) for each in (await self.client.list(resource, self.namespace)).items]
        except StatusError:
            names = []
        near = closest(name, names)
        there = f"there are {', '.join(sorted(names)[:10])}" if names else f"it has no {resource.kind}"
        meant = f" (did you mean {near}?)" if near else ""
        raise UserError(
            f"{self.where}: namespace {self.namespace} has no {resource.kind} {name}{meant}; {there}\n"
            "fix: use another name, or give its namespace with -n"
        )

    async def _services(self, template: Object) -> None:
        labels = template["metadata"].get("labels") or {}
        why = "the Service of the workload is looked for"
        for each in await self._list(SERVICES, why):
            selector = each["spec"].get("selector")
            if selector and selector_of_labels(selector).matches(labels):
                self._take(SERVICES, each)
                self.notes += () if self.stays else differing.of_service(each)

    async def _account(self, spec: Object) -> None:
        """The ServiceAccount, and its imagePullSecrets where the Pods name none (as admission does)."""
        name = spec.get("serviceAccountName") or DEFAULT_ACCOUNT
        account = await self._get(SERVICEACCOUNTS, name, "the Pods run as it")
        if account is None:
            return
        if name != DEFAULT_ACCOUNT:
            self._take(SERVICEACCOUNTS, account)
            self.notes.append(differing.note("rights", what=f"ServiceAccount {name}"))
        if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = account["imagePullSecrets"]

    async def _needed(self, template: Object) -> None:
        """ConfigMaps, Secrets and claims that the Pods name; what is not there is missing here, too."""
        for resource, names in (
            (CONFIGMAPS, configmaps_of(template)),
            (SECRETS, secrets_of(template)),
            (PERSISTENTVOLUMECLAIMS, claims_of(template)),
        ):
            for name in dict.fromkeys(each for each in names if each):
                found = await self._get(resource, name, "the Pods need it")
                what = f"{resource.kind} {name}"
                if found is None:
                    if not any(each.resource == resource and name in each.names for each in self.missing):
                        self.notes.append(differing.note("absent", what=what))
                    continue
                if resource == SECRETS and found.get("type") == _OF_AN_ACCOUNT:
                    self.notes.append(differing.note("token", what=what))
                    continue
                obj = cleaned(resource, found)
                if resource == PERSISTENTVOLUMECLAIMS:
                    self.notes += [differing.of_claim(obj)] if self.stays else differing.fitted_claim(obj)
                self.taken.append((resource, obj))

    async def _around(self, resource: Resource, name: str, there: Object, template: Object) -> None:
        """What acts on the Pods: budgets and autoscalers come along, the others are named."""
        labels = template["metadata"].get("labels") or {}
        services = {name_of(obj) for kind, obj in self.taken if kind == SERVICES}
        for each in await self._list_if_allowed(PODDISRUPTIONBUDGETS):
            if selector_of_expressions(each["spec"].get("selector")).matches(labels):
                self._take(PODDISRUPTIONBUDGETS, each)
        if self.stays:
            return
        for each in await self._list_if_allowed(HORIZONTALPODAUTOSCALERS):
            target = each["spec"].get("scaleTargetRef") or {}
            if (target.get("kind"), target.get("name")) == (resource.kind, name):
                self._take(HORIZONTALPODAUTOSCALERS, each)
                self.notes.append(differing.of_autoscaler(each, there["spec"].get("replicas", 1)))
        self.notes += differing.of_ingresses(await self._list_if_allowed(INGRESSES), services)
        for each in await self._list_if_allowed(NETWORKPOLICIES):
            if selector_of_expressions(each["spec"].get("podSelector") or {}).matches(labels):
                self.notes.append(differing.note("policy", what=f"NetworkPolicy {name_of(each)}"))
        wanted = selector_of_expressions(there["spec"].get("selector"))
        pods = [
            each
            for each in await self._list_if_allowed(PODS)
            if wanted.matches(each["metadata"].get("labels") or {}) and "deletionTimestamp" not in each["metadata"]
        ]
        self.notes += differing.of_pods(pods, template["spec"])

    def _take(self, resource: Resource, there: Object) -> None:
        self.taken.append((resource, cleaned(resource, there)))

    async def _get(self, resource: Resource, name: str, why: str) -> Object | None:
        """None for what is not there, and for what may not be read, which is noted in `missing`."""
        try:
            return await self.client.get(resource, name, self.namespace)
        except StatusError as error:
            if error.code == 403:
                self.missing.append(Missing(("get",), resource, f"{resource.kind} {name}: {why}", (name,)))
            elif not is_not_found(error):
                raise
        return None

    async def _list(self, resource: Resource, why: str) -> list[Object]:
        try:
            return (await self.client.list(resource, self.namespace)).items
        except StatusError as error:
            if error.code != 403:
                raise
            self.missing.append(Missing(("list",), resource, why))
        return []

    async def _list_if_allowed(self, resource: Resource) -> list[Object]:
        """Return nothing where it may not be read, which is reported as unknown, or if the cluster lacks it."""
        try:
            return (await self.client.list(resource, self.namespace)).items
        except StatusError as error:
            if error.code not in (403, 404):
                raise
            why = f"the user may not list {resource.plural}" if error.code == 403 else "it is not served"
            self.notes.append(differing.note("unknown", what=f"a {resource.kind}", why=why))
        return []

    def _texts(self) -> Iterator[tuple[str, str]]:
        for resource, obj in _each_once(self.taken):
            yield f"{self.where}, {resource.kind} {name_of(obj)}", json.dumps(obj, indent=1)


def _each_once(taken: Iterable[tuple[Resource, Object]]) -> Iterator[tuple[Resource, Object]]:
    seen = set()
    for resource, obj in taken:
        if (key := (resource.kind, name_of(obj))) not in seen:
            seen.add(key)
            yield resource, obj
