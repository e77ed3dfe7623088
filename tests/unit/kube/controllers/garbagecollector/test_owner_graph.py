"""The graph of owners: what each event makes worth another look (garbagecollector/graph.py).

Source: pkg/controller/garbagecollector/graph_builder.go (processGraphChanges, processTransitions).
"""

import pytest

from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, NODES, PODS, REPLICASETS
from lastcall.kube.controllers.garbagecollector.graph import Effects, Graph, Node, Reference

OF = {"set": REPLICASETS, "deployment": DEPLOYMENTS, "pod": PODS, "node": NODES}
GOES = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
FOREGROUND = {**GOES, "finalizers": ["foregroundDeletion"]}
ORPHAN = {**GOES, "finalizers": ["orphan"]}


def graph() -> Graph:
    return Graph({(each.api_version, each.kind): each for each in (REPLICASETS, DEPLOYMENTS, NODES)})


def reference(uid: str, kind: str = "set", *, name: str = "", blocks: bool = False) -> dict:
    resource = OF[kind]
    made = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name or uid, "uid": uid}
    return {**made, "blockOwnerDeletion": True} if blocks else made


def obj(uid: str, *owners: dict, namespace: str = "default", **meta: object) -> dict:
    made = {"uid": uid, "name": uid, "namespace": namespace, **meta}
    return {"metadata": {**made, "ownerReferences": list(owners)} if owners else made}


def seen(of: Graph, kind: str, made: dict) -> tuple[list[str], list[str], list[str]]:
    """Return what the event makes worth a look, what wants its dependents orphaned, and wrong references."""
    effects = of.observe(OF[kind], made)
    return list(effects.delete), list(effects.orphan), [each.uid for each in effects.wrong_namespace]


NOTHING: tuple[list, list, list] = ([], [], [])


def test_an_object_without_owners_is_no_work() -> None:
    of = graph()
    assert seen(of, "set", obj("s")) == NOTHING
    assert of.observe(REPLICASETS, obj("s")) == Effects()
    assert len(of) == 1 and str(of.get("s")) == "ReplicaSet s" and of.get("other") is None


def test_an_owner_that_nobody_has_seen_is_asked_for() -> None:
    of = graph()
    assert seen(of, "pod", obj("p", reference("s", name="web"))) == (["s"], [], [])
    owner = of.get("s")
    assert owner is not None and list(owner.dependents) == ["p"]
    assert (owner.observed, owner.resource, owner.kind, owner.name, owner.namespace) == (
        False, REPLICASETS, "ReplicaSet", "web", "default",
    )  # fmt: skip
    assert seen(of, "pod", obj("q", reference("s", name="web"))) == NOTHING
    assert seen(of, "set", obj("s", name="web")) == NOTHING
    assert owner.observed and list(owner.dependents) == ["p", "q"]


def test_an_owner_of_the_cluster_is_in_no_namespace_and_one_of_an_unknown_kind_is_in_its_dependents() -> None:
    of = graph()
    of.observe(PODS, obj("p", reference("n", "node")))
    of.observe(PODS, obj("q", {"apiVersion": "x/v1", "kind": "Thing", "name": "t", "uid": "t"}))
    node, thing = of.get("n"), of.get("t")
    assert node is not None and thing is not None
    assert (node.namespace, node.resource, thing.namespace, thing.resource) == ("", NODES, "default", None)


@pytest.mark.parametrize(
    ("owner", "look"),
    [
        (obj("s", name="web"), []),
        (obj("s", name="other"), ["p"]),
        (obj("s", name="web", namespace="shop"), ["p"]),
    ],
)
def test_a_dependent_whose_owner_turns_out_to_be_another_object_is_looked_at(owner: dict, look: list) -> None:
    late, early = graph(), graph()
    late.observe(PODS, obj("p", reference("s", name="web")))
    assert seen(late, "set", owner)[0] == look
    early.observe(REPLICASETS, owner)
    wrong = ["s"] if owner["metadata"]["namespace"] != "default" else []
    assert seen(early, "pod", obj("p", reference("s", name="web"))) == (look, [], wrong)


@pytest.mark.parametrize("change", [{"apiVersion": "apps/v1beta1"}, {"kind": "Deployment"}, {"name": "x"}])
def test_a_reference_names_the_version_the_kind_and_the_name(change: dict) -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    assert seen(of, "pod", obj("p", {**reference("s"), **change}))[0] == ["p"]


def test_an_object_of_a_namespace_may_depend_on_one_of_the_cluster() -> None:
    of = graph()
    of.observe(NODES, obj("n", namespace=""))
    assert seen(of, "pod", obj("p", reference("n", "node"))) == NOTHING


def test_the_same_again_is_no_work_and_other_owners_are() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    of.observe(REPLICASETS, obj("t"))
    of.observe(PODS, obj("p", reference("s")))
    assert seen(of, "pod", obj("p", reference("s"), labels={"a": "b"})) == NOTHING
    assert seen(of, "pod", obj("p", reference("t"))) == NOTHING
    first, second = of.get("s"), of.get("t")
    assert first is not None and second is not None
    assert (list(first.dependents), list(second.dependents)) == ([], ["p"])
    assert seen(of, "pod", obj("p", reference("u"))) == (["u"], [], [])


def test_a_reference_that_only_changes_keeps_the_dependent() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    of.observe(PODS, obj("p", reference("s", blocks=True)))
    owner = of.get("s")
    assert owner is not None and owner.blocking_dependents() == [of.get("p")]
    assert seen(of, "pod", obj("p", reference("s"))) == NOTHING
    assert list(owner.dependents) == ["p"] and owner.blocking_dependents() == []


def test_only_a_reference_to_this_owner_blocks_it() -> None:
    of = graph()
    of.observe(PODS, obj("p", reference("s"), reference("t", blocks=True)))
    first, second = of.get("s"), of.get("t")
    assert first is not None and second is not None
    assert (first.blocking_dependents(), second.blocking_dependents()) == ([], [of.get("p")])


def test_a_foreground_deletion_looks_at_the_dependents_and_at_itself_once() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    of.observe(PODS, obj("p", reference("s", blocks=True)))
    assert seen(of, "set", obj("s", **FOREGROUND)) == (["p", "s"], [], [])
    owner = of.get("s")
    assert owner is not None and owner.being_deleted and owner.deleting_dependents
    assert seen(of, "set", obj("s", **FOREGROUND)) == NOTHING
    assert seen(of, "pod", obj("q", reference("s"))) == (["q"], [], []), "one that comes late"
    assert seen(of, "pod", obj("p", reference("s"))) == (["s"], [], []), "it blocks no more"
    assert seen(of, "pod", obj("p", reference("t"))) == (["t"], [], []), "it did not block any more"
    assert seen(of, "set", obj("s", **GOES)) == NOTHING
    assert not owner.deleting_dependents and owner.being_deleted


def test_an_owner_that_is_no_longer_named_is_looked_at_if_it_was_blocked() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s", **FOREGROUND))
    of.observe(PODS, obj("p", reference("s", blocks=True)))
    assert seen(of, "pod", obj("p", reference("s", blocks=True, name="s"), labels={})) == NOTHING
    assert seen(of, "pod", obj("p")) == (["s"], [], [])
    of.observe(REPLICASETS, obj("t"))
    of.observe(PODS, obj("q", reference("t", blocks=True)))
    assert seen(of, "pod", obj("q")) == NOTHING, "nobody waits"


def test_the_wish_to_orphan_is_said_once() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    assert seen(of, "set", obj("s", **ORPHAN)) == ([], ["s"], [])
    assert seen(of, "set", obj("s", **ORPHAN)) == NOTHING
    assert seen(graph(), "set", obj("s", **ORPHAN)) == ([], ["s"], [])
    assert seen(graph(), "set", obj("s", finalizers=["orphan"])) == NOTHING
    assert seen(graph(), "set", obj("s", **GOES)) == NOTHING
    assert seen(graph(), "set", obj("s", **FOREGROUND)) == (["s"], [], [])


def test_what_an_owner_leaves_is_looked_at_once() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    of.observe(PODS, obj("p", reference("s")))
    assert of.remove("s") == Effects(("p",))
    assert of.get("s") is None and of.remove("s") == Effects()
    dependent = of.get("p")
    assert dependent is not None and dependent.gone == ("s",)
    assert seen(of, "pod", obj("p", reference("s"), labels={"a": "b"})) == NOTHING
    assert seen(of, "pod", obj("p", reference("s"), reference("t"))) == (["t"], [], [])
    assert dependent.gone == ("s",)
    assert seen(of, "pod", obj("p", reference("t"))) == NOTHING
    assert dependent.gone == ()


def test_an_owner_that_never_was_is_asked_for_again() -> None:
    of = graph()
    of.observe(PODS, obj("p", reference("s")))
    assert of.remove("s") == Effects(("p",))
    dependent = of.get("p")
    assert dependent is not None and dependent.gone == ()
    assert seen(of, "pod", obj("p", reference("s"))) == (["s"], [], [])


def test_an_owner_that_was_made_up_goes_with_its_last_dependent() -> None:
    of = graph()
    of.observe(PODS, obj("p", reference("s")))
    of.observe(PODS, obj("q", reference("s")))
    assert of.remove("p") == Effects() and of.get("s") is not None
    assert of.remove("q") == Effects() and of.get("s") is None and len(of) == 0


def test_an_owner_that_waits_for_its_dependents_is_looked_at_when_one_goes() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s", **FOREGROUND))
    of.observe(REPLICASETS, obj("t"))
    of.observe(PODS, obj("p", reference("s"), reference("t")))
    assert of.remove("p") == Effects(("s",))
    owner, other = of.get("s"), of.get("t")
    assert owner is not None and other is not None and not owner.dependents and not other.dependents


def test_an_object_that_becomes_one_of_another_kind_is_another_owner() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    of.observe(PODS, obj("p", reference("s")))
    assert seen(of, "deployment", obj("s")) == (["p"], [], [])
    owner = of.get("s")
    assert owner is not None and (owner.resource, owner.kind, owner.api_version) == (
        DEPLOYMENTS, "Deployment", DEPLOYMENTS.api_version,
    )  # fmt: skip


def test_an_object_that_moves_to_another_namespace_is_another_owner() -> None:
    of = graph()
    of.observe(REPLICASETS, obj("s"))
    of.observe(PODS, obj("p", reference("s")))
    assert seen(of, "set", obj("s", namespace="shop")) == (["p"], [], [])


def test_a_kind_that_is_served_later_is_known_to_the_owners_of_it() -> None:
    of = Graph({})
    of.observe(PODS, obj("p", reference("s"), reference("n", "node"), reference("d", "deployment")))
    of.serve(REPLICASETS)
    of.serve(NODES)
    found = {uid: of.get(uid) for uid in ("s", "n", "d")}
    assert {uid: (node.resource, node.namespace) for uid, node in found.items() if node is not None} == {
        "s": (REPLICASETS, "default"), "n": (NODES, ""), "d": (None, "default"),
    }  # fmt: skip
    assert of.resource_of(Reference.all_of(obj("p", reference("s")))[0]) is REPLICASETS
    of.unserve(REPLICASETS)
    of.unserve(CONFIGMAPS)
    assert of.resource_of(Reference.all_of(obj("p", reference("s")))[0]) is None


def test_a_reference_that_says_little_is_read() -> None:
    assert Reference.all_of(obj("p", {})) == (Reference("", "", "", "", False),)
    assert Reference.all_of(obj("p")) == ()
    full = reference("s", blocks=True)
    assert Reference.all_of(obj("p", full)) == (Reference("apps/v1", "ReplicaSet", "s", "s", True),)
    assert str(Node("u", None, "v", "Kind", "", "name")) == "Kind name"
