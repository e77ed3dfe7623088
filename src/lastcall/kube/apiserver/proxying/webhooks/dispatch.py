"""The webhooks of a write in their order: those that change it go one after the other, all others at once.

Sources: apiserver pkg/admission/plugin/webhook/{mutating/dispatcher.go, validating/dispatcher.go, generic/webhook.go}.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import orjson

from lastcall.kube.api.errors import bad_request, internal
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object, labels_of
from lastcall.kube.api.patch import json_patch
from lastcall.kube.api.resources import (
    MUTATINGWEBHOOKCONFIGURATIONS,
    NAMESPACES,
    Resource,
)
from lastcall.kube.api.schema.checks import json_type
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.proxying.webhooks.caller import Caller
from lastcall.kube.apiserver.proxying.webhooks.matching import (
    Everyone,
    Remembered,
    W,
    Wanted,
    Webhook,
    Write,
    own_labels,
    webhooks_of,
)
from lastcall.kube.apiserver.proxying.webhooks.review import CallFailed, Verdict, read, request_for, version_of
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.options import TYPE_META
from lastcall.world.tasks import gather
from lastcall.world.world import World

Convert = Callable[[Resource, Object, Resource], Object]
"""(resource, its object, other resource) → the object as the other resource shows it."""


Conditions = Callable[[RequestContext, Webhook, Write, Resource], Awaitable[bool]]
"""Whether a webhook that sees the write as one of the kind is to be asked. Raises StatusError."""


class Prepare(Protocol):
    """What a patched object is with its defaults. Raises StatusError for one that is not of the resource; `strict`: or
    has fields that nobody knows."""

    def __call__(self, resource: Resource, obj: Object, *, strict: bool = False) -> Object: ...


class Webhooks:
    """`caller` is asked for each webhook; `convert` and `prepare` know the kinds, `conditions` says whether a webhook's
    matchConditions are met."""

    def __init__(
        self, world: World, caller: Caller, convert: Convert, prepare: Prepare, conditions: Conditions
    ) -> None:
        self._world, self._caller, self._convert, self._prepare = world, caller, convert, prepare
        self._conditions = conditions
        self._validating, self.mutating = Remembered(webhooks_of), Remembered(webhooks_of)

    def mutation(self, reader: Reader, context: RequestContext, write: Write) -> "WebhookRound":
        return WebhookRound(self, reader, context, write)

    async def validate(
        self, reader: Reader, context: RequestContext, write: Write, configurations: Sequence[Object]
    ) -> None:
        """Validate the write. Raises StatusError: that of the first webhook, in their order, that refuses."""
        calls = []
        for webhook in asked_about(context, self._validating.of(configurations), write):
            resource = await self.wanted(reader, context, webhook, write)
            if resource is not None:
                calls.append(self.ask(context, webhook, write, resource, mutating=False))
        if len(calls) == 1:
            await calls[0]
            return
        for outcome in await gather(calls):
            if isinstance(outcome, Exception):
                raise outcome

    async def wanted(self, reader: Reader, context: RequestContext, webhook: Webhook, write: Write) -> Resource | None:
        """Return as which kind the webhook is to be asked; None when it is not. Raises StatusError."""
        resource = await wanted_as(reader, webhook.wanted, write)
        if resource is None or not webhook.spec.get("matchConditions"):
            return resource
        return resource if await self._conditions(context, webhook, write, resource) else None

    async def ask(
        self, context: RequestContext, webhook: Webhook, write: Write, resource: Resource, *, mutating: bool
    ) -> Verdict | None:
        """Ask a webhook. None when it could not be asked and that is to be ignored. Raises StatusError."""
        if write.dry_run and webhook.spec.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise bad_request(f"admission webhook {go_quote(webhook.name)} does not support dry run")
        uid = self._world.new_uid()
        new, old = (None if obj is None else self._shown(write, obj, resource) for obj in (write.new, write.old))
        try:
            asked = request_for(webhook, write, resource, new, old, context.user, uid)
            try:
                body = await self._caller.call(webhook.spec, orjson.dumps(asked))
                verdict = read(webhook, uid, version_of(webhook), body, mutating=mutating)
            except CallFailed as error:
                if str(error).startswith("received "):
                    raise
                raise CallFailed(f"failed to call webhook: {error}") from None
        except CallFailed as error:
            if webhook.spec.get("failurePolicy") == "Ignore":
                return None
            raise internal(f"failed calling webhook {go_quote(webhook.name)}: {error}") from None
        context.warnings += verdict.warnings
        if verdict.refusal is not None:
            raise verdict.refusal
        return verdict

    def _shown(self, write: Write, obj: Object, resource: Resource) -> Object:
        return obj if write.kind is not None else self._convert(write.resource, obj, resource)

    def patched(self, write: Write, resource: Resource, patch: Sequence[Object]) -> Object:
        """Apply a patch. Raises the 500 StatusError if that fails, or makes something else of the object."""
        assert write.new is not None
        shown = self._shown(write, write.new, resource)
        try:
            patched = json_patch.apply(shown, list(patch))
        except json_patch.PatchError as error:
            raise internal(str(error)) from None
        if not isinstance(patched, dict):
            text = f"json: cannot unmarshal {json_type(patched)} into Go value of type {TYPE_META}"
            raise internal(f"couldn't get version/kind; json parse error: {text}")
        if write.kind is not None:
            return patched
        return self._convert(resource, self._prepare(resource, patched), write.resource)


async def wanted_as(reader: Reader, wanted: Wanted, write: Write) -> Resource | None:
    """Return as which kind the write is wanted by rules and selectors; None when it is not."""
    resource = wanted.kind(write)
    if resource is None or not wanted.objects(write):
        return None
    if not wanted.asks_for_namespace(write):
        return resource
    labels = own_labels(write)
    if labels is None:
        found = await reader.get(NAMESPACES, "", write.namespace or write.name)
        if found is None:
            return None  # another place reports that the namespace is not found
        labels = dict(labels_of(found))
    return resource if wanted.namespace(labels) else None


def asked_about(context: RequestContext, everyone: Everyone[W], write: Write) -> Sequence[W]:
    """Return those that may want the write.

    Where there are any, what becomes of an object does not follow from what the rest of admission reads.
    """
    found = everyone.about(write)
    if found and context.reads is not None:
        context.reads.settled = False
    return found


class WebhookRound:
    """MutatingWebhookConfigurations of one write. (mutating/{dispatcher.go, reinvocationcontext.go})"""

    def __init__(self, webhooks: Webhooks, reader: Reader, context: RequestContext, write: Write) -> None:
        self._webhooks, self._reader, self._context, self._write = webhooks, reader, context, write
        self._asked: list[str] = []
        self._anew: set[str] = set()
        self._left: Object | None = None

    async def go(self, *, again: bool) -> bool:
        """Run the webhooks and return whether an object was changed, which is `write.new` then. Raises StatusError.

        `again`: only those see it that asked for that (reinvocationPolicy) and have not seen what others changed since.
        """
        write = self._write
        if again and write.new != self._left:
            self._changed()
        first = write.new
        configurations = await self._reader.list(MUTATINGWEBHOOKCONFIGURATIONS)
        for webhook in asked_about(self._context, self._webhooks.mutating.of(configurations), write):
            if again and webhook.id not in self._anew:
                continue
            resource = await self._webhooks.wanted(self._reader, self._context, webhook, write)
            if resource is None:
                continue
            before = write.new
            verdict = await self._webhooks.ask(self._context, webhook, write, resource, mutating=True)
            if verdict is not None and verdict.patch and before is None:
                why = "attempted to modify the object, which is not supported for this operation"
                raise internal(f"admission webhook {go_quote(webhook.name)} {why}")
            if verdict is not None and verdict.patch and before is not None:
                write.new = self._webhooks.patched(write, resource, verdict.patch)
                if write.new != before:
                    self._changed()
            if webhook.spec.get("reinvocationPolicy") == "IfNeeded":
                self._asked.append(webhook.id)
        self._left = write.new
        return write.new != first

    def _changed(self) -> None:
        self._anew.update(self._asked)
        self._asked.clear()
