"""The bodies of objects that are made when they are asked for and stored nowhere (`resources.COMPUTED`)."""

from collections.abc import Mapping
from datetime import datetime

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.answers.representation import META_GROUP, object_body, partial_metadata, table
from lastcall.kube.apiserver.wire.negotiation import MediaType, check_form


def computed_body(
    resource: Resource, answer: Object, media_type: MediaType, query: Mapping[str, str], moment: datetime, minor: int
) -> bytes:
    """Encode `answer`, an object or a list of them. Raises the 406 StatusError of an unknown form."""
    if "items" not in answer:
        return object_body(resource, answer, media_type, query, moment, minor)
    check_form(media_type, resource, list_=True)
    items: list[Object] = answer["items"]
    if media_type.as_ == "Table":
        return orjson.dumps(table(resource, items, media_type, query, {}, moment, minor))
    if media_type.as_ == "PartialObjectMetadataList":
        return orjson.dumps(
            {
                "kind": media_type.as_,
                "apiVersion": f"{META_GROUP}/{media_type.version}",
                "metadata": {},
                "items": [partial_metadata(each, media_type) for each in items] or None,
            }
        )
    return orjson.dumps(answer)
