"""Reads: one object or a collection, in every form, with every selector."""

from random import Random

from differential.kinds import Kind
from differential.request import JSON, Held, Request

PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
ACCEPTS = (
    PROTOBUF, "application/yaml", TABLE, f"{TABLE},{JSON}", PARTIAL, PARTIAL_LIST, "text/html", "*/*", "application/*",
    f"text/plain, {JSON};q=0.5", "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "application/json;as=Other;v=v1;g=x",
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json;stream=watch",
    f"{PROTOBUF},{JSON}", "application/cbor", "", f"{PARTIAL},{TABLE},{JSON}", "application/json;pretty=1", "x",
    "application/yaml;as=Table;v=v1;g=meta.k8s.io",
)  # fmt: skip
LABELS = (
    "app=a", "app!=a,app", "app in (a,b)", "app notin (a),app", "!app,nothing", "app,x.example.com/y=z", "app==b",
    "app=a,", "=a", "app in a", "app in ()", "a b", "-a=b", "app=a b", "app>1", "app>x", ",", "app=", "x/y/z=a",
)  # fmt: skip
FIELDS = (
    "metadata.name=a1", "metadata.name!=a1", "metadata.namespace=n1", "metadata.name", "spec.x=a", "status.phase=Pending",
    "metadata.name=a1,metadata.namespace=n1", "=a", "metadata.name==a1", "spec.nodeName=", "type=Opaque", "metadata.uid=x",
    "involvedObject.name=a", "spec.unschedulable=true", "metadata.name=a,b", "spec.signerName=x", "reason=R",
)  # fmt: skip
OTHERS = (
    ("limit", "1"), ("limit", "x"), ("limit", "-1"), ("continue", "x"), ("resourceVersion", "0"), ("resourceVersion", "x"),
    ("resourceVersionMatch", "Exact"), ("resourceVersionMatch", "NotOlderThan"), ("timeoutSeconds", "x"), ("pretty", "true"),
    ("resourceVersion", "99999999"), ("sendInitialEvents", "true"), ("unknown", "x"), ("allowWatchBookmarks", "true"),
    ("includeObject", "None"), ("includeObject", "Bad"), ("pretty", "x"),
)  # fmt: skip

INITIAL_EVENTS = (
    (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan"), ("allowWatchBookmarks", "true")),
    (("sendInitialEvents", "true"), ("resourceVersionMatch", "NotOlderThan")),
    (("sendInitialEvents", "true"), ("allowWatchBookmarks", "true")),
    (("sendInitialEvents", "true"), ("resourceVersionMatch", "Exact"), ("allowWatchBookmarks", "true")),
    (("sendInitialEvents", "false"), ("resourceVersionMatch", "NotOlderThan")),
    (("resourceVersionMatch", "NotOlderThan"),),
    (("allowWatchBookmarks", "true"),),
)


def accepted(random: Random, share: float) -> dict[str, str]:
    """Return an Accept header for such a share of the requests."""
    return {"Accept": random.choice(ACCEPTS)} if random.random() < share else {}


def get(kind: Kind, path: str, random: Random) -> Request:
    """Return a request for one object."""
    query = (random.choice((("resourceVersion", "0"), ("resourceVersion", "x"), ("pretty", "true"), ("unknown", "x"),
                            ("fieldSelector", "x"), ("includeObject", "Object"))),) if random.random() < 0.15 else ()  # fmt: skip
    return Request("GET", path, kind.about(), "get", query, accepted(random, 0.6))


def listing(kind: Kind, namespace: str, random: Random) -> Request:
    """Return a request for a collection.

    Of kinds of the whole cluster only what a label selects: the servers' own objects are another matter.
    """
    query: tuple[tuple[str, str], ...] = ()
    if not kind.namespaced or random.random() < 0.4:
        query = (("labelSelector", random.choice(LABELS)),)
    if random.random() < 0.3:
        query = (*query, ("fieldSelector", random.choice(FIELDS)))
    if random.random() < 0.3:
        query = (*query, random.choice(OTHERS))
    if kind.namespaced and random.random() < 0.05:
        namespace = "no-such"
    return Request("GET", kind.collection(namespace), kind.about(), "list", query, accepted(random, 0.4))


def watching(kind: Kind, namespace: str, of: str, random: Random) -> Request:
    """Watch a collection, with what is there now, or since the object at the path `of` was written."""
    query: list[tuple[str, str | Held]] = [("watch", random.choice(("true", "1", "true", "yes")))]
    if not kind.namespaced or random.random() < 0.3:
        query.append(("labelSelector", random.choice(LABELS)))
    if random.random() < 0.15:
        query.append(("fieldSelector", random.choice(FIELDS)))
    dice = random.random()
    if of and dice < 0.4:
        query.append(("resourceVersion", Held(of, ("metadata", "resourceVersion"))))
    elif dice < 0.7:
        query.append(("resourceVersion", random.choice(("0", "0", "x", "-1"))))
    if random.random() < 0.25:
        query += random.choice(INITIAL_EVENTS)
    if random.random() < 0.1:
        query.append(
            random.choice((("timeoutSeconds", "x"), ("timeoutSeconds", "1"), ("unknown", "x"), ("limit", "1")))
        )
    accept = random.choice(("", TABLE, f"{TABLE},{JSON}", PARTIAL, "text/html", f"{JSON};stream=watch", "*/*"))
    headers = {"Accept": accept} if random.random() < 0.4 else {}
    return Request("GET", kind.collection(namespace), kind.about(), "watch", tuple(query), headers)
