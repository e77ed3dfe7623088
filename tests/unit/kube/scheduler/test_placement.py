"""Where a Pod goes: what is remembered must be what a look at everything finds, and sums must be what a count finds."""

import random

import pytest
from scheduling import cache_of, node, pod, pod_info, requests, running

from lastcall.kube.scheduler import ranking
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.filters import Diagnosis
from lastcall.kube.scheduler.node_info import NodeInfo
from lastcall.kube.scheduler.placement import look, place
from lastcall.kube.scheduler.ranking import Rankings, is_ranked
from lastcall.kube.scheduler.scores import balanced, best_node, least_allocated
from lastcall.kube.scheduler.terms import PodSelection, selector_of_expressions
from lastcall.kube.scheduler.topology_spread import normalise, spread_scores

SIZES = ({}, {"cpu": "100m"}, {"cpu": "250m", "memory": "256Mi"}, {"memory": "1Gi"}, {"cpu": "1"})
TAINT = {"key": "k", "effect": "NoSchedule"}


def chosen(found: NodeInfo | Diagnosis) -> str:
    return found.name if isinstance(found, NodeInfo) else ""


@pytest.mark.parametrize("few_nodes", [1, 32])
@pytest.mark.parametrize("seed", range(30))
def test_a_remembered_answer_is_the_one_that_a_look_at_every_node_gives(seed, few_nodes, monkeypatch):
    monkeypatch.setattr(ranking, "FEW_NODES", few_nodes)
    chance = random.Random(seed)
    cache, rankings = cache_of(*(node(f"n{number}", pods="20") for number in range(6))), Rankings()
    there: list[str] = []
    ranked = 0
    for step in range(250):
        action = chance.random()
        if action < 0.7:
            spec = requests(**chance.choice(SIZES))
            if chance.random() < 0.2:
                spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
            owner = chance.choice(("", "a", "b"))
            info = pod_info(cache, pod(f"p{step}", owner=owner, labels={"app": owner}, **spec))
            ranked += is_ranked(info, cache)
            expected = chosen(look(info, cache))
            assert chosen(place(info, cache, rankings)) == expected
            if expected:
                cache.put_pod(info, expected)
                there.append(info.uid)
        elif action < 0.85 and there:
            cache.remove_pod(there.pop(chance.randrange(len(there))))
        elif action < 0.95:
            name = f"n{chance.randrange(6)}"
            cache.set_node(
                node(name, pods="20", unschedulable=chance.random() < 0.3, taints=[TAINT] * chance.randrange(2))
            )
        else:
            cache.remove_node(f"n{chance.randrange(6)}")
    assert ranked > 100


def test_what_goes_beyond_one_node_is_not_answered_from_memory():
    cache = cache_of(node("a"), node("b"))
    plain = pod_info(cache, pod())
    assert is_ranked(plain, cache)
    spread = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
    assert not is_ranked(pod_info(cache, pod(topologySpreadConstraints=[spread])), cache)
    cache.nominate(pod_info(cache, pod("other")), "a")
    assert not is_ranked(plain, cache)
    cache.nominate(pod_info(cache, pod("other")), "")
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "x"}}}
    ]}}  # fmt: skip
    running(cache, pod("there", affinity=apart), "a")
    assert is_ranked(plain, cache), "it matches no term"
    assert not is_ranked(pod_info(cache, pod(labels={"app": "x"})), cache)
    for more in (
        {"taints": [{"key": "k", "effect": "PreferNoSchedule"}]},
        {"labels": {"topology.kubernetes.io/zone": "z"}},
    ):
        assert not is_ranked(plain, cache_of(node("a"), node("b", **more)))


def recount(cache: Cache, selection: PodSelection, living: bool) -> dict[str, int]:
    found: dict[str, int] = {}
    for info, name in cache.pods():
        if selection.matches(info.namespace, info.labels, cache.namespace_labels) and not (living and info.terminating):
            found[name] = found.get(name, 0) + 1
    return found


@pytest.mark.parametrize("seed", range(20))
def test_counts_kept_with_every_change_are_those_that_counting_gives(seed):
    chance = random.Random(seed)
    cache = cache_of(*(node(f"n{number}") for number in range(4)))
    cache.set_namespace({"metadata": {"name": "one", "labels": {"team": "x"}}})

    def selection():
        chooses = {"matchLabels": {"app": chance.choice("ab")}} if chance.random() < 0.6 else {
            "matchExpressions": [{"key": "tier", "operator": chance.choice(("Exists", "DoesNotExist"))}]
        }  # fmt: skip
        by_team = chance.random() < 0.3
        by_labels = selector_of_expressions({"matchLabels": {"team": "x"}}) if by_team else None
        return PodSelection(("one",), by_labels, selector_of_expressions(chooses))

    asked = []
    names: list[str] = []
    for step in range(200):
        action = chance.random()
        if action < 0.5:
            labels = {key: chance.choice("ab") for key in ("app", "tier") if chance.random() < 0.7}
            made = pod(f"p{step}", labels=labels, namespace=chance.choice(("one", "two")))
            if chance.random() < 0.3:
                made["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
            running(cache, made, f"n{chance.randrange(4)}")
            names.append(f"p{step}")
        elif action < 0.7 and names:
            cache.remove_pod(names.pop(chance.randrange(len(names))))
        elif action < 0.8:
            team = chance.choice("xy")
            cache.set_namespace({"metadata": {"name": "two", "labels": {"team": team}}})
        else:
            asked.append((selection(), chance.random() < 0.5))
        for each, living in asked[-6:]:
            assert dict(cache.counts(each, living=living)) == recount(cache, each, living)
    for name in names:
        cache.remove_pod(name)
    assert not any(cache.counts(each, living=living) for each, living in asked)
    assert all(not info.requested.get("cpu") and not info.pods for info in cache.nodes.values())


@pytest.mark.parametrize(
    ("used", "asked", "free", "even"),
    [
        ({}, {"cpu": "1", "memory": "2Gi"}, 50, 100),
        ({}, {"cpu": "2", "memory": "4Gi"}, 0, 100),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "500m", "memory": "1Gi"}, 37, 87),
        ({}, {"cpu": "1"}, (50 + 95) // 2, 75),  # memory counts as 200Mi where nodes are compared
    ],
)
def test_points_for_what_stays_free_and_for_an_even_use(used, asked, free, even):
    cache = cache_of(node())
    if used:
        running(cache, pod("there", **requests(**used)), "n")
    wanted = pod_info(cache, pod(**requests(**asked))).requirements
    assert (least_allocated(wanted, cache.nodes["n"]), balanced(wanted, cache.nodes["n"])) == (free, even)


def test_equal_nodes_are_taken_by_the_fewest_pods_and_then_by_name():
    cache = cache_of(node("b"), node("a"), node("c"))
    nodes = list(cache.nodes.values())
    assert best_node(pod_info(cache, pod()), nodes, cache).name == "a"
    running(cache, pod("there", containers=[]), "a")
    assert best_node(pod_info(cache, pod()), nodes, cache).name == "b"


def test_a_taint_that_should_be_avoided_and_a_preference_for_nodes_weigh_more_than_free_room():
    avoided = {"key": "k", "effect": "PreferNoSchedule"}
    cache = cache_of(node("a", taints=[avoided]), node("b"))
    running(cache, pod("there", **requests(cpu="1")), "b")
    assert chosen(look(pod_info(cache, pod()), cache)) == "b"
    assert chosen(look(pod_info(cache, pod(tolerations=[{"operator": "Exists"}])), cache)) == "a"
    wish = {"weight": 1, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}
    likes = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    cache = cache_of(node("a"), node("b", labels={"disk": "ssd"}))
    running(cache, pod("there", **requests(cpu="1")), "b")
    assert chosen(look(pod_info(cache, pod(affinity=likes)), cache)) == "b"


@pytest.mark.parametrize(
    ("raw", "points"),
    [([2, 4, 6], [133 * 100 // 133, 66, 33]), ([5, 5], [100, 100]), ([0, 0], [100, 100]), ([None, 3], [0, 100])],
)
def test_the_emptiest_domain_gets_the_most_points(raw, points):
    assert normalise(raw) == points


def spread(key="kubernetes.io/hostname", skew=1, when="DoNotSchedule", **more):
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": "x"}}, **more}  # fmt: skip


@pytest.mark.parametrize(
    ("constraint", "there", "allowed"),
    [
        (spread(), {}, "abc"),
        (spread(), {"a": 1}, "bc"),
        (spread(), {"a": 1, "b": 1, "c": 1}, "abc"),
        (spread(skew=2), {"a": 1}, "abc"),
        (spread(skew=2), {"a": 2}, "bc"),
        (spread(minDomains=4), {"a": 1, "b": 1}, "c"),
        (spread("zone"), {"a": 1}, "c"),
        (spread("zone"), {"c": 1}, "ab"),
        (spread("rack"), {}, ""),
        (spread(when="ScheduleAnyway"), {"a": 9}, "abc"),
    ],
)
def test_a_domain_may_not_have_more_than_the_emptiest_and_the_skew(constraint, there, allowed):
    zones = {"a": "1", "b": "1", "c": "2"}
    cache = cache_of(*(node(name, labels={"zone": zone}) for name, zone in zones.items()))
    for name, count in there.items():
        for number in range(count):
            running(cache, pod(f"{name}{number}", labels={"app": "x"}), name)
    gone = pod("gone", labels={"app": "x"})
    gone["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    running(cache, gone, "b")  # terminating Pods are not counted
    info = pod_info(cache, pod(labels={"app": "x"}, topologySpreadConstraints=[constraint]))
    for name in zones:
        alone = pod_info(cache, pod(labels={"app": "x"}, topologySpreadConstraints=[constraint],
                                    nodeSelector={"kubernetes.io/hostname": name}))  # fmt: skip
        assert alone.requirements.hard_spread == info.requirements.hard_spread
    found = look(info, cache)
    refused = set() if isinstance(found, NodeInfo) else set(found.refusals)
    if isinstance(found, NodeInfo):
        # One node after the other is closed, to see all that would be taken.
        taken = []
        while isinstance(found, NodeInfo):
            taken.append(found.name)
            cache.set_node({**found.node, "spec": {"unschedulable": True}})
            found = look(info, cache)
        assert "".join(sorted(taken)) == allowed
    else:
        assert "".join(sorted(set(zones) - refused)) == allowed


def test_nodes_that_the_pod_cannot_use_are_no_domains():
    cache = cache_of(node("a"), node("b", labels={"disk": "ssd"}), node("c", taints=[TAINT]))
    running(cache, pod("there", labels={"app": "x"}), "b")
    only_ssd = {"nodeSelector": {"disk": "ssd"}, "topologySpreadConstraints": [spread()]}
    assert chosen(look(pod_info(cache, pod(labels={"app": "x"}, **only_ssd)), cache)) == "b"
    ignoring = {**only_ssd, "topologySpreadConstraints": [spread(nodeAffinityPolicy="Ignore")]}
    assert chosen(look(pod_info(cache, pod(labels={"app": "x"}, **ignoring)), cache)) == ""
    running(cache, pod("too", labels={"app": "x"}), "a")
    free = {"topologySpreadConstraints": [spread()]}
    assert chosen(look(pod_info(cache, pod(labels={"app": "x"}, **free)), cache)) == "", "c is the emptiest"
    honest = {"topologySpreadConstraints": [spread(nodeTaintsPolicy="Honor")]}
    assert chosen(look(pod_info(cache, pod(labels={"app": "x"}, **honest)), cache)) in ("a", "b")


def test_match_label_keys_compare_only_pods_of_one_revision():
    constraint = spread(matchLabelKeys=["pod-template-hash"])
    cache = cache_of(node("a"), node("b"))
    for number in range(3):
        running(cache, pod(f"old{number}", labels={"app": "x", "pod-template-hash": "1"}), "a")
    labels = {"app": "x", "pod-template-hash": "2"}
    info = pod_info(cache, pod(labels=labels, topologySpreadConstraints=[constraint]))
    assert isinstance(look(info, cache), NodeInfo)
    assert dict(cache.counts(info.requirements.hard_spread[0].pods, living=True)) == {}


def test_pods_of_one_owner_are_spread_without_being_asked():
    cache = cache_of(node("a"), node("b"))
    running(cache, pod("there", owner="web"), "a")
    mine, other = pod_info(cache, pod(owner="web")), pod_info(cache, pod(owner="other"))
    nodes = list(cache.nodes.values())
    assert spread_scores(mine, nodes, cache) == [66, 100] or spread_scores(mine, nodes, cache)[1] == 100
    assert spread_scores(other, nodes, cache) == [100, 100]
    assert spread_scores(pod_info(cache, pod()), nodes, cache) is None


def affinity(kind, app, key="kubernetes.io/hostname", weight=0, **more):
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}
    if weight:
        return {
            kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": term}]}
        }
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@pytest.mark.parametrize(
    ("wish", "labels", "expected"),
    [
        (affinity("podAffinity", "db"), {}, "b"),
        (affinity("podAffinity", "none"), {}, ""),
        (affinity("podAffinity", "none"), {"app": "none"}, "a"),  # the first of its own kind
        (affinity("podAffinity", "db", "missing"), {"app": "db"}, ""),
        (affinity("podAffinity", "db", "zone"), {}, "b"),
        (affinity("podAntiAffinity", "db"), {}, "a"),
        (affinity("podAntiAffinity", "db", "zone"), {}, "a"),
        (affinity("podAntiAffinity", "none"), {}, "a"),
        (affinity("podAffinity", "db", namespaces=["other"]), {}, ""),
        (affinity("podAffinity", "far", namespaces=["other"]), {}, "c"),
        (affinity("podAffinity", "far", namespaceSelector={"matchLabels": {"team": "t"}}), {}, "c"),
        (affinity("podAffinity", "far", namespaceSelector={}), {}, "c"),
        (affinity("podAffinity", "db", weight=1), {}, "b"),
        (affinity("podAntiAffinity", "db", "zone", weight=100), {}, "a"),
    ],
)
def test_pods_choose_their_neighbours(wish, labels, expected):
    cache = cache_of(node("a", labels={"zone": "1"}), node("b", labels={"zone": "2"}), node("c", labels={"zone": "2"}))
    cache.set_namespace({"metadata": {"name": "other", "labels": {"team": "t"}}})
    running(cache, pod("db", labels={"app": "db"}), "b")
    running(cache, pod("far", labels={"app": "far"}, namespace="other"), "c")
    found = chosen(look(pod_info(cache, pod(labels=labels, affinity=wish)), cache))
    assert found == expected or (expected == "b" and wish == affinity("podAffinity", "db", "zone") and found in "bc")


def test_who_is_there_first_may_keep_others_away_too():
    cache = cache_of(node("a"), node("b"))
    running(cache, pod("alone", affinity=affinity("podAntiAffinity", "noisy")), "a")
    assert chosen(look(pod_info(cache, pod(labels={"app": "noisy"})), cache)) == "b"
    assert chosen(look(pod_info(cache, pod(labels={"app": "quiet"})), cache)) == "b"  # fewer Pods
    cache.remove_node("b")
    found = look(pod_info(cache, pod(labels={"app": "noisy"})), cache)
    assert found.refusals["a"].reasons == ("node(s) didn't satisfy existing pods anti-affinity rules",)
    cache.remove_pod("alone")
    assert chosen(look(pod_info(cache, pod(labels={"app": "noisy"})), cache)) == "a"


def test_room_that_was_made_for_one_pod_is_not_taken_by_a_lesser_one():
    cache = cache_of(node("a"))
    coming = pod_info(cache, pod("coming", priority=10, **requests(cpu="1500m")))
    cache.nominate(coming, "a")
    assert chosen(look(pod_info(cache, pod("lesser", priority=1, **requests(cpu="1"))), cache)) == ""
    assert chosen(look(pod_info(cache, pod("greater", priority=20, **requests(cpu="1"))), cache)) == "a"
    assert chosen(look(coming, cache)) == "a"
