"""CustomResourceDefinitions, and the objects that they declare.

Source: apiextensions-apiserver pkg/registry/{customresourcedefinition,customresource}/strategy.go, etcd.go.
"""

from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from lastcall.kube.api.custom.formats import unknown_formats
from lastcall.kube.api.custom.kinds import CLEANUP, CustomResource, has_rules, versions_stored_first
from lastcall.kube.api.custom.structural import list_errors, schema_errors
from lastcall.kube.api.field import (
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    TOO_MANY,
    TYPE_INVALID,
    FieldError,
    invalid,
)
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.validators.definitions.embedded import embedded_errors, has_embedded
from lastcall.kube.apiserver.deletion import Decision, DeleteOptions, check_preconditions
from lastcall.kube.apiserver.strategies.base import Evaluated, Strategy, Undo, nothing
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.records.rules import DELETE
from lastcall.world.clock import Clock, rfc3339

if TYPE_CHECKING:
    from lastcall.kube.apiserver.expressions.rules import Rules

_BLOCKING = (NOT_SUPPORTED, REQUIRED, TOO_LONG, TOO_MANY, TYPE_INVALID)
"""With one of these wrong no rule is evaluated."""
_NOT_CHECKED = "some validation rules were not checked because the object was invalid; correct the existing errors to "


def set_condition(definition: Object, type_: str, status: str, reason: str, message: str, moment: str) -> None:
    """Set a condition, in place; its time is that of its last change."""
    conditions = [*(definition["status"].get("conditions") or ())]
    old = next((each for each in conditions if each.get("type") == type_), None)
    since = moment if old is None or old.get("status") != status else old.get("lastTransitionTime")
    new = {"type": type_, "status": status, "lastTransitionTime": since, "reason": reason, "message": message}
    definition["status"]["conditions"] = [new if each is old else each for each in conditions] + [new] * (old is None)


def _format_warnings(new: Object, old: Object | None) -> list[str]:
    known = set() if old is None else set(unknown_formats(old["spec"]))
    return [f'unrecognized format "{each}"' for each in unknown_formats(new["spec"]) if each not in known]


class CustomResourceDefinitionStrategy(Strategy):
    tracks_generation = True
    allow_unconditional_update = False

    def prepare_for_create(self, obj: Object) -> None:
        stored = versions_stored_first(obj) or None
        obj["status"] = {
            "conditions": None, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored
        }  # fmt: skip

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_for_update(new, old, subresource)
        if subresource != "status":
            stored = list((old.get("status") or {}).get("storedVersions") or ())
            more = versions_stored_first(new)
            new["status"] = {**(old.get("status") or {}), "storedVersions": list(dict.fromkeys([*stored, *more]))}

    def begin_create(self, obj: Object, context: RequestContext) -> Undo:
        context.warnings += _format_warnings(obj, None)
        return nothing

    def begin_update(self, new: Object, old: Object, context: RequestContext) -> Undo:
        context.warnings += _format_warnings(new, old)
        return nothing

    def validate(self, obj: Object, old: Object | None = None, subresource: str = "") -> list[FieldError]:
        if subresource or not has_rules(obj.get("spec")):
            return []
        if old is not None and old.get("spec") == obj.get("spec"):
            return []
        # late: few clusters have rules
        from lastcall.kube.apiserver.expressions.checks import rule_errors

        return rule_errors(obj, old)

    def decide_delete(self, obj: Object, options: DeleteOptions, now: datetime) -> Decision:
        """Mark at the first DELETE: objects go before their definition does (etcd.go:Delete)."""
        if obj["metadata"].get("deletionTimestamp") is not None:
            return super().decide_delete(obj, options, now)
        check_preconditions(self.delete_rules, obj, options)
        marked = copy_object(obj)
        meta = marked["metadata"]
        meta["deletionTimestamp"] = rfc3339(now)
        meta["finalizers"] = [*(meta.get("finalizers") or ()), CLEANUP]
        text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        set_condition(marked, "Terminating", "True", "InstanceDeletionPending", text, rfc3339(now))
        return Decision("mark", marked, DELETE)


class CustomResourceStrategy(Strategy):
    tracks_generation = True
    allow_unconditional_update: ClassVar[bool] = False

    def __init__(self, resource: CustomResource) -> None:
        super().__init__(resource)
        self._schema = resource.schema
        self._has_embedded = has_embedded(resource.schema)
        self.evaluates = has_rules(resource.schema)
        self._rules: Rules | None = None

    def prepare_for_create(self, obj: Object) -> None:
        if "status" in self.resource.subresources:
            obj.pop("status", None)

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Count all but metadata, and all but status where that is a subresource."""
        ignored = ("metadata", "status") if "status" in self.resource.subresources else ("metadata",)
        one, other = ({key: value for key, value in obj.items() if key not in ignored} for obj in (new, old))
        return {**one, "apiVersion": ""} != {**other, "apiVersion": ""}

    def validate(self, obj: Object, old: Object | None = None, subresource: str = "") -> list[FieldError]:
        errors = schema_errors(self._schema, obj, old, only="status" if subresource == "status" else "")
        if self._has_embedded and subresource != "status":
            errors += embedded_errors(self._schema, obj)
        if old is None or not list_errors(self._schema, old):
            errors += list_errors(self._schema, obj)
        return errors

    async def evaluate(self, new: Object, old: Object | None, found: list[FieldError], clock: Clock) -> Evaluated:
        if any(each.type in _BLOCKING for each in found):
            return [invalid("<nil>", None, f"{_NOT_CHECKED}complete validation")], ()
        # late: few clusters have rules
        from lastcall.kube.apiserver.expressions.rules import evaluated, rules_of

        if self._rules is None:
            self._rules = rules_of(self._schema)
        if self._rules is None:
            return (), ()
        evaluation = await evaluated(self._rules, new, old, clock)
        return evaluation.errors, evaluation.warnings
