"""How one kind is created, updated and deleted. A kind overrides what is special about it.

Source: apiserver pkg/registry/rest/{create,update,delete}.go (the strategy interfaces).
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import ClassVar

from lastcall.kube.api.errors import StatusError, method_not_allowed
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.field import FieldError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.deletion import (
    Decision,
    DeleteOptions,
    DeleteRules,
    GarbageCollectionPolicy,
    decide_delete,
    should_delete_during_update,
)
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.clock import Clock

Undo = Callable[[], None]
Evaluated = tuple[Sequence[FieldError], Sequence[str]]
"""Errors and warnings."""


def nothing() -> None:
    """Do nothing: the undo of what needs none."""


class Strategy:
    """The rules of one kind. Objects given to `prepare_…` are the caller's own and may be changed; `old` may not."""

    allow_create_on_update: ClassVar[bool] = False
    status_may_create: ClassVar[bool] = False
    """Whether a write to the status of an object that is not there is about a new one: its store creates, too."""
    allow_unconditional_update: ClassVar[bool] = True
    returns_deleted_object: ClassVar[bool] = False
    tracks_generation: ClassVar[bool] = False
    """Whether the server counts `metadata.generation` (starts at 1, +1 for each change of the spec)."""
    generation_since: ClassVar[int] = 0
    """Of a kind that tracks it: 37 where it does so since 1.37."""
    counts_empty: ClassVar[bool] = False
    """Whether an empty list in place of no list counts as a change of the spec (reflect.DeepEqual)."""
    garbage_collection: ClassVar[GarbageCollectionPolicy] = GarbageCollectionPolicy.DELETE_DEPENDENTS
    allow_delete_collection: ClassVar[bool] = True
    is_namespace: ClassVar[bool] = False
    """Whether an object holds others, which end with it."""
    is_made_anew: ClassVar[bool] = False
    """Whether components create their objects at each start: a stored one that cannot be read makes way."""
    evaluates: bool = False
    """Whether the kind has rules that are expressions."""
    defaults_in_spec: ClassVar[bool] = False
    """Whether all defaults of the kind are in its spec: an object with the spec that is stored has them."""
    trigger_field: ClassVar[str] = ""
    """The field label by which watches of one of its values among thousands are found (NodeNameTriggerFunc)."""

    @staticmethod
    def trigger_of(obj: Object) -> str:
        """Return the object's value of `trigger_field`."""
        return ""

    guards_admin_access = False
    """Whether an object may ask for devices as an administrator, which its Namespace has to allow."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.delete_rules = DeleteRules(resource.kind, resource.group, None, self.garbage_collection)

    def counts_generations(self, minor: int) -> bool:
        """Return True if the server counts the generations of such objects in Kubernetes 1.`minor`."""
        return self.tracks_generation and minor >= self.generation_since

    def check_write(self, subresource: str, gates: FeatureGates) -> None:
        """Raise the StatusError of a subresource that cannot be PUT or PATCHed."""
        if subresource not in ("", "status", "scale"):
            raise method_not_allowed()

    def prepare_for_create(self, obj: Object) -> None:
        """Fill in and drop fields before validation (PrepareForCreate)."""

    def prepare_for_update(self, new: Object, old: Object, subresource: str) -> None:
        """Put back what this request may not change (PrepareForUpdate)."""
        if subresource == "status":
            self.keep(new, old, *(key for key in {**old, **new} if key not in ("metadata", "status")))
        elif "status" in self.resource.subresources:
            self.keep(new, old, "status")

    def stamp(self, new: Object, old: Object | None, moment: str) -> None:
        """Note in a prepared object what happens now (RFC 3339); `old` is None for a new one."""

    @staticmethod
    def keep(new: Object, old: Object, *keys: str) -> None:
        """Take `keys` from `old`, present or absent."""
        for key in keys:
            if key in old:
                new[key] = old[key]
            else:
                new.pop(key, None)

    def validate(self, obj: Object, old: Object | None = None, subresource: str = "") -> list[FieldError]:
        """Return what is wrong with an object by rules of other kinds than those of Kubernetes itself."""
        return []

    async def evaluate(self, new: Object, old: Object | None, found: list[FieldError], clock: Clock) -> Evaluated:
        """Evaluate the expressions of a kind that has some, where `found` is wrong without them."""
        return (), ()

    def name_new(self, new_name: Callable[[], str]) -> str:
        """Return the name of a new object without any; "" where it has to have one."""
        return ""

    def refused(self, new: Object, old: Object | None, dry_run: bool) -> list[FieldError]:
        """Return what is wrong with what the object asks of shared pools. It is reported before all else and alone."""
        return []

    def spec_changed(self, new: Object, old: Object) -> bool:
        """Return whether the generation counts this update."""
        return new.get("spec") != old.get("spec")

    def begin_create(self, obj: Object, context: RequestContext) -> Undo:
        """Take what the object needs from shared pools, changing `obj`; the answer gives it back if the write fails.

        Raises StatusError.
        """
        return nothing

    def begin_update(self, new: Object, old: Object, context: RequestContext) -> Undo:
        """Begin an update as `begin_create` does a creation."""
        return nothing

    def after_update(self, new: Object, old: Object) -> None:
        """Give back what the object no longer needs: the update is stored."""

    def after_delete(self, obj: Object) -> None:
        """Give back what the object held: it is gone."""

    def check_delete(self, name: str) -> StatusError | None:
        """Return why an object of this name may not be deleted."""
        return None

    def delete_warning(self, options: DeleteOptions) -> str:
        """Return what the client of a DELETE is warned of; "" for nothing."""
        return ""

    def decide_delete(self, obj: Object, options: DeleteOptions, now: datetime) -> Decision:
        return decide_delete(self.delete_rules, obj, options, now)

    def acts_on_mark(self, old: Object) -> bool:
        """Return whether controllers act on the mark of a DELETE that also removes the object; `old` has no mark."""
        return False

    def should_delete_during_update(self, new: Object, old: Object) -> bool:
        return should_delete_during_update(new, old)
