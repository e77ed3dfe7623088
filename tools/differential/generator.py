"""The requests, one short sequence after another: what comes next depends on the seed and on the real server's answers."""

from collections import Counter, deque
from collections.abc import Callable
from random import Random
from typing import Any

from differential import odd, reads, subresources
from differential.bodies import Bodies
from differential.kinds import Kind
from differential.request import JSON, Held, Request
from differential.servers import Answer, Server
from differential.steadying import removal

NAMESPACES = ("n1", "n2")
SHARES = {
    "create": 1.2, "update": 1.0, "patch": 1.4, "delete": 1.0, "deletecollection": 0.9, "subresource": 1.0,
    "get": 0.72, "list": 0.74, "watch": 0.72, "subresource get": 0.74, "odd": 0.5,
}  # fmt: skip
"""How often each of them comes for one kind that has it. Reads come less often than writes, and yet each so often as
`LEAST_OF_EACH` wants in a run of 25000."""
ITS_OWN = {"customresourcecleanup.apiextensions.k8s.io"}
"""Finalizers that the servers take away themselves."""

REACHES_OTHERS = frozenset({
    "LimitRange", "ResourceQuota", "PriorityClass", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy", "APIService",
    "MutatingAdmissionPolicy", "FlowSchema", "PriorityLevelConfiguration", "StorageClass", "IngressClass", "ServiceCIDR",
    "CustomResourceDefinition", "RuntimeClass",
})  # fmt: skip
"""Their objects act on other requests, on each server when its caches have seen them: they are removed at once, and those
of a namespace live in one of their own."""
PATCHES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
    "apply": "application/apply-patch+yaml",
}


class Generator:
    """Make requests: `next` returns the next one, `learned` takes both answers."""

    def __init__(self, kinds: list[Kind], bodies: Bodies, random: Random, real: Server) -> None:
        self.kinds, self.bodies, self.random, self.real = kinds, bodies, random, real
        self.asked: Counter[tuple[str, str]] = Counter()
        self._next: deque[Request] = deque()
        self._live: dict[str, tuple[Kind, str, str]] = {}
        subs = [
            (kind, sub, verb) for kind in kinds for sub, verbs in kind.subresources.items() for verb in verbs
            if (sub, verb) in subresources.MAKERS or (("*", verb) in subresources.MAKERS and sub not in subresources.STREAMS)
        ]  # fmt: skip
        self.pairs = {(kind.about(), verb) for kind in kinds for verb in kind.verbs}
        """Each resource, or subresource, and each verb of Kubernetes that comes for it."""
        self.pairs |= {(kind.about(sub), verb) for kind, sub, verb in subs}
        all_of: dict[str, list[Any]] = {share: [each for each in kinds if share in each.verbs] for share in SHARES}
        all_of |= {"odd": kinds, "subresource": [each for each in subs if each[2] != "get"]}
        all_of["subresource get"] = [each for each in subs if each[2] == "get"]
        self._of = {share: of for share, of in all_of.items() if of}
        """A run may be of one kind, which lacks verbs or subresources."""
        self._weights = [SHARES[share] * len(of) for share, of in self._of.items()]
        self._deck: dict[str, list[Any]] = {}

    def next(self) -> Request:
        while not self._next:
            self._next.extend(self._sequence())
        return self._next.popleft()

    def _dealt(self, share: str) -> Any:
        """Each of them as often as the others: a deck that is shuffled anew when it is empty."""
        deck = self._deck.setdefault(share, [])
        if not deck:
            deck.extend(self._of[share])
            self.random.shuffle(deck)
        return deck.pop()

    def _sequence(self) -> list[Request]:
        share = self.random.choices(list(self._of), self._weights)[0]
        dealt = self._dealt(share)
        if share.startswith("subresource"):
            return self._of_subresource(*dealt)
        if share == "odd":
            return [odd.request(dealt, self.random, self._namespace)]
        maker: Callable[[Kind], list[Request]] = getattr(self, f"_{share}")
        return maker(dealt)

    # -- what there is ------------------------------------------------------------------------------------------------

    def _namespace(self, kind: Kind) -> str:
        if not kind.namespaced:
            return ""
        return "limits" if kind.kind in REACHES_OTHERS else self.random.choice(NAMESPACES)

    def _name(self, kind: Kind) -> str:
        if kind.kind == "CustomResourceDefinition":
            return self.random.choice(("widgets.example.com", "gadgets.example.com"))
        if kind.kind == "APIService":
            return "v1.x.example.com"
        if kind.kind == "IPAddress":
            return f"10.125.200.{self.random.randrange(1, 200)}"
        if kind.kind == "Namespace":
            return f"ns-{self.random.randrange(10000)}"
        return f"{self.random.choice('abcdefgh')}{self.random.randrange(10)}"

    def _existing(self, kind: Kind) -> tuple[list[Request], str, str, dict[str, Any]]:
        """(a request that makes one when there is none, its namespace, its name, the object or what it was made from)."""
        there = [(ns, name) for path, (k, ns, name) in self._live.items() if k is kind and path in self.real.held]
        if there and self.random.random() < 0.95:
            namespace, name = self.random.choice(there)
            return [], namespace, name, self.real.held[kind.path(namespace, name)]
        namespace, name = self._namespace(kind), self._name(kind)
        obj = self.bodies.valid(kind, namespace, name, smallest=self.random.random() < 0.5)
        name = obj["metadata"]["name"]
        if "create" not in kind.verbs:
            return [], namespace, name, obj
        return [self._made("POST", kind.collection(namespace), kind, "create", obj)], namespace, name, obj

    def _made(self, method: str, path: str, kind: Kind, verb: str, body: Any, **more: Any) -> Request:
        headers = {"Content-Type": JSON, **more.pop("headers", {})}
        about = kind.about(more.pop("subresource", ""))
        return Request(method, path, about, verb, headers=headers, body=body, **more)

    def _options(self, *more: tuple[str, str]) -> tuple[tuple[str, str | Held], ...]:
        """Of a write; mostly none."""
        if self.random.random() < 0.8:
            return more
        chosen = self.random.choice((
            ("dryRun", "All"), ("dryRun", "Some"), ("fieldValidation", "Strict"), ("fieldValidation", "Ignore"),
            ("fieldValidation", "Bad"), ("fieldManager", "m"), ("fieldManager", "x" * 129), ("fieldManager", "\n"),
            ("pretty", "true"), ("fieldValidation", "Warn"), ("dryRun", ""), ("timeoutSeconds", "x"), ("force", "true"),
        ))  # fmt: skip
        return (*more, chosen)

    # -- verbs --------------------------------------------------------------------------------------------------------

    def _create(self, kind: Kind) -> list[Request]:
        namespace, name = self._namespace(kind), self._name(kind)
        obj = self.bodies.valid(kind, namespace, name)
        dice = self.random.random()
        if dice < 0.6:
            obj = self.bodies.changed(kind, obj, self.random.choice((1, 1, 2, 3)))
        elif dice < 0.72:
            self.bodies.odd_metadata(obj)
        return [
            self._made(
                "POST", kind.collection(namespace), kind, "create", obj, query=self._options(),
                headers=reads.accepted(self.random, 0.06),
            )
        ]  # fmt: skip

    def _update(self, kind: Kind) -> list[Request]:
        before, namespace, name, old = self._existing(kind)
        path = kind.path(namespace, name)
        new = self.bodies.changed(kind, old, self.random.choice((0, 1, 1, 1, 2)))
        if isinstance(new.get("metadata"), dict):
            new["metadata"].pop("managedFields", None)
            if self.random.random() < 0.15:
                self.bodies.odd_metadata(new)
            elif self.random.random() < 0.2:
                new["metadata"].pop("resourceVersion", None)
        body = self.bodies.again(path, old, new)
        return [*before, self._made("PUT", path, kind, "update", body, query=self._options())]

    def _patch(self, kind: Kind) -> list[Request]:
        before, namespace, name, old = self._existing(kind)
        path = kind.path(namespace, name)
        way = self.random.choice(list(PATCHES))
        body: Any
        query = self._options()
        match way:
            case "json":
                body = odd.json_patch(old, self.bodies.changed(kind, old), self.random)
            case "merge" | "strategic":
                body = odd.merge_patch(old, self.bodies.changed(kind, old), self.random, strategic=way == "strategic")
            case _:
                body = self.bodies.valid(kind, namespace, name)
                if self.random.random() < 0.6:
                    body = self.bodies.changed(kind, body, self.random.choice((1, 2)))
                query = (*query, ("fieldManager", self.random.choice(("m1", "m2"))))
                if self.random.random() < 0.4:
                    query = (*query, ("force", "true"))
                if self.random.random() < 0.05:
                    query = query[:0]
        headers = {"Content-Type": PATCHES[way] if self.random.random() < 0.97 else self.random.choice((JSON, "x/y"))}
        if way != "apply":
            body = self.bodies.again(path, old, body)
        if way == "apply" and self.random.random() < 0.5:
            before = []
        return [*before, self._made("PATCH", path, kind, f"patch {way}", body, query=query, headers=headers)]

    def _delete(self, kind: Kind) -> list[Request]:
        before, namespace, name, _ = self._existing(kind)
        path = kind.path(namespace, name)
        if self.random.random() < 0.05:
            return [*before, Request("DELETE", kind.path(namespace, "no-such"), kind.about(), "delete")]
        query, body = odd.delete_options(path, self.random)
        headers = {"Content-Type": JSON} if body is not None else {}
        return [*before, Request("DELETE", path, kind.about(), "delete", query, headers, body)]

    def _deletecollection(self, kind: Kind) -> list[Request]:
        namespace = self._namespace(kind)
        # Cluster-scoped kinds have objects that the server itself made: they stay.
        query = (("labelSelector", self.random.choice(("app=b", "app=zzz", "app in (b)", "app=="))),)
        if self.random.random() < 0.1:
            query = (("labelSelector", "app=b,,"),)
        if self.random.random() < 0.2:
            query = (*query, ("dryRun", "All"))  # type: ignore[assignment]
        return [Request("DELETE", kind.collection(namespace), kind.about(), "deletecollection", query)]

    def _get(self, kind: Kind) -> list[Request]:
        before, namespace, name, _ = self._existing(kind)
        if self.random.random() < 0.1:
            before, name = [], "no-such"
        return [*before, reads.get(kind, kind.path(namespace, name), self.random)]

    def _list(self, kind: Kind) -> list[Request]:
        return [reads.listing(kind, self._namespace(kind), self.random)]

    def _watch(self, kind: Kind) -> list[Request]:
        there = [path for path, (k, _, _) in self._live.items() if k is kind and path in self.real.held]
        of = self.random.choice(there) if there else ""
        return [reads.watching(kind, self._namespace(kind), of, self.random)]

    def _of_subresource(self, kind: Kind, sub: str, verb: str) -> list[Request]:
        before, namespace, name, old = self._existing(kind)
        maker = subresources.MAKERS.get((sub, verb)) or subresources.MAKERS["*", verb]
        return [
            *before,
            maker(subresources.Asked(kind, sub, kind.path(namespace, name), name, old, self.bodies, self.random)),
        ]

    # -- answers ------------------------------------------------------------------------------------------------------

    def learned(self, request: Request, real: Answer, ours: Answer, our_server: Server) -> None:
        """Learn what is there now, and what has to follow."""
        self.asked[request.about, request.verb.split()[0]] += 1  # `patch json` is a patch
        dry = any(key == "dryRun" for key, _ in request.query) or b"dryRun" in _bytes(request.body)
        if dry or request.is_read or real.status >= 300:
            if real.status == 404 and request.method == "GET":
                self._live.pop(request.path, None)
            return
        kind = next((each for each in self.kinds if request.about.split("/")[:2] == each.about().split("/")[:2]), None)
        kind = next((each for each in self.kinds if each.about() == request.about), kind)
        if request.method == "DELETE":
            self._forget(request, real, our_server)
            return
        obj, other = real.document, ours.document
        if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict) or "uid" not in obj["metadata"]:
            return
        if request.method == "POST" and isinstance(other, dict) and _name_of(other) != _name_of(obj):
            # Each server has chosen a name itself: nobody can ask both for it later.
            for server, created in ((self.real, obj), (our_server, other)):
                for each_request in removal(f"{request.path}/{_name_of(created)}"):
                    server.ask(each_request)
            return
        for each in self.kinds:
            if each.kind == obj.get("kind") and each.api_version == obj.get("apiVersion"):
                namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
                path = each.path(namespace, name)
                if ours.status >= 300:
                    # One difference is not to make others: what only one server has goes.
                    self._drop(path, our_server)
                    self._next.append(Request("DELETE", path, each.about(), "delete"))
                    return
                self.real.held[path] = obj
                our_server.held[path] = other if isinstance(other, dict) and "metadata" in other else {}
                self._live[path] = (each, namespace, name)
                if each.kind in REACHES_OTHERS and request.verb == "create":
                    self._follow_up(each, namespace, name, path)

    def _follow_up(self, kind: Kind, namespace: str, name: str, path: str) -> None:
        """Two more requests on it, then it is gone."""
        more = [*self._update(kind)[-1:], *self._patch(kind)[-1:]] if self.random.random() < 0.5 else []
        self._next.extend(each for each in more if each.path == path)
        self._next.append(Request("DELETE", path, kind.about(), "delete"))

    def _forget(self, request: Request, real: Answer, our_server: Server) -> None:
        if request.verb == "deletecollection":
            for path in [path for path in self._live if path.startswith(f"{request.path}/")]:
                obj = self.real.held.get(path) or {}
                if ((obj.get("metadata") or {}).get("labels") or {}).get("app") == "b":
                    self._drop(path, our_server)
            return
        document = real.document
        meta = document.get("metadata") if isinstance(document, dict) else None
        if isinstance(meta, dict) and {*(meta.get("finalizers") or ())} - ITS_OWN and "deletionTimestamp" in meta:
            patch = {"Content-Type": PATCHES["merge"]}
            self._next.append(
                Request(
                    "PATCH", request.path, request.about, "patch merge", (), patch, {"metadata": {"finalizers": None}}
                )
            )
        if real.status != 202 and not (isinstance(meta, dict) and "deletionTimestamp" in meta):
            self._drop(request.path, our_server)

    def gone(self, path: str, our_server: Server) -> None:
        """Forget an object that has gone by itself: it is not asked for any more."""
        self._drop(path, our_server)

    def _drop(self, path: str, our_server: Server) -> None:
        self._live.pop(path, None)
        self.real.held.pop(path, None)
        our_server.held.pop(path, None)


def _name_of(obj: dict[str, Any]) -> str:
    return str((obj.get("metadata") or {}).get("name", ""))


def _bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else str(body).encode()
