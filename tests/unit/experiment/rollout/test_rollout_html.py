"""The page of a rollout: whole, escaped, without a script or an address, and each lost request in its Pod's lane."""

from dataclasses import replace
from html.parser import HTMLParser

from rollout_lives import pod_life
from rollout_results import rollout_result as result

from lastcall.endings.render.markup import svg, tag
from lastcall.experiment.not_simulated import Note
from lastcall.experiment.rollout.html import html_page
from lastcall.experiment.rollout.result import Result
from lastcall.traffic.account import account
from lastcall.traffic.moments import Moment
from lastcall.traffic.outcome import Outcome
from lastcall.traffic.thresholds import MaxLost, Thresholds

VOID = {"meta"}


class Reader(HTMLParser):
    """Demands that tags are closed in order; keeps the names of elements and the titles of lines."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.lanes: dict[str, list[str]] = {}
        self._lane = ""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "svg":
            self._lane = dict(attributes)["aria-label"] or ""
            self.lanes[self._lane] = []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-2:] == ["line", "title"]:
            self.lanes[self._lane].append(data)


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    assert reader.open == []
    return reader


def test_each_lost_request_is_a_mark_in_the_lane_of_its_pod_or_of_none() -> None:
    page = html_page([result()])
    lanes = read(page).lanes
    assert [len(lanes[name]) for name in ("web-1", "no Pod")] == [1, 1]
    assert lanes["web-1"][0].startswith("4.000 s: fresh request 2: reset before bytes, web-1")
    assert "terminationGracePeriodSeconds: 60" in page and "requests lost" in page


def test_a_mark_stands_in_the_lane_of_the_pod_that_was_sent_to_not_in_that_of_its_successor() -> None:
    first = result()
    lives = [*first.lives, pod_life("w", name="web-1", ip="10.244.0.3", ready=15.0, routed=15.1)]
    page = html_page([replace(first, lives=lives)])
    assert page.count(f"<title>{next(iter(read(html_page([first])).lanes['web-1']))}") == 1


def test_the_page_has_no_script_no_address_and_no_style_of_an_element() -> None:
    page = html_page([result(), result(advised=True)])
    seen = read(page).seen
    assert "script" not in {name for name, _ in seen} and "http" not in page.replace("http-equiv", "")
    assert not any("style" in attributes or "src" in attributes or "href" in attributes for _, attributes in seen)
    assert sum(name == "section" for name, _ in seen) == 2


def bars(page: str) -> list[str | None]:
    names = ("b-object", "b-preStop", "b-drain")
    return [each["class"] for name, each in read(page).seen if name == "rect" and each.get("class") in names]


def test_a_pod_without_a_hook_has_no_bar_of_one_and_no_key_to_it() -> None:
    page = html_page([result()])
    assert bars(page) == ["b-object", "b-drain"] and "preStop hook" not in page
    life = replace(result().lives[0], hook=Moment.at(10.0))
    with_hook = html_page([result(lives=[life])])
    assert bars(with_hook) == ["b-object", "b-preStop", "b-drain"] and "preStop hook, 2.00 s" in with_hook


def test_what_was_not_simulated_how_long_answers_took_and_the_limits_are_on_the_page() -> None:
    note = Note("ingressIgnored", "Ingress shop", "Ingress shop is kept but no ingress controller acts on it")
    drained = result(notes=(note,), disrupt="drain", node="node-1", nodes=2)
    page = html_page([drained, result(run=2)], Thresholds(MaxLost(1)))
    assert "Ingress shop is kept" in page and "drain of node-1 (of 2 nodes) under load" in page
    assert "How long good answers took" in page and "100 ms" in page
    assert "2 runs together: 4 of 4 requests lost" in page and "limit 1 — broken" in page and ", run 2" in page


def test_names_become_text_and_never_tags() -> None:
    bad = '"><script>alert(1)</script>'
    page = html_page([result(bad, what=f"Deployment {bad}", service=bad)])
    assert "<script" not in page and bad in read(page).lanes


def test_an_element_of_svg_with_a_child_is_closed_after_the_child() -> None:
    assert svg("line", tag("title", "why"), x1=1) == '<line x1="1"><title>why</title></line>'
    assert svg("g", svg("line", x1=1)) == '<g><line x1="1"/></g>' and svg("text", "") == "<text/>"


def test_each_kind_has_its_strip_and_what_lasts_is_a_line_each() -> None:
    first = result()
    held = [Outcome(10 + n, "websocket", n, 8.0 + n, 13.0 + n, 10 + n, 0.0, 101, "10.244.0.2", "", messages=4,
                    moved="going away" if n else "") for n in range(3)]  # fmt: skip
    outcomes = [*first.outcomes, *held]
    found = account(outcomes, first.lives, [], 10.0)
    page = html_page([replace(first, outcomes=outcomes, account=found)])
    lanes = read(page).lanes
    assert {"fresh requests", "WebSockets"} <= set(lanes) and "2 websocket: closed with a close frame" in page
    assert page.count("carried on elsewhere, ") == 2 and page.count(", 4 messages echoed") == 3
    assert "continued elsewhere by their clients" in page
    assert "carried on elsewhere" not in html_page([first])


def test_more_at_a_time_than_can_be_drawn_are_columns() -> None:
    first = result()
    held = [Outcome(10 + n, "stream", 8.0, 8.0, 13.0, 10 + n, 0.0, 200, "10.244.0.2", "") for n in range(60)]
    page = html_page([replace(first, outcomes=held, account=account(held, first.lives, [], 10.0))])
    assert "60 good, sent from" in page


def many(lost_every: int) -> Result:
    """20 000 requests in 20 s, one in so many of them lost."""
    first = result()
    outcomes = [Outcome(n, "fresh", 5 + n / 1000, 5 + n / 1000, 5 + n / 1000, 0, 0.0, 0 if n % lost_every else 200,
                        "10.244.0.2", "" if n % lost_every else "refused") for n in range(1, 20001)]  # fmt: skip
    return replace(first, outcomes=outcomes, account=account(outcomes, first.lives, [], 10.0))


def test_a_few_lost_ones_among_thousands_are_seen_and_counted() -> None:
    page = html_page([many(4000)])
    lost = [
        attributes for name, attributes in read(page).seen if attributes.get("class") == "k-lost" and name == "rect"
    ]
    assert len(lost) == 5 and all(int(each["height"] or 0) >= 7 for each in lost)
    # As the header counts them: what was sent in the control period stands beside, lost or not.
    assert "15001<b>, 4 lost</b>, and 4999 in the control period" in page
    assert "15001 requests to Service web from the disruption on (15001 fresh)" in page


def test_thousands_of_lost_ones_are_as_many_marks_as_can_be_told_apart() -> None:
    page = html_page([many(2)])
    lanes = read(page).lanes
    assert 200 < len(lanes["web-1"]) <= 501 and len(page) < 400_000
    assert any(" more until " in title for title in lanes["web-1"]) and "more like it, until " in page
