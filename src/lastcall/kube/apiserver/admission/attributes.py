"""Describe one write to admission, in one object that the whole chain is run with.

Source: apiserver pkg/admission/{interfaces.go, attributes.go}.
"""

from typing import Literal

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.admission.reader import Reader
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.world.dataclass import dataclass

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
Kind = tuple[str, str, str]
"""(group, version, kind)."""


@dataclass(slots=True)
class Attributes:
    """One write (admission.Attributes). Steps of `admit` replace or change `new`; nobody changes `old`."""

    operation: Operation
    context: RequestContext
    resource: Resource
    namespace: str
    reader: Reader
    """All that admission reads for this write, quotas excepted, comes from here."""
    new: Object
    """The object as it will be stored; {} at a DELETE."""
    old: Object | None = None
    """The object as it is stored; None at a CREATE."""
    subresource: str = ""
    options: DeleteOptions | None = None
    """Those of a DELETE."""
    name: str = ""
    """The name in the URL of what is posted and not stored, and of a connection."""
    kind: Kind | None = None
    """What `new` is, where that is neither stored nor a `resource`."""
    lets_go: bool = False
    """Whether the write only removes finalizers of an object that is being deleted: no built-in check may hold it."""

    @property
    def stored(self) -> Object:
        """Return `old` where there is one: at an UPDATE and a DELETE."""
        assert self.old is not None, self.operation
        return self.old
