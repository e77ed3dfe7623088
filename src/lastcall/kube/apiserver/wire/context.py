"""Describe who asks and how: what every write gets besides the object."""

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.schema.pruning import Empties
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.wire.repeated_fields import RepeatedFields
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.resources import Resource
    from lastcall.kube.apiserver.admission.reader import Reads

FieldValidation = Literal["Ignore", "Warn", "Strict"]


@dataclass(slots=True)
class RequestContext:
    """One request. `warnings` collects what goes into `Warning` headers. `dry_run` does everything but the write."""

    user: UserInfo
    user_agent: str = ""
    field_manager: str = ""
    """The query's fieldManager: under which name the write is entered in managedFields."""
    dry_run: bool = False
    field_validation: FieldValidation = "Ignore"
    in_process: bool = False
    """The client is in this process and takes the object of the answer: nobody has asked for JSON yet."""
    repeated: RepeatedFields | None = None
    """What the body says more than once."""
    requested: "Resource | None" = None
    """As which kind the client names what it writes."""
    collection: bool = False
    """It is one of a collection: the request names no object."""
    asked: bool = False
    """Webhooks were asked about the whole request: they are not asked about its writes."""
    reads: "Reads | None" = None
    """Notes what admission reads, where that is asked for."""
    empties: Empties = field(default_factory=list)
    """The empty lists and maps of what is written, which its encoded form has not (`wire/as_sent.py`)."""
    patching: bool = False
    """What is written is what a patch or an apply made of an object."""
    warnings: list[str] = field(default_factory=list)
