"""What the differential tester compares, and what it leaves out."""

import json
from random import Random

from differential import known, steadying, values
from differential.comparing import differences, unequal
from differential.kinds import Schemas
from differential.normalising import normalised
from differential.request import Held, Request, settled
from differential.servers import Answer
from differential.steadying import again, agree, object_of

REQUEST = Request("GET", "/api/v1/pods", "v1 pods", "list")


def answer(body, status=200, **headers):
    return Answer(status, {"content-type": "application/json", **headers}, json.dumps(body).encode())


def test_what_a_server_chooses_is_a_word():
    meta = {
        "uid": "0b0e7b0e-1111-2222-3333-444455556666",
        "resourceVersion": "17",
        "creationTimestamp": "2026-11-23T08:00:00Z",
    }
    assert normalised({"metadata": meta, "spec": {"clusterIP": "10.125.3.4", "ports": [{"nodePort": 30123}]}}) == {
        "metadata": {"uid": "<uid>", "resourceVersion": "<resourceVersion>", "creationTimestamp": "<time>"},
        "spec": {"clusterIP": "<ip>", "ports": [{"nodePort": "<nodePort>"}]},
    }


def test_a_name_that_a_server_made_of_a_long_one_is_a_word():
    prefix = "a" * 58
    assert normalised({"details": {"name": f"{prefix}qq7s7"}}) == {"details": {"name": f"{prefix}<generated>"}}


def test_a_time_that_the_request_named_is_compared():
    assert normalised({"eventTime": "2024-01-01T00:00:00.000000Z"}) == {"eventTime": "2024-01-01T00:00:00.000000Z"}


def test_equal_answers_have_no_difference_whatever_their_keys_order():
    assert list(differences(REQUEST, answer({"a": 1, "b": 2}), answer({"b": 2, "a": 1}))) == []


def test_a_number_is_not_its_text():
    assert list(unequal("", {"a": [1]}, {"a": ["1"]})) == [("a[0]", 1, "1")]


def test_another_status_is_the_one_difference_told():
    told = list(differences(REQUEST, answer({"message": "no"}, 404), answer({"kind": "Pod"})))
    assert [(each.path, each.real, each.ours) for each in told] == [("status", "404 no", "200 Pod")]


def test_a_missing_warning_is_a_difference():
    told = list(differences(REQUEST, answer({}, warning='299 - "w"'), answer({})))
    assert [each.path for each in told] == ["header warning"]


def test_causes_are_the_same_for_other_names_and_numbers():
    pair = [
        next(differences(REQUEST, answer({"message": f'pods "{name}" not found'}), answer({"message": "x"})))
        for name in ("a1", "b2")
    ]
    assert pair[0].cause == pair[1].cause


def test_each_server_gets_its_own_values_back():
    body = {"metadata": {"uid": Held("/p", ("metadata", "uid"))}, "ports": [Held("/p", ("ports", 0, "nodePort"))]}
    held = {"/p": {"metadata": {"uid": "u"}, "ports": [{"nodePort": 30001}]}}
    assert settled(body, held) == {"metadata": {"uid": "u"}, "ports": [30001]}
    assert settled(body, {}) == {"metadata": {"uid": ""}, "ports": [""]}


def test_a_seed_makes_the_same_changes_again():
    schema = {"properties": {"spec": {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}}}}}
    old = {"spec": {"a": "x", "b": 1}}
    made = [[values.changed(Schemas(), schema, old, random, 2) for _ in range(50)] for random in (Random(7), Random(7))]
    assert made[0] == made[1]
    assert any(each != old for each in made[0]) and old == {"spec": {"a": "x", "b": 1}}


def test_a_difference_of_the_table_in_the_documentation_stays_and_hides_no_other():
    columns = [{"name": "Name", "description": "long"}]
    real = answer({"a": 1, "columnDefinitions": columns, "z": 2})
    ours = answer({"a": 1, "columnDefinitions": [{"name": "Name", "description": ""}], "z": 3})
    of = known.reasons()
    told = list(differences(REQUEST, real, ours, lambda cause: known.reason_of(cause, of)))
    assert [(each.path, bool(known.reason_of(each.cause, of))) for each in told] == [
        ("columnDefinitions[0].description", True),
        ("z", False),
    ]


def test_the_documentation_has_a_reason_for_each_known_difference():
    of = known.reasons()
    assert len(of) >= 2
    assert all(len(reason) > 20 for _, reason in of)
    assert known.reasons("no table") == []


def test_an_object_of_which_the_servers_differ_is_known_by_its_path():
    made = (answer({"metadata": {"name": "a1"}}, 201), answer({"message": "no"}, 422))
    create = Request("POST", "/apis/apps/v1/namespaces/n1/deployments", "apps/v1 deployments", "create")
    assert object_of(create, made) == "/apis/apps/v1/namespaces/n1/deployments/a1"
    status = Request("PATCH", "/api/v1/nodes/n/status", "v1 nodes/status", "patch merge")
    assert object_of(status, made) == "/api/v1/nodes/n"
    assert object_of(Request("GET", "/api/v1/pods", "v1 pods", "list"), made) == ""
    assert object_of(Request("PUT", "/api/v1/namespaces/x", "v1 namespaces", "update"), made) == ""


def test_what_the_real_server_refuses_in_another_order_is_asked_for_again_and_nothing_else_is():
    class Real:
        def __init__(self, *answers):
            self.answers = list(answers)

        def ask(self, request):
            return self.answers.pop(0)

    first, other = answer({"message": "[a, b]"}, 422), answer({"message": "[b, a]"}, 422)
    create = Request("POST", "/api/v1/pods", "v1 pods", "create")
    assert list(again(create, Real(first, other, first, answer({}, 201), other), first)) == [other]
    assert list(again(REQUEST, Real(other), first)) == []
    assert list(again(create, Real(other), answer({}, 201))) == []


def test_a_version_in_a_text_and_an_address_of_a_further_range_are_words():
    assert normalised({"message": "the ResourceVersion in record (17). The"}) == {
        "message": "the ResourceVersion in record (<resourceVersion>). The"
    }
    assert normalised({"clusterIPs": ["10.200.0.7"], "cidrs": ["10.200.0.0/24"]}) == {
        "clusterIPs": ["<ip>"],
        "cidrs": ["10.200.0.0/24"],
    }


def test_what_a_refusal_says_is_not_noticed_and_what_it_refuses_is():
    body = {"message": "[a, b]", "reason": "Invalid", "details": {"name": "x", "causes": [{"field": "a"}]}}
    real = answer(body, 422, warning="w")
    ours = answer({**body, "message": "[b, a]", "details": {"name": "x", "causes": []}}, 422, warning="v")
    told = list(differences(REQUEST, real, ours))
    assert [(each.path, each.noticed) for each in told] == [("header warning", False), ("message", False)]
    other = answer({**body, "message": "[b, a]", "reason": "Forbidden"}, 422, warning="w")
    assert [(each.path, each.noticed) for each in differences(REQUEST, real, other)] == [
        ("message", False),
        ("reason", True),
    ]
    ((path, noticed),) = [(each.path, each.noticed) for each in differences(REQUEST, real, answer(body, 400))]
    assert (path, noticed) == ("status", True)


def test_a_message_in_an_object_or_an_event_is_noticed_and_the_description_of_a_column_is_not():
    assert [each.noticed for each in differences(REQUEST, answer({"message": "a"}), answer({"message": "b"}))] == [True]
    event = [{"type": "ERROR", "object": {"message": "a"}}]
    other = [{"type": "ERROR", "object": {"message": "b"}}]
    assert [each.noticed for each in differences(REQUEST, answer(event), answer(other))] == [True]
    column = {"columnDefinitions": [{"name": "A", "description": "a"}]}
    plain = {"columnDefinitions": [{"name": "A", "description": ""}]}
    assert [each.noticed for each in differences(REQUEST, answer(column), answer(plain))] == [False]
    assert [
        each.noticed for each in differences(REQUEST, answer([{"object": column}]), answer([{"object": plain}]))
    ] == [False]


def test_managers_are_compared_without_the_order_that_times_give_them_and_ports_in_a_table_are_words():
    one, other = ({"manager": name, "operation": "Update", "time": "2026-11-23T08:00:00Z"} for name in "ab")
    assert normalised({"managedFields": [one, other]}) == normalised({"managedFields": [other, one]})
    assert normalised({"managedFields": "x"}) == {"managedFields": "x"}
    assert normalised({"cells": ["80:31577/TCP,443/TCP", "7m"]}) == {"cells": ["80:<nodePort>/TCP,443/TCP", "<age>"]}


def test_the_rules_of_a_user_have_no_order():
    rules = [{"verbs": ["get", "list"]}, {"verbs": ["create"]}]
    same = [{"verbs": ["create"]}, {"verbs": ["list", "get"]}]
    reviews = [{"kind": "SelfSubjectRulesReview", "status": {"resourceRules": each}} for each in (rules, same)]
    assert normalised(reviews[0]) == normalised(reviews[1])


def test_conditions_that_both_servers_write_are_waited_for(monkeypatch):
    monkeypatch.setattr(steadying, "SECONDS_BETWEEN_LOOKS", 0)

    class Telling:
        def __init__(self, *told):
            self.told, self.held = list(told), {"/x/flowschemas/a": {}}

        def get(self, path):
            return self.told.pop(0) if len(self.told) > 1 else self.told[0]

    missing = {"metadata": {"name": "a"}}
    said = {**missing, "status": {"conditions": [{"type": "Dangling", "status": "False"}]}}
    real, ours = Telling(missing, said), Telling(missing, missing, said)
    agree(Request("POST", "/x/flowschemas", "x flowschemas", "create"), real, ours)
    assert real.held == ours.held == {"/x/flowschemas/a": said}
