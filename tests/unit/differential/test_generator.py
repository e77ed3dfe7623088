"""The requests that the differential tester makes."""

from collections import Counter
from random import Random
from types import SimpleNamespace

from differential.bodies import Bodies
from differential.generator import Generator
from differential.kinds import Kind, Schemas

MADE_ONLY = Kind("authorization.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, ("create",))


def test_a_run_of_one_kind_asks_only_for_what_the_kind_has():
    random = Random(7)
    real = SimpleNamespace(held={})
    generator = Generator([MADE_ONLY], Bodies(Schemas(), random), random, real)
    asked = [generator.next() for _ in range(200)]
    assert {each.verb for each in asked if each.method == "POST" and each.path == MADE_ONLY.collection("")} >= {
        "create"
    }
    assert not {each.verb for each in asked} & {"update", "patch", "delete", "deletecollection", "list"}


def test_each_resource_and_verb_comes_as_often_as_the_others_of_its_share():
    random = Random(7)
    kinds = [Kind("x.example.com", "v1", name, name.title(), True, ("list", "watch")) for name in ("as", "bs", "cs")]
    generator = Generator(kinds, Bodies(Schemas(), random), random, SimpleNamespace(held={}))
    assert generator.pairs == {(kind.about(), verb) for kind in kinds for verb in ("list", "watch")}
    asked = Counter((each.about, each.verb) for each in (generator.next() for _ in range(600)))
    for verb in ("list", "watch"):
        counts = [asked[kind.about(), verb] for kind in kinds]
        assert min(counts) > 50
        assert max(counts) - min(counts) <= 1
