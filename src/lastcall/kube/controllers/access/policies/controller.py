"""The validatingadmissionpolicy-status controller: writes what type checking finds into a policy's status.

A policy is checked once for each generation. What it finds alters nothing that the policy does.

Source: pkg/controller/validatingadmissionpolicystatus/controller.go.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import orjson

from lastcall.kube.api.custom.kinds import is_established, served_resources
from lastcall.kube.api.meta import name_of
from lastcall.kube.api.resources import (
    CUSTOMRESOURCEDEFINITIONS,
    SERVED,
    VALIDATINGADMISSIONPOLICIES,
    Resource,
)
from lastcall.kube.client.api import APPLY_PATCH, Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.access.policies.schemas import Schema, schema_of_kind
from lastcall.kube.controllers.access.policies.typechecking import (
    Kind,
    KindChecker,
    expressions_of,
    kinds_to_check,
    parameter_kind,
    status_of,
)
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.worker import Worker
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.admission import ValidatingAdmissionPolicy

COMPONENT = "validatingadmissionpolicy-status"


class PolicyStatusController:
    def __init__(self, world: World, client: Client, informers: Informers) -> None:
        self._world, self._client, self._informers = world, client, informers
        self._policies: Informer[ValidatingAdmissionPolicy] = informers.get(VALIDATINGADMISSIONPOLICIES)
        self._definitions: Informer | None = None
        if informers.discover is None:
            self._definitions = informers.get(CUSTOMRESOURCEDEFINITIONS)
        self._worker = Worker(world, COMPONENT, self._sync, client=client)
        self._policies.add_handler(self._enqueue, lambda _, policy: self._enqueue(policy))

    async def run(self) -> None:
        """Work until cancelled."""
        needed: list[Informer[Any]] = [self._policies]
        if self._definitions is not None:
            needed.append(self._definitions)
        await self._worker.run(needed)

    def _enqueue(self, policy: "ValidatingAdmissionPolicy") -> None:
        if not _is_checked(policy):
            self._worker.queue.add(name_of(policy))

    async def _sync(self, name: str) -> None:
        policy = self._policies.get("", name)
        if policy is None or _is_checked(policy):
            return
        status = status_of(policy, await self._warnings(policy))
        await self._client.patch(
            VALIDATINGADMISSIONPOLICIES,
            name,
            {
                "apiVersion": VALIDATINGADMISSIONPOLICIES.api_version,
                "kind": VALIDATINGADMISSIONPOLICIES.kind,
                "metadata": {"name": name},
                "status": status,
            },
            subresource="status",
            content_type=APPLY_PATCH,
            field_manager=COMPONENT,
        )

    async def _warnings(self, policy: "ValidatingAdmissionPolicy") -> list[tuple[str, str]]:
        kinds, parameters = kinds_to_check(policy, await self._served()), parameter_kind(policy)
        schemas = await self._schemas([*kinds, *((parameters,) if parameters else ())])
        checkers = [KindChecker(policy, kind, schemas, parameters) for kind in kinds if kind in schemas]
        found = []
        for field, expression in expressions_of(policy):
            problems = [problem for each in checkers if (problem := each.problem(expression))]
            if problems:
                found.append((field, "\n".join(problems)))
            await self._world.clock.sleep(0)  # others' turn
        return found

    async def _served(self) -> Iterable[Resource]:
        if self._informers.discover is not None:
            return [each.resource for each in (await self._informers.discover()).kinds]
        assert self._definitions is not None
        established = (each for each in self._definitions.items() if is_established(each))
        return [*SERVED, *(resource for each in established for resource in served_resources(each))]

    async def _schemas(self, kinds: Iterable[Kind]) -> dict[Kind, Schema]:
        """The schemas of the kinds that have one."""
        found: dict[Kind, Schema] = {}
        documents: dict[str, Schema] = {}
        for kind in kinds:
            if kind.document not in documents:
                body = None if self._informers.openapi is None else await self._informers.openapi(kind.document)
                documents[kind.document] = orjson.loads(body) if body is not None else {}
            schema = schema_of_kind(documents[kind.document], *kind)
            if schema is not None:
                found[kind] = schema
            await self._world.clock.sleep(0)
        return found


def _is_checked(policy: "ValidatingAdmissionPolicy") -> bool:
    checked: int = (policy.get("status") or {}).get("observedGeneration") or 0
    return checked >= (policy["metadata"].get("generation") or 0)
