"""Requests that a client gets wrong, patches and options."""

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

from differential.kinds import Kind
from differential.request import JSON, Held, Request

_WRONG_PATCHES: tuple[Any, ...] = (
    [{"op": "replace", "path": "/no/such", "value": 1}], [{"op": "test", "path": "/metadata/name", "value": "other"}],
    [{"op": "remove", "path": "/metadata/labels/none"}], [{"op": "bad", "path": "/spec"}], [{"path": "/spec"}], {}, [], "x",
    [{"op": "add", "path": "metadata"}], [{"op": "move", "from": "/metadata/name", "path": "/metadata/labels"}],
    [{"op": "copy", "from": "/metadata/name", "path": "/metadata/annotations"}], [{"op": "remove", "path": ""}],
    [{"op": "add", "path": "/metadata/labels/-", "value": "x"}], [{"op": "replace", "path": "/metadata/name", "value": "z"}],
)  # fmt: skip


def json_patch(old: Any, new: Any, random: Random) -> Any:
    """Return the operations from one to the other, or wrong ones."""
    if random.random() < 0.25:
        return random.choice(_WRONG_PATCHES)
    operations: list[dict[str, Any]] = []

    def walk(path: str, a: Any, b: Any) -> None:
        if isinstance(a, dict) and isinstance(b, dict):
            for key in [*a, *(key for key in b if key not in a)]:
                pointer = f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}"
                if key not in b:
                    operations.append({"op": "remove", "path": pointer})
                elif key not in a:
                    operations.append({"op": "add", "path": pointer, "value": b[key]})
                else:
                    walk(pointer, a[key], b[key])
        elif type(a) is not type(b) or a != b:
            operations.append({"op": "replace", "path": path, "value": b})

    walk("", old, new)
    return operations or [{"op": "add", "path": "/metadata/labels", "value": {"app": random.choice("ab")}}]


def merge_patch(old: Any, new: Any, random: Random, *, strategic: bool) -> Any:
    """Return what differs as a merge patch.

    A strategic one has only the list items that changed, and directives at times.
    """

    def diff(a: Any, b: Any) -> Any:
        if isinstance(a, dict) and isinstance(b, dict):
            out = {key: None for key in a if key not in b}
            for key, value in b.items():
                if key not in a or type(a[key]) is not type(value) or a[key] != value:
                    out[key] = diff(a.get(key), value)
            return out
        if strategic and isinstance(a, list) and isinstance(b, list):
            return [each for each in b if each not in a]
        return b

    out = diff(old, new)
    if not isinstance(out, dict) or not out:
        return random.choice(
            ({"metadata": {"labels": {"app": "b"}}}, {}, [], None, {"spec": None}, {"metadata": {"name": "z"}})
        )
    if strategic and random.random() < 0.2:
        at = random.choice([out, *(each for each in out.values() if isinstance(each, dict))])
        at[
            random.choice(
                ("$patch", "$retainKeys", "$deleteFromPrimitiveList/finalizers", "$setElementOrder/containers")
            )
        ] = random.choice(("delete", "replace", "merge", "bad", ["a"], [{"name": "c"}], 7))
    return out


def delete_options(path: str, random: Random) -> tuple[tuple[tuple[str, str | Held], ...], Any]:
    """Return (query, body) of a deletion; mostly none."""
    dice = random.random()
    if dice < 0.45:
        return (), None
    if dice < 0.6:
        return (random.choice((
            ("gracePeriodSeconds", "0"), ("gracePeriodSeconds", "-1"), ("gracePeriodSeconds", "x"), ("propagationPolicy", "Orphan"),
            ("propagationPolicy", "Foreground"), ("propagationPolicy", "Bad"), ("dryRun", "All"), ("dryRun", "x"),
            ("orphanDependents", "true"), ("propagationPolicy", "Background"), ("gracePeriodSeconds", "5"),
        )),), None  # fmt: skip
    uid, version = Held(path, ("metadata", "uid")), Held(path, ("metadata", "resourceVersion"))
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1"} if random.random() < 0.8 else {}
    options |= random.choice((
        {"gracePeriodSeconds": 0}, {"gracePeriodSeconds": -5}, {"gracePeriodSeconds": "x"}, {"propagationPolicy": "Foreground"},
        {"propagationPolicy": "Orphan"}, {"propagationPolicy": "x"}, {"orphanDependents": True}, {"dryRun": ["All"]},
        {"orphanDependents": False, "propagationPolicy": "Orphan"}, {"dryRun": ["x"]}, {"preconditions": {"uid": uid}},
        {"preconditions": {"uid": "u"}}, {"preconditions": {"resourceVersion": version}}, {"unknown": 1}, {},
        {"preconditions": {"resourceVersion": "1"}}, {"ignoreStoreReadErrorWithClusterBreakingPotential": True},
        {"kind": "Other"}, {"apiVersion": "x/v1"},
    ))  # fmt: skip
    return (), copy.deepcopy(options)


def request(kind: Kind, random: Random, namespace_of: Callable[[Kind], str]) -> Request:
    """Return a request that no server accepts, or that most clients do not know."""
    namespace = namespace_of(kind)
    collection, about = kind.collection(namespace), kind.about()
    one = kind.path(namespace, "a1")
    headers = {"Content-Type": JSON}
    minimal = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a1"}}
    match random.randrange(16):
        case 0:
            return Request("POST", one, about, "odd method", (), headers, minimal)
        case 1:
            return Request("PUT", collection, about, "odd method", (), headers, minimal)
        case 2:
            return Request(
                "PATCH", collection, about, "odd method", (), {"Content-Type": "application/merge-patch+json"}, {}
            )
        case 3:
            return Request(random.choice(("OPTIONS", "HEAD", "TRACE", "FOO")), collection, about, "odd method")
        case 4:
            return Request("GET", f"{one}/no-such", about, "odd path")
        case 5:
            return Request(random.choice(("GET", "POST")), f"{kind.root}/no-such", about, "odd path", (), headers, {})
        case 6:
            return Request(
                "POST", kind.collection("no-such" if kind.namespaced else ""), about, "odd path", (), headers, minimal
            )
        case 7:
            return Request(
                "POST",
                collection,
                about,
                "odd body",
                (),
                headers,
                random.choice((b"{", b"", b"x", b"[]", b"null", b"7")),
            )
        case 8:
            return Request("POST", collection, about, "odd body", (), {"Content-Type": "application/yaml"}, random.choice(
                (json.dumps(minimal).encode(), b"a: [", b"--- \n", b"a: b\na: c\n", b"\x00", b"kind: !!x y")))  # fmt: skip
        case 9:
            kinds = ("text/plain", "", "application/xml", "application/json; charset=utf-8", "x", "application/cbor")
            return Request("POST", collection, about, "odd type", (), {"Content-Type": random.choice(kinds)},
                           json.dumps(minimal).encode())  # fmt: skip
        case 10:
            twice = f'{{"apiVersion":"{kind.api_version}","kind":"{kind.kind}","kind":"{kind.kind}","metadata":{{"name":"a1"}}}}'
            query = (("fieldValidation", random.choice(("Strict", "Warn", "Ignore"))),)
            return Request("POST", collection, about, "odd body", query, headers, twice.encode())
        case 11:
            # Of the cluster's kinds without what the servers have made themselves.
            chosen = () if kind.namespaced else (("labelSelector", "app=a"),)
            return Request("GET", f"{collection}/", about, "odd path", chosen)
        case 12:
            return Request("DELETE", one, about, "odd body", (), headers, random.choice((b"{", b"[]", b"x", b"{}")))
        case 13:
            bad = random.choice(
                ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
            )
            return Request("PATCH", one, about, "odd body", (("fieldManager", "m"),), {"Content-Type": bad},
                           random.choice((b"{", b"", b"[", b"x: [", b"null", b"{}")))  # fmt: skip
        case 14:
            return Request("GET", f"/apis/{kind.group or 'none'}/v99/{kind.resource}", about, "odd path")
        case _:
            return Request(
                "GET", random.choice((kind.root, f"/apis/{kind.group}", f"{kind.root}/")), about, "discovery"
            )
