"""The saved page of a rollout: whole, escaped, without an address, and each lost request in its Pod's lane."""

import json
from dataclasses import replace
from typing import Any

from rollout_lives import pod_life
from rollout_results import rollout_result as result

from lastcall.experiment.not_simulated import Note
from lastcall.experiment.rollout.html import html_page
from lastcall.experiment.rollout.result import Result
from lastcall.traffic.account import account
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.thresholds import MaxLost, Thresholds
from lastcall.ui.saved import asset


def data(page: str) -> Any:
    return json.loads(page.partition(' id="saved">')[2].partition("</script>")[0])


def reports(*results: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = data(html_page(results))["reports"]
    return found


def table(report: dict[str, Any], caption: str) -> list[list[str]]:
    (found,) = [each["rows"] for each in report["tables"] if each["caption"].startswith(caption)]
    rows: list[list[str]] = found
    return rows


def test_each_lost_request_is_a_mark_in_the_lane_of_its_pod_or_of_none() -> None:
    (report,) = reports(result())
    assert [(each["uid"], each["at"], each["count"]) for each in report["lost"]] == [("", 3.5, 1), ("u", 4.0, 1)]
    rows = [row[1] for row in table(report, "The lost requests")]
    assert any(row.startswith("fresh request 2: reset before bytes, web-1") for row in rows)
    assert any("terminationGracePeriodSeconds: 60" in each for each in report["notes"])
    assert report["verdict"] == "requests lost"


def test_a_mark_stands_in_the_lane_of_the_pod_that_was_sent_to_not_in_that_of_its_successor() -> None:
    first = result()
    lives = [*first.lives, pod_life("w", name="web-1", ip="10.244.0.3", ready=15.0, routed=15.1)]
    (report,) = reports(replace(first, lives=lives))
    assert [each["uid"] for each in report["lost"]] == ["", "u"]
    assert [each["uid"] for each in report["pods"]] == ["u", "w"]


def test_the_page_is_drawn_by_the_scripts_of_the_live_page_and_asks_for_nothing() -> None:
    page = html_page([result(), result(advised=True)])
    scripts = [part.partition("</script>")[0] for part in page.split("<script>")[1:]]
    assert scripts == [asset("ui.js"), asset("rollout.js")]
    assert 'src="' not in page.partition("<script>")[0] and len(data(page)["reports"]) == 2
    assert "with the advice applied" in data(page)["reports"][1]["which"]


def test_without_javascript_the_page_is_the_report_as_text() -> None:
    page = html_page([result()])
    text = page.partition('<div id="app">')[2].partition("</div>")[0]
    assert "terminationGracePeriodSeconds: 60" in text and "Deployment web" in text


def test_what_was_not_simulated_how_long_answers_took_and_the_limits_are_on_the_page() -> None:
    note = Note("ingressIgnored", "Ingress shop", "Ingress shop is kept but no ingress controller acts on it")
    drained = result(notes=(note,), disrupt="drain", node="node-1", nodes=2)
    told = data(html_page([drained, result(run=2)], Thresholds(MaxLost(1))))
    first, second = told["reports"]
    assert any("Ingress shop is kept" in each for each in first["notes"])
    assert "drain of node-1 (of 2 nodes) under load" in first["about"] and second["which"] == "run 2"
    assert table(first, "How long good answers took")[0][3] == "100 ms"
    assert told["limits"][0].startswith("2 runs together: 4 of 4 requests lost")
    assert any("limit 1 — broken" in each for each in told["limits"])


def test_how_long_good_answers_took_is_told_over_time() -> None:
    (strip,) = reports(result())[0]["strips"]
    assert strip["latency"] == [[0, 100.0, 100.0]]  # the one good answer, at the left edge


def test_names_become_text_and_never_tags() -> None:
    bad = '"><script>alert(1)</script>'
    page = html_page([result(bad, what=f"Deployment {bad}", service=bad)])
    assert page.count("<script") == 3 and data(page)["reports"][0]["what"] == f"Deployment {bad}"


def test_what_lasts_is_a_line_each_and_what_was_carried_on_is_told() -> None:
    first = result()
    held = [Outcome(10 + n, "websocket", n, 8.0 + n, 13.0 + n, 10 + n, 0.0, 101, "10.244.0.2", "", messages=4,
                    moved="going away" if n else "") for n in range(3)]  # fmt: skip
    outcomes = [*first.outcomes, *held]
    (report,) = reports(replace(first, outcomes=outcomes, account=account(outcomes, first.lives, [], 10.0)))
    strips = {each["kind"]: each for each in report["strips"]}
    assert any("2 websocket: closed with a close frame" in each for each in report["notes"])
    lines = [(line["became"], line["messages"]) for row in strips["websocket"]["tracks"] for line in row]
    assert lines == [("answered", 4), ("moved", 4), ("moved", 4)] and strips["websocket"]["latency"] == []
    assert strips["fresh"]["tracks"] == []


def test_more_at_a_time_than_can_be_drawn_are_columns() -> None:
    first = result()
    held = [Outcome(10 + n, "stream", 8.0, 8.0, 13.0, 10 + n, 0.0, 200, "10.244.0.2", "") for n in range(60)]
    (report,) = reports(replace(first, outcomes=held, account=account(held, first.lives, [], 10.0)))
    (strip,) = report["strips"]
    assert (strip["tracks"], strip["columns"]) == ([], [[0, 60, 0, 0, 0]])


def many(lost_every: int) -> Result:
    """20 000 requests in 20 s, one in so many of them lost."""
    first = result()
    outcomes = [Outcome(n, "fresh", 5 + n / 1000, 5 + n / 1000, 5 + n / 1000, 0, 0.0, 0 if n % lost_every else 200,
                        "10.244.0.2", "" if n % lost_every else "refused") for n in range(1, 20001)]  # fmt: skip
    return replace(first, outcomes=outcomes, account=account(outcomes, first.lives, [], 10.0))


def test_a_few_lost_ones_among_thousands_are_counted_as_the_header_counts_them() -> None:
    (report,) = reports(many(4000))
    assert sum(lost for *_, lost, _ in report["strips"][0]["columns"]) == 5
    assert (report["totals"], report["losses"], report["controlTotal"]) == ({"fresh": 15001}, {"fresh": 4}, 4999)
    assert "15001 requests to Service web from the disruption on (15001 fresh)" in report["about"]


def test_thousands_of_lost_ones_are_as_many_marks_as_can_be_told_apart() -> None:
    page = html_page([many(2)])
    (report,) = data(page)["reports"]
    marks = report["lost"]
    assert 200 < len(marks) <= 501 and sum(each["count"] for each in marks) == report["losses"]["fresh"]
    assert "more like it, until " in table(report, "The lost requests")[0][1] and len(page) < 400_000
