"""Content negotiation: which form an answer takes, and how a body is read.

Served are JSON, YAML, and protobuf of the built-in kinds, each also as PartialObjectMetadata. Of protobuf there is no
Table.

Sources: apiserver pkg/endpoints/handlers/negotiation/negotiate.go, handlers/response.go.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, cast

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.resources import Resource
from lastcall.world.dataclass import dataclass

JSON = "application/json"
YAML = "application/yaml"
TEXT = "text/plain"
PROTOBUF = "application/vnd.kubernetes.protobuf"
BODIES = (JSON, YAML, PROTOBUF)
STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

As = Literal["", "Table", "PartialObjectMetadata", "PartialObjectMetadataList"]
FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class MediaType:
    """`as_` is the wanted form of the object, "" for the object itself."""

    name: str = JSON
    as_: As = ""
    version: str = "v1"
    pretty: bool = False

    @property
    def plain(self) -> bool:
        """Return whether stored bytes can be sent as they are."""
        return self.name == JSON and not self.as_ and not self.pretty


PLAIN = MediaType()
INDENTED = MediaType(pretty=True)


@lru_cache(maxsize=256)
def negotiate(accept: str, *, list_: bool, table: bool = True, rows: bool = True, message: bool = True) -> MediaType:
    """Return the first clause of `accept` that can be served. Raises the 406 StatusError.

    `list_` says whether the answer is a list, `table` whether forms other than the object itself are allowed, `rows`
    whether a Table is one of them (`AllowsMediaTypeTransform`: nobody made one for reviews), `message` whether the kind
    has one in protobuf (a custom one has only its metadata).
    """
    if not accept.strip():
        return PLAIN
    seen_supported = False
    for name, parameters in _clauses(accept):
        media_type = JSON if name == "*/*" else name
        if media_type not in BODIES:
            continue
        seen_supported = True
        if not (as_ := parameters.get("as", "")):
            if "g" in parameters or "v" in parameters or (media_type == PROTOBUF and not message):
                continue
            return MediaType(media_type)
        version = parameters.get("v", "")
        if as_ == "Table" and (media_type == PROTOBUF or not rows):
            continue
        if table and parameters.get("g") == "meta.k8s.io" and as_ in FORMS and version in ("v1", "v1beta1"):
            return MediaType(media_type, cast(As, as_), version)
    raise not_acceptable(seen_supported, list_=list_)


@lru_cache(maxsize=256)
def negotiate_status(accept: str) -> MediaType:
    """Return the form of the Status of a refused request, which is never another one: the first clause without a form.

    Raises the 406 StatusError.
    """
    if not accept.strip():
        return PLAIN
    for name, parameters in _clauses(accept):
        if {"as", "g", "v"} & parameters.keys():
            continue
        if name == "*/*" or name in BODIES:
            return MediaType(JSON if name == "*/*" else name)
    raise not_acceptable(True)


def _clauses(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Media ranges with their parameters, best quality first, in the order given among equals."""
    clauses = []
    for part in accept.split(","):
        name, *rest = (piece.strip() for piece in part.split(";"))
        parameters = dict(piece.split("=", 1) for piece in rest if "=" in piece)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        clauses.append((quality, name.lower(), parameters))
    clauses.sort(key=lambda clause: -clause[0])
    return [(name, parameters) for quality, name, parameters in clauses if quality > 0]


def check_offered(accept: str, *offered: str) -> None:
    """Raise the 406 StatusError of a route that offers other media types (go-restful's `Produces`)."""
    if accept.strip() and not {"*/*", *offered} & {name for name, _ in _clauses(accept)}:
        raise _not_offered(offered)


def check_accept_of_log(accept: str) -> None:
    """Raise the 406 StatusError of a log: its route offers text as well, but errors and what asks for forms do not.

    (apiserver pkg/endpoints/installer.go: StorageMetadata.ProducesMIMETypes)
    """
    check_offered(accept, TEXT, *BODIES)
    try:
        negotiate(accept, list_=False, rows=False)
    except StatusError:
        raise not_acceptable(True) from None


def not_acceptable(known_media_type: bool, *, list_: bool = False, stream: bool = False) -> StatusError:
    """Return a 406, in one of the two wordings: the form is not served, or the media type is unknown.

    `list_`: a watch could have been asked of the same URL. `stream`: it was.
    """
    if not known_media_type:
        return _not_offered((*BODIES, *(STREAMS if list_ else ())))
    message = f"only the following media types are accepted: {', '.join(STREAMS if stream else BODIES)}"
    return status_failure(406, "NotAcceptable", message, None)


def _not_offered(offered: tuple[str, ...]) -> StatusError:
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offered)}"
    return status_failure(406, "NotAcceptable", message, {})


def check_form(media_type: MediaType, resource: Resource, *, list_: bool) -> None:
    """Raise the 406 StatusError of a form that does not fit: that of a list for an object, or the other way.

    (apiserver pkg/endpoints/handlers/response.go:asPartialObjectMetadata, asPartialObjectMetadataList)
    """
    wrong = "PartialObjectMetadata" if list_ else "PartialObjectMetadataList"
    if media_type.as_ != wrong:
        return
    group = "core" if resource.group in ("", "events.k8s.io") else resource.group.partition(".")[0]
    what = f"a list (*{group}.{resource.kind}List)" if list_ else f"not a list (*{group}.{resource.kind})"
    raise status_failure(406, "NotAcceptable", f"you requested {wrong}, but the requested object is {what}", None)


def body_media_type(content_type: str) -> str:
    """Return the serializer for a request body. Raises the 415 StatusError; an empty header means JSON."""
    name = content_type.partition(";")[0].strip().lower()
    if not name:
        return JSON
    if name in BODIES:
        return name
    raise status_failure(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: " + ", ".join(BODIES),
    )


def wants_pretty(query: Mapping[str, str], user_agent: str) -> bool:
    """Decide by `?pretty`; without it, browsers and curl get indented JSON (negotiation.isPrettyPrint)."""
    if "pretty" in query:
        return query["pretty"].lower() not in ("0", "false")
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))
